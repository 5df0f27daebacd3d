"""The fit panel against the real scheduler: what it says of a wish is what becomes of the wish's pods.

A corpus of wishes over a mixed fleet of hollow nodes, in a cluster of its own. The portal's side is the very code of
the page, over a read model that follows the cluster by the workers' streams; a member of the team creates the files.
60 wishes, and 300 where PORTICO_FULL is set (`make test FULL=1`); PORTICO_SEED chooses others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Final

import pytest

from claims.services.fit import Outcome
from dra.kube.client import KubeClient
from portal.models import User
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.corpusfleet import OURS, make_fleet
from tests.cluster.corpuspods import PodWatch
from tests.cluster.corpusrounds import Run
from tests.cluster.corpusrun import Stage
from tests.cluster.corpusteam import Member, let_edit
from tests.cluster.corpuswishes import FEATURES, features_of, first_wishes, wishes
from tests.cluster.following import Following
from tests.cluster.hollow import HollowNodes

NAMESPACE: Final = "ml-team"
SIZE: Final = 300 if os.environ.get("PORTICO_FULL") else 60
SEED: Final = int(os.environ.get("PORTICO_SEED", "5"))
ROUND: Final = 30  # wishes until the fleet is emptied
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One of its own: nobody else's pods, classes and nodes are in it."""
    with Cluster() as running:
        yield running


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    """The chart's roles for one team, the mixed fleet, and the person."""
    made = apply_roles(
        cluster, namespace="portico-system", teams={NAMESPACE: [NAMESPACE]}, driver_name=OURS, prefix="portico:"
    )
    cluster.service_account_kubeconfig(made.namespace, made.worker)
    let_edit(cluster, NAMESPACE, f"portico:{NAMESPACE}")
    cluster.user_kubeconfig("portico:alice", [f"portico:{NAMESPACE}"])
    make_fleet(cluster, HollowNodes(cluster))
    return made


@pytest.fixture
def stage(cluster: Cluster, accounts: ServiceAccounts, alice: User) -> Iterator[Stage]:
    """Everything that takes part, running."""
    worker = cluster.kubeconfig(f"system:serviceaccount:{accounts.namespace}:{accounts.worker}")
    watching = KubeClient.from_environment(str(cluster.kubeconfig()))
    with (
        cluster.api("portico:alice") as hers,
        cluster.api() as admin,
        PodWatch(watching) as pods,
        Following(worker) as following,
    ):
        yield Stage(alice, Member(hers, NAMESPACE), admin, pods, following, lambda: restart_scheduler(cluster))


def restart_scheduler(cluster: Cluster) -> None:
    """The same program with nothing in memory but what it reads anew."""
    cluster.stop_program("kube-scheduler")
    cluster.start_program("kube-scheduler")


def test_what_the_panel_says_is_what_the_scheduler_does(stage: Stage) -> None:
    run = Run(stage, Random(SEED))
    drawn = wishes(NAMESPACE, SEED)
    run.play(first_wishes(NAMESPACE))
    assert [each.wish for each in run.tried] == list(first_wishes(NAMESPACE))  # the form refuses none of them
    while (left := SIZE - len(run.tried)) > 0:
        run.play(islice(drawn, min(left, ROUND)))
    print(run.report())
    assert not run.faults, "\n\n".join(run.faults)
    assert stage.restarts <= len(run.tried) // 50
    assert {each.said.outcome for each in run.tried} == set(Outcome)
    assert {feature for each in run.tried for feature in features_of(each.wish)} == set(FEATURES)
