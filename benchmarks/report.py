"""What every benchmark prints: one JSON line a figure, and a last line with the verdict.

A figure is a ratio against a peer of the same run; `ok` says whether it keeps its budget, the largest allowed ratio.
Where no peer exists it is `"value"` with `"unit"` instead.
"""

import json


class Report:
    """The figures of one benchmark. Nothing is timed here."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ok = True

    def ratio(self, figure: str, ratio: float, budget: float) -> None:
        """A figure that is ours divided by the peer's."""
        ok = ratio <= budget
        self._ok = self._ok and ok
        self._print({"figure": figure, "ratio": round(ratio, 3), "budget": budget, "ok": ok})

    def value(self, figure: str, value: float, unit: str, budget: float | None = None) -> None:
        """A figure without a peer; `budget` is the largest allowed value, if there is one."""
        limits: dict[str, object] = {}
        if budget is not None:
            ok = value <= budget
            self._ok = self._ok and ok
            limits = {"budget": budget, "ok": ok}
        self._print({"figure": figure, "value": round(value, 3), "unit": unit, **limits})

    def verdict(self) -> bool:
        """Print the last line, and say whether all budgets are kept."""
        self._print({"ok": self._ok})
        return self._ok

    def _print(self, values: dict[str, object]) -> None:
        print(json.dumps({"name": self._name, **values}), flush=True)
