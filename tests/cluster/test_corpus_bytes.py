"""Every wish of the corpus on the portal's page and in the real cluster: the same bytes wherever they are seen.

The text under each tab is the file of the ZIP, and what the portal sends when a person presses Create is that file.
The API server takes it: a dry run, then the object. The relay before it records what came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl
from zipfile import ZipFile

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from claims.wish import Style, Wish, write
from gpuinventory.kinds import KINDS
from gpuinventory.models import StreamCursor
from portal.models import Team, TeamNamespace
from tests.claims.corpus import CLASSES, NAMESPACE, OWN, wishes
from tests.claims.pages import code_of, create_form
from tests.claims.rows import device_class, put
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.relay import Relay

SYSTEM: Final = "portico-system"
WISHES: Final = [replace(wish, name=f"wish-{number}") for number, wish in enumerate(wishes())]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def web(cluster: Cluster) -> str:
    """The portal's account under the chart's roles, for a team in the corpus' namespace."""
    made = apply_roles(
        cluster,
        namespace=SYSTEM,
        teams={"ml-team": [NAMESPACE]},
        driver_name="gpu.portico.dev",
        prefix="portico:",
    )
    cluster.service_account_kubeconfig(SYSTEM, made.web)
    return f"system:serviceaccount:{SYSTEM}:{made.web}"


@pytest.fixture
def relay(cluster: Cluster, web: str, settings: Settings, ml_team: Team, tmp_path: Path) -> Iterator[Relay]:
    """The portal's only way to the cluster. It knows the corpus' classes and no device, so that nothing is refused."""
    TeamNamespace.objects.create(team=ml_team, namespace=NAMESPACE)
    for name, facts in CLASSES.items():
        extended = {"extendedResourceName": facts.extended_resource} if facts.extended_resource else {}
        put("DeviceClass", device_class(name, f'device.driver == "{facts.driver}"' if facts.driver else "", **extended))
    for kind in KINDS:
        StreamCursor.objects.create(kind=kind, resource_version="1", synced_at=timezone.now())
    with Relay(cluster.access(web)) as running:
        settings.KUBECONFIG = str(running.kubeconfig(tmp_path))
        yield running
    cluster.kubectl("delete", "resourceclaimtemplates,resourceclaims", "--all", "-n", NAMESPACE)


def test_what_is_shown_is_what_is_given_and_what_is_created(as_alice: Client, relay: Relay) -> None:
    as_alice.post("/request/paste", dict(parse_qsl(write(WISHES[0]))) | {"workload": "own", "text": OWN})
    created = [shown_and_created(as_alice, relay, wish, number) for number, wish in enumerate(WISHES)]
    assert sum(created) == sum(wish.style is Style.CLAIMS for wish in WISHES) > len(WISHES) / 2


def shown_and_created(client: Client, relay: Relay, wish: Wish, number: int) -> bool:
    """Whether the portal created something for the wish; AssertionError where bytes differ."""
    address = f"{write(wish)}&form=corpus{number:010}"
    page = client.get(f"/request/?{address}")
    assert page.status_code == 200, address
    files = bundle(client, address)
    texts = code_of(page.content.decode())
    for name, content in files.items():
        assert texts[f"text-{name.partition('.')[0].lower()}"].encode() == content, address
    sent = create_form(page.content.decode())
    if not sent:
        return False
    seen = len(relay.recorded)
    assert client.post("/requests/", sent).status_code == 303, address
    posted = [each.body for each in relay.recorded[seen:] if each.method == "POST"]
    first = next(iter(files.values()))
    assert posted == [first, first], address  # the dry run, and the object
    return True


def bundle(client: Client, address: str) -> dict[str, bytes]:
    """The files of the ZIP, in their order."""
    with ZipFile(BytesIO(client.get(f"/request/bundle.zip?{address}").content)) as archived:
        return {name: archived.read(name) for name in archived.namelist()}
