"""Plugins of the whole suite, and how long its property tests search.

A fixture that only one folder needs stands in that folder's own conftest. In CI the examples are always the same ones;
`make test FULL=1` looks at many more of them.
"""

import os
import sys

from hypothesis import settings

pytest_plugins = ["tests.cluster.fixtures", "tests.services", "tests.portal_fixtures", "tests.browser"]

# Who keeps the sources clean of bytecode would let every program that a test starts compile all it imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("long", max_examples=5_000, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
