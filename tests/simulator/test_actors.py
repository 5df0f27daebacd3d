"""Actors: the same seed and times give the same life; the clock stands still, goes, and hurries."""

import pytest

from simulator import kinds
from simulator.actors import Actors
from simulator.clock import Clock, ClockError
from simulator.scenario import Actor
from tests.simulator.clusters import NAMESPACE, Living, device_class, node, slice_of, template

TRAINING = Actor(name="train", namespace=NAMESPACE, template="one", at_start=2, most=3, every=60, lasts=(100, 200))
SERVICE = Actor(
    name="serve", kind="Deployment", namespace=NAMESPACE, template="one", at_start=1, most=1, every=60,
    lasts=(50, 50), replicas=(2, 2), node_selector={"kubernetes.io/hostname": "n1"}, priority_class="high",
)  # fmt: skip


def cluster() -> Living:
    made = Living()
    made.add(node("n1"), slice_of("n1", *({"name": f"d{number}"} for number in range(8))), device_class("x"))
    made.add(template("one"))
    return made


def life(seed: int, *moments: float) -> list[list[str]]:
    """Names of the pods at each moment."""
    world = cluster()
    actors = Actors(world.hands, [TRAINING], seed)
    seen = []
    for moment in moments:
        assert actors.sync(moment) == []
        world.pass_seconds(3)
        world.pass_seconds(3)
        seen.append([each["metadata"]["name"] for each in world.pods()])
    return seen


def test_some_are_there_from_the_beginning_and_all_end() -> None:
    world = cluster()
    actors = Actors(world.hands, [TRAINING, SERVICE], 1)
    actors.sync(0)
    world.pass_seconds(2)
    running = [each for each in world.pods() if each["status"]["phase"] == "Running"]
    assert len(running) == 4  # two pods of training, two of the service
    assert len(world.store.all(kinds.RESOURCE_CLAIM)) == 4
    served = next(each["spec"] for each in running if each["metadata"]["name"].startswith("serve-"))
    assert (served["nodeSelector"], served["priorityClassName"]) == ({"kubernetes.io/hostname": "n1"}, "high")
    actors.sync(49)
    assert world.store.all(kinds.DEPLOYMENT)
    actors.sync(50)
    assert "serve-1" not in [each["metadata"]["name"] for each in world.store.all(kinds.DEPLOYMENT)]


def test_the_same_seed_gives_the_same_life_and_another_does_not() -> None:
    moments = [0, 60, 120, 180, 240, 300, 400, 500]
    assert life(7, *moments) == life(7, *moments)
    assert life(7, *moments) != life(8, *moments)


def test_there_are_never_more_than_the_most() -> None:
    assert max(map(len, life(3, *range(0, 2000, 20)))) == 3


def test_a_refusal_is_given_back_and_the_next_one_comes() -> None:
    world = cluster()
    meta = {"name": "none", "namespace": NAMESPACE}
    world.add({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "1"}}})
    (refusal,) = Actors(world.hands, [TRAINING], 1).sync(0)
    assert refusal.startswith(f"{NAMESPACE}/train-2: pods ")
    assert "exceeded quota: none" in refusal


def test_the_clock_stands_still_and_hurries() -> None:
    clock = Clock()
    assert clock.seconds(100.0) == 0.0
    assert clock.seconds(103.0) == 3.0
    clock.set_rate(10, 104.0)
    assert clock.seconds(105.0) == 14.0
    clock.set_rate(0, 106.0)
    assert clock.seconds(1000.0) == 24.0
    clock.set_rate(1, 1000.0)
    assert clock.seconds(1001.0) == 25.0


@pytest.mark.parametrize("rate", [2, -1, "10", None, True, 1e300, [1]])
def test_another_rate_is_refused(rate: object) -> None:
    clock = Clock()
    with pytest.raises(ClockError, match="is none of 0, 1, 10"):
        clock.set_rate(rate, 0.0)
    assert clock.rate == 1
