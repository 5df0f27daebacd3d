"""What a person wishes for, its bounds, and the one codec between it and a URL's query.

Pure. `read` judges the shape of each value, `judge` what can only be said with facts of the cluster; both answer with
refusals, never with prose. Share and memory follow docs/dev/architecture.md, "A mode is a device": a share under 100 is
served by MPS, and `memory` consumed by a share only tightens.
"""

from __future__ import annotations

from claims.wish.classes import closed, mode_closed
from claims.wish.codec import Reading, read, write
from claims.wish.defaults import settled
from claims.wish.facts import OPEN, Bounds, ClassFacts
from claims.wish.judging import gib, judge, misnamed
from claims.wish.keys import EXAMPLES, KEYS, LABELS, LISTS, entry_of, numbers_given
from claims.wish.reading import mode_of
from claims.wish.values import (
    LEAST_SHARE,
    MAX_ALTERNATIVES,
    MAX_COUNT,
    MAX_HOURS,
    MAX_PODS,
    MAX_REPLICAS,
    MAX_SLOTS,
    SHARE_STEP,
    WHOLE,
    Choice,
    Constraint,
    ConstraintKind,
    Interval,
    Mode,
    Owner,
    Preset,
    Strategy,
    Style,
    Toleration,
    Wish,
    Workload,
)
from claims.wish.words import noun, summary

__all__ = (
    "EXAMPLES",
    "KEYS",
    "LABELS",
    "LEAST_SHARE",
    "LISTS",
    "MAX_ALTERNATIVES",
    "MAX_COUNT",
    "MAX_HOURS",
    "MAX_PODS",
    "MAX_REPLICAS",
    "MAX_SLOTS",
    "OPEN",
    "SHARE_STEP",
    "WHOLE",
    "Bounds",
    "Choice",
    "ClassFacts",
    "Constraint",
    "ConstraintKind",
    "Interval",
    "Mode",
    "Owner",
    "Preset",
    "Reading",
    "Strategy",
    "Style",
    "Toleration",
    "Wish",
    "Workload",
    "closed",
    "entry_of",
    "gib",
    "judge",
    "misnamed",
    "mode_closed",
    "mode_of",
    "noun",
    "numbers_given",
    "read",
    "settled",
    "summary",
    "write",
)
