"""Every wish of the corpus: its link keeps it, nothing is refused, and the real API server accepts its files."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from zipfile import ZipFile

import pytest
import yaml

from claims.manifests import File, render
from claims.services.archive import archive
from claims.wish import Wish, judge, read, write
from tests.claims.corpus import BOUNDS, CLASSES, COLLECTIONS, NAMESPACE, wishes
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster

WISHES = wishes()


def test_each_wish_is_possible_and_survives_its_link() -> None:
    for wish in WISHES:
        assert judge(wish, BOUNDS) == ()
        assert read(write(wish)).wish == wish


def test_the_archive_holds_the_very_files() -> None:
    for wish in WISHES:
        files = render(wish, CLASSES[wish.device_class], "1e3")
        with ZipFile(BytesIO(archive(files))) as archived:
            held = {name: archived.read(name) for name in archived.namelist()}
        assert held == {file.name: file.content for file in files.all}
        assert archive(render(wish, CLASSES[wish.device_class], "1e3")) == archive(files)


def test_the_kustomization_names_what_is_applied() -> None:
    for wish in WISHES:
        files = render(wish, CLASSES[wish.device_class], "1e3")
        (kustomization,) = (file for file in files.all if file.name == "kustomization.yaml")
        assert yaml.safe_load(kustomization.text)["resources"] == [file.name for file in files.applied]


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    if cluster.raw("GET", f"/api/v1/namespaces/{NAMESPACE}").status != 200:
        cluster.make_namespace(NAMESPACE)
    with cluster.api() as connection:
        yield connection


def refusals(api: Api, wish: Wish) -> Iterator[str]:
    files = render(wish, CLASSES[wish.device_class], "1e3")
    for file in (files.template, *files.applied, files.quota):
        if answer := refused(api, file):
            yield f"{answer}\n{file.text}"


def refused(api: Api, file: File) -> str:
    """What the API server has against the file, with every field known to it."""
    collection = COLLECTIONS[yaml.safe_load(file.text)["kind"]].format(NAMESPACE)
    answer = api.request("POST", f"{collection}?dryRun=All&fieldValidation=Strict", file.content, "application/yaml")
    return "" if answer.status == 201 else str(answer.body)


def test_the_api_server_takes_every_file(api: Api) -> None:
    assert [refusal for wish in WISHES for refusal in refusals(api, wish)] == []
