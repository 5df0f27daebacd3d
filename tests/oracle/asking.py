"""The oracle as a program that runs: ask, get an answer, stop it.

It is built from the libraries of kube-scheduler (folder `program`) and cached as the programs of the cluster are. One
question is one JSON object; what it may hold stands in `program/cel.go` and `program/allocate.go`.
"""

from __future__ import annotations

import subprocess
import tempfile
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from tests.cluster.build import programs

type Json = dict[str, Any]

GRACE_SECONDS = 10.0
TAIL_BYTES = 2_000


class OracleError(Exception):
    """The program ended early, or called the question wrong: a fault of the test, never of what is tested."""


class Oracle:
    """A running oracle. As a context manager, or with `stop()`."""

    def __init__(self) -> None:
        program = next(programs("oracle").iterdir())
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the program)
        process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._questions, self._answers = process, process.stdin, process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process, for measurements."""
        return self._process.pid

    def ask(self, question: Json) -> Json:
        """The answer. OracleError where the question itself is wrong or the program is gone."""
        return self.ask_encoded(msgspec.json.encode(question))

    def ask_encoded(self, question: bytes) -> Json:
        """The same for a question that is one line of JSON already."""
        self._questions.write(question + b"\n")
        self._questions.flush()
        line = self._answers.readline()
        if not line:
            raise OracleError(f"the oracle ended early; it said: {self._tail()}")
        answer: Json = msgspec.json.decode(line)
        if answer.get("errorKind") == "input":
            raise OracleError(f"the question is wrong: {answer['error']}; it was: {question[:TAIL_BYTES]!r}")
        return answer

    def stop(self) -> None:
        """End of input ends the program; what does not end by itself is killed."""
        self._questions.close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._log.close()

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read()[-TAIL_BYTES:].decode(errors="replace")
