"""Lock files exclude threads and processes, give up with a number, and die with who held them."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from nodedriver.facts import PciAddress
from nodedriver.locks import Locks, LockTimeoutError

ONE, TWO = PciAddress("0000:17:00.0"), PciAddress("0000:2a:00.0")
CHECKOUT = Path(__file__).parents[2]

_naps: dict[int, SimpleQueue[float]] = {}  # by thread, of those who are listened to


def _note_nap(event: str, arguments: tuple[float, ...]) -> None:
    if event == "time.sleep" and (noted := _naps.get(threading.get_ident())) is not None:
        noted.put(arguments[0])


sys.addaudithook(_note_nap)  # stays in the process for good (PEP 578), and idles

HOLDER = """
import sys, time
from pathlib import Path
from nodedriver.locks import Locks
with Locks(Path(sys.argv[1]), deadline=1).gpus(["0000:17:00.0"]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_gpu_is_held_once(tmp_path: Path) -> None:
    locks = Locks(tmp_path, deadline=0.1)
    with locks.gpus([ONE]), pytest.raises(LockTimeoutError, match=r"gpu-0000:17:00\.0\.lock was not free within 0\.1"):
        locks.gpus([ONE]).__enter__()
    with locks.gpus([ONE]):
        pass


def test_other_gpus_and_the_checkpoint_are_free(tmp_path: Path) -> None:
    locks = Locks(tmp_path, deadline=0.1)
    with locks.gpus([ONE]), locks.gpus([TWO]), locks.checkpoint():
        assert {path.name for path in tmp_path.iterdir()} == {
            "gpu-0000:17:00.0.lock",
            "gpu-0000:2a:00.0.lock",
            "checkpoint.lock",
        }


def test_the_same_gpu_named_twice_is_no_deadlock(tmp_path: Path) -> None:
    with Locks(tmp_path, deadline=0.1).gpus([ONE, ONE]):
        pass


def test_what_was_taken_before_a_timeout_is_given_back(tmp_path: Path) -> None:
    locks = Locks(tmp_path, deadline=0.1)
    with locks.gpus([TWO]), pytest.raises(LockTimeoutError):
        locks.gpus([ONE, TWO]).__enter__()
    with locks.gpus([ONE]):
        pass


class Waiting:
    """A thread that waits for the checkpoint's lock; begun while the lock is held."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        self.began, self.held = threading.Event(), threading.Event()
        self.naps: SimpleQueue[float] = SimpleQueue()
        self._thread = threading.Thread(target=self._hold)
        self._thread.start()
        assert self.began.wait(30)

    def _hold(self) -> None:
        _naps[threading.get_ident()] = self.naps
        self.began.set()
        with self._locks.checkpoint():
            self.held.set()
        del _naps[threading.get_ident()]

    def ended(self) -> bool:
        self._thread.join(30)
        return self.held.is_set()


def test_the_next_thread_is_woken_and_does_not_look_again_and_again(tmp_path: Path) -> None:
    locks = Locks(tmp_path, deadline=30)
    with locks.checkpoint():
        waiting = Waiting(locks)
        assert not waiting.held.wait(0.2)
    assert waiting.ended()
    assert waiting.naps.empty()


def test_who_opened_the_file_anew_looks_again_and_again(tmp_path: Path) -> None:
    with Locks(tmp_path, deadline=30).checkpoint():
        waiting = Waiting(Locks(tmp_path, deadline=30))
        assert waiting.naps.get(timeout=30)
        assert not waiting.held.is_set()
    assert waiting.ended()


def test_opposite_orders_do_not_deadlock(tmp_path: Path) -> None:
    locks = Locks(tmp_path, deadline=20)
    rounds: list[str] = []

    def work(name: str, gpus: list[PciAddress]) -> None:
        for _ in range(25):
            with locks.gpus(gpus):
                rounds.append(name)

    threads = [threading.Thread(target=work, args=args) for args in (("a", [ONE, TWO]), ("b", [TWO, ONE]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
    assert sorted(rounds) == ["a"] * 25 + ["b"] * 25


def test_another_process_is_excluded_until_it_dies(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockTimeoutError):
            Locks(tmp_path, deadline=0.1).gpus([ONE]).__enter__()
        os.kill(holder.pid, signal.SIGKILL)
        began = time.monotonic()
        with Locks(tmp_path, deadline=5).gpus([ONE]):
            assert time.monotonic() - began < 5
