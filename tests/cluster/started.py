"""What is started has to be stopped: the `with` of everything that runs beside the tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Started(ABC):
    """Runs from the beginning of a `with` to its end, however that comes."""

    @abstractmethod
    def start(self) -> None:
        """Start, and wait until it serves."""

    @abstractmethod
    def stop(self) -> None:
        """End whatever was started; safe to repeat, and after a start that failed half-way."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
