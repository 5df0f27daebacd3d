"""Plugins of the whole suite; a fixture that only one folder needs stands in that folder's own conftest."""

pytest_plugins = ["tests.cluster.fixtures", "tests.services", "tests.portal_fixtures", "tests.browser"]
