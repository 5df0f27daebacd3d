"""What operators did about GPU classes stands in the audit, and is shown to operators only."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from claims.models import GPUClassEvent
from dra.kube import requests
from dra.kube.requests import GPU_CLASSES
from tests.claims.rows import CEL, CLASS, put, put_gpu_class
from tests.simulator.serving import Served

pytestmark = pytest.mark.usefixtures("fleet")
PAGE = "/gpu-classes/"
SECRET = "a-secret-of-the-driver"
VALUES = {
    "name": "training", "title": "H100", "serve": "generated", "mode": "whole", "state": "open", "selectors": CEL,
    "config": f'[{{"opaque": {{"driver": "gpu.portico.dev", "parameters": {{"key": "{SECRET}"}}}}}}]',
    "count_min": "1", "count_default": "1", "count_max": "8", "store": "yes",
}  # fmt: skip


def lines() -> list[tuple[str, str, str, str]]:
    """Who, what, which class, and how it ended; oldest first."""
    return list(GPUClassEvent.objects.values_list("username", "verb", "name", "result"))


def stored(simulated: Served) -> None:
    """The read model is told of the class, as a worker would."""
    put("GPUClass", simulated.client.send(requests.get(GPU_CLASSES, "training")))


def shown(client: Client, path: str) -> str:
    page = " ".join(unescape(client.get(path).content.decode()).replace("<strong>", "").split())
    return page.replace("</strong>", "")


def test_making_changing_and_deleting_a_class_are_lines(as_olga: Client, simulated: Served) -> None:
    assert as_olga.post(f"{PAGE}+new/", VALUES).status_code == 303
    stored(simulated)
    form = as_olga.get(f"{PAGE}training/edit/").context["form"]
    values = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    assert as_olga.post(f"{PAGE}training/edit/", values | {"title": "Cards", "store": "yes"}).status_code == 303
    stored(simulated)
    assert "olga made training: stored" in shown(as_olga, f"{PAGE}training/")
    assert as_olga.post(f"{PAGE}training/delete/").status_code == 303

    assert lines() == [
        ("olga", "create", "training", "stored"),
        ("olga", "change", "training", "stored"),
        ("olga", "delete", "training", "deleted"),
    ]
    ids = set(GPUClassEvent.objects.values_list("request_id", flat=True))
    assert {len(each) for each in ids} == {32}
    assert len(ids) == 3
    assert not any(SECRET in str(each) for each in GPUClassEvent.objects.values_list())
    page = shown(as_olga, PAGE)  # the class is gone, what was done about it is not
    assert page.index("olga deleted training") < page.index("olga changed training") < page.index("olga made training")


def test_a_name_that_is_taken_is_a_line(as_olga: Client, simulated: Served) -> None:
    as_olga.post(f"{PAGE}+new/", VALUES)
    assert as_olga.post(f"{PAGE}+new/", VALUES).status_code == 409

    assert lines()[-1] == ("olga", "create", "training", "gpuclass.device_class_taken")


def test_what_the_api_server_refuses_is_a_line_with_its_sentence(as_olga: Client, simulated: Served) -> None:
    assert as_olga.post(f"{PAGE}+new/", VALUES | {"count_min": "3"}).status_code == 422

    assert lines() == [("olga", "create", "training", "server.invalid")]
    assert "min <= default <= max does not hold" in GPUClassEvent.objects.get().detail


def test_tries_that_the_cluster_did_not_answer_are_lines(as_olga: Client, away: str) -> None:
    put_gpu_class("kept", deviceClass={"name": CLASS})
    assert as_olga.post(f"{PAGE}+new/", VALUES).status_code == 503
    assert as_olga.post(f"{PAGE}kept/delete/").status_code == 503

    assert lines() == [
        ("olga", "create", "training", "cluster.silent"),
        ("olga", "delete", "kept", "cluster.silent"),
    ]
    assert away in GPUClassEvent.objects.latest("pk").detail


def test_selectors_that_do_not_compile_are_a_line(as_olga: Client, away: str) -> None:
    assert as_olga.post(f"{PAGE}+new/", VALUES | {"selectors": "device."}).status_code == 422
    assert lines() == [("olga", "create", "training", "gpuclass.selector")]


def test_others_do_not_read_what_operators_did(as_olga: Client, as_alice: Client, away: str) -> None:
    put_gpu_class("kept", deviceClass={"name": CLASS})
    as_olga.post(f"{PAGE}kept/delete/")
    for path in (PAGE, f"{PAGE}kept/"):
        assert "olga deleted kept: cluster.silent" in shown(as_olga, path)
        assert "What operators did" not in shown(as_alice, path)


def test_a_line_is_written_once(db: None) -> None:
    line = GPUClassEvent.objects.create(username="olga", name="x", verb="create", result="stored")
    with pytest.raises(TypeError, match="not changed"):
        line.save()
    with pytest.raises(TypeError, match="not deleted"):
        line.delete()
