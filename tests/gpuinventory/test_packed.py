"""Objects are stored packed: what is read is what was written, and rows from before are packed by the migration."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from gpuinventory.models import ClusterObject
from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import seen, slices_of

pytestmark = pytest.mark.django_db


def stored(name: str) -> bytes:
    """The column as the database has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM gpuinventory_clusterobject WHERE name = %s", [name])
        return bytes(cursor.fetchone()[0])


def test_a_slice_takes_a_tenth_and_comes_back_byte_for_byte() -> None:
    first, second = seen(slices_of("node-a"))
    ingest("ResourceSlice", [first, second])
    assert second.body is not None
    assert ClusterObject.objects.get(name=second.metadata.name).body == second.body
    assert list(ClusterObject.objects.order_by("name").values_list("body", flat=True)) == [first.body, second.body]
    assert len(stored(second.metadata.name)) < len(second.body) / 10


def test_rows_from_before_are_packed_and_read() -> None:
    first, _ = seen(slices_of("node-a"))
    before = MigrationLoader(connection).project_state(("gpuinventory", "0004_lag_and_clocks")).apps
    before.get_model("gpuinventory", "ClusterObject").objects.create(
        kind="ResourceSlice", name="old", uid="u", resource_version="1", body=first.body
    )
    assert stored("old") == first.body
    import_module("gpuinventory.migrations.0005_packed_bodies").pack(before, None)
    assert ClusterObject.objects.get(name="old").body == first.body
