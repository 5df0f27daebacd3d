"""Plugins of the whole suite, and how long its property tests search.

A fixture that only one folder needs stands in that folder's own conftest. In CI the examples are always the same ones;
`make test FULL=1` looks at many more of them.
"""

import os

from hypothesis import settings

pytest_plugins = ["tests.cluster.fixtures", "tests.services", "tests.portal_fixtures", "tests.browser"]

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("long", max_examples=5_000, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
