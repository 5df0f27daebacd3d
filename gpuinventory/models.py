"""The read model: objects with their bytes as received, narrow tables for what pages filter, cursors and the revision.

Everything here can be dropped and rebuilt from the cluster. Only this app imports it (import contract).
"""

from __future__ import annotations

import zlib
from typing import Any, ClassVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

NAME = 253  # DNS subdomain
DRIVER = 63


class PackedField(models.BinaryField):  # type: ignore[type-arg] # generic for the checker alone
    """Bytes that are stored packed: slices shrink to a twentieth, and so does what a fleet writes to the disk."""

    def from_db_value(self, value: bytes | None, *_: Any) -> bytes | None:
        """As it was given."""
        return None if value is None else zlib.decompress(bytes(value))

    def get_db_prep_value(self, value: bytes | None, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's own
        """As it is stored; the quickest level, since the others gain little."""
        packed = None if value is None else zlib.compress(value, level=zlib.Z_BEST_SPEED)
        return super().get_db_prep_value(packed, connection, prepared)


class ClusterObject(models.Model):
    """One object of a followed kind. `driver` and `pool` are set for ResourceSlices, which are read by pool.

    `changed_at_revision` makes the rows a change log: what is newer than a revision is what changed since. A deleted
    object's place in it is its `Tombstone`.
    """

    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=NAME)
    uid = models.CharField(max_length=63)
    resource_version = models.CharField(max_length=63)
    driver = models.CharField(max_length=DRIVER, blank=True)
    pool = models.CharField(max_length=NAME, blank=True)
    body = PackedField()
    changed_at_revision = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "namespace", "name"], name="one_row_per_object"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["driver", "pool"], name="slices_of_a_pool", condition=models.Q(kind="ResourceSlice")),
            models.Index(fields=["changed_at_revision"], name="objects_by_change"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Tombstone(models.Model):
    """An object that is gone, and the revision at which it went. Old ones are dropped: see `services.changelog`."""

    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=NAME)
    revision = models.PositiveBigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "namespace", "name"], name="one_tombstone_per_object"),
        ]
        indexes: ClassVar = [models.Index(fields=["revision"], name="tombstones_by_revision")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} gone at {self.revision}"


class Pool(models.Model):
    """What the slices of a pool add up to. A row without slices stands for a pool whose devices are still allocated."""

    driver = models.CharField(max_length=DRIVER)
    name = models.CharField(max_length=NAME)
    node = models.CharField(max_length=NAME, blank=True)
    state = models.CharField(max_length=16)
    reason = models.CharField(max_length=500, blank=True)
    generation = models.BigIntegerField(default=0)
    slices_seen = models.PositiveIntegerField(default=0)
    slices_wanted = models.PositiveBigIntegerField(default=0)
    # Objects of the pool were written, and its rows are still to follow: so while a list is read.
    dirty = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["driver", "name"], name="one_row_per_pool")]
        indexes: ClassVar = [models.Index(fields=["driver"], name="dirty_pools", condition=models.Q(dirty=True))]

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class Device(models.Model):
    """A device as pages list it. Derived from its pool's slices and from the allocations on it."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="devices")
    name = models.CharField(max_length=63)
    node = models.CharField(max_length=NAME, blank=True)
    slice_name = models.CharField(max_length=NAME, blank=True)
    position = models.PositiveIntegerField()
    product = models.CharField(max_length=128, blank=True)
    device_type = models.CharField(max_length=64, blank=True)
    mig_profile = models.CharField(max_length=64, blank=True)
    memory = models.BigIntegerField(default=0)
    counter_set = models.CharField(max_length=63, blank=True)
    shareable = models.BooleanField(default=False)
    tainted = models.BooleanField(default=False)
    state = models.CharField(max_length=16)
    percent_used = models.PositiveSmallIntegerField(default=0)
    holders = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["pool", "name"], name="one_row_per_device")]
        indexes: ClassVar = [
            models.Index(fields=["state", "product"], name="devices_by_state"),
            models.Index(fields=["node", "position"], name="devices_of_a_node"),
        ]

    def __str__(self) -> str:
        return f"{self.pool}/{self.name}"


class CounterSet(models.Model):
    """What is left of a counter set: `{counter: [left, total]}`, quantities as texts."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="counter_sets")
    name = models.CharField(max_length=63)
    counters = models.JSONField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["pool", "name"], name="one_row_per_counter_set")]

    def __str__(self) -> str:
        return f"{self.pool}/{self.name}"


class AllocatedDevice(models.Model):
    """One device, or one share of it, that a ResourceClaim was given. Rewritten with its claim."""

    driver = models.CharField(max_length=DRIVER)
    pool = models.CharField(max_length=NAME)
    device = models.CharField(max_length=63)
    share_id = models.CharField(max_length=63, blank=True)
    device_request = models.CharField(max_length=128)
    admin_access = models.BooleanField(default=False)
    consumed = models.JSONField(default=dict)
    claim_namespace = models.CharField(max_length=63)
    claim_name = models.CharField(max_length=NAME)
    claim_uid = models.CharField(max_length=63)
    pods = models.JSONField(default=list)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["driver", "pool", "device"], name="allocations_of_a_device"),
            models.Index(fields=["claim_namespace", "claim_name"], name="allocations_of_a_claim"),
        ]

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device} for {self.claim_namespace}/{self.claim_name}"


class StreamCursor(models.Model):
    """Where a kind's stream stands, who runs it, and what went wrong last.

    `resource_version` "" asks for a new list. `synced_at` is the last word from the cluster; it grows old when the
    cluster is silent. A kind that is not `served` is a state, no fault. The lease is taken and kept by conditional
    updates only. `changed_at` is the newest change seen, by the cluster's clock, and `lag` the seconds from there until
    it was written here; `clock_ahead` is how many seconds the cluster's clock is ahead of the worker's.
    """

    kind = models.CharField(max_length=63, primary_key=True)
    resource_version = models.CharField(max_length=63, blank=True)
    synced_at = models.DateTimeField(null=True)
    served = models.BooleanField(default=True)
    lease_holder = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=1000, blank=True)
    failures = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(null=True)
    lag = models.FloatField(null=True)
    clock_ahead = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"{self.kind} at {self.resource_version or 'the beginning'}"


class Revision(models.Model):
    """One row, one number: raised in the transaction of every change, so that pages know when to look again.

    Of changes up to `forgotten` the tombstones are dropped: who stands there or before reads everything anew.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    value = models.PositiveBigIntegerField(default=0)
    forgotten = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="one_revision")]

    def __str__(self) -> str:
        return str(self.value)
