"""Every line of the node side's logs is a JSON object with its keys, whoever writes it, and none tells a credential."""

import json
import subprocess
import sys

import pytest

from tests.nodedriver import apiserver
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import CHECKOUT, short_folder
from tests.nodedriver.node import DriverNode

KEYS = {"event", "level", "timestamp", "component"}
SECRET = "hush-this-is-a-token"
PROGRAM = """
import logging, threading, warnings
import structlog
from nodedriver import logs
logs.configure("info", component="driver")
log = structlog.get_logger()
log.info("first", n=1)
threading.Thread(target=lambda: log.warning("in a thread")).start()
log.debug("not asked for")
logging.getLogger("library").warning("of %s", "a library")
logging.getLogger("library").info("chatter")
warnings.warn("an old function")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("library").exception("with its traceback")
"""


def test_every_line_is_json_with_its_keys() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert all(line.keys() >= KEYS and line["component"] == "driver" for line in lines)
    assert [line["event"] for line in lines[:3]] == ["first", "in a thread", "of a library"]
    assert (lines[2]["level"], lines[2]["logger"]) == ("warning", "library")
    assert "an old function" in lines[3]["event"]
    assert "ZeroDivisionError" in lines[4]["exception"]
    assert len(lines) == 5


@pytest.mark.programs
def test_no_line_of_the_programs_tells_the_token() -> None:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        text = (folder / "kubeconfig").read_text()
        (folder / "kubeconfig").write_text(text.replace("user: {}", f"user: {{token: {SECRET}}}"))
        assert SECRET in (folder / "kubeconfig").read_text()
        node = DriverNode(folder, store)
        try:
            node.start("mpsd", "--log-level", "debug")
            node.start("driver", "--log-level", "debug")
            node.prepare(node.allocate(allocated(given("gpu-0", 25))))
        finally:
            node.close()
        for program in ("mpsd", "driver"):
            lines = [json.loads(line) for line in node.log(program).splitlines()]
            assert lines
            assert all(line.keys() >= KEYS and line["component"] == program for line in lines), lines
            assert SECRET not in node.log(program)
