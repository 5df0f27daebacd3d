"""GPU requests as rows, the audit lines of what was done about them and about GPU classes, and pasted workloads.

A row is about one object, a ResourceClaimTemplate or the ResourceClaim that pods share: `template` is its file and
`template_uid` its uid. It never says what the cluster holds now beyond its state: that is read from `gpuinventory`.
Rows are not deleted, but for one that the API server refused while it was being submitted.
"""

from __future__ import annotations

from typing import Any, ClassVar, Never

from django.conf import settings
from django.db import models

from claims.lifecycle import START, State
from claims.wish import Wish, read
from dra.names import MAX_LABEL, MAX_SUBDOMAIN
from portal.models import Team

MAX_KEY = 40  # characters of a form's number
MAX_UID = 64
MAX_REQUEST_ID = 64
MAX_DIGEST = 64


class GpuRequest(models.Model):
    """What a person asked of the portal. `key` is the form's number: one form, one row, one object."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="gpu_requests")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="gpu_requests")
    namespace = models.CharField(max_length=MAX_LABEL)
    name = models.CharField(max_length=MAX_LABEL)
    query = models.TextField(help_text="The wish, as the query of the form's address.")
    key = models.CharField(max_length=MAX_KEY, unique=True)
    state = models.CharField(
        max_length=16, default=START.value, choices=[(state.value, state.value) for state in State]
    )
    template_uid = models.CharField(max_length=MAX_UID, blank=True, default="")
    template = models.TextField(help_text="The template's file as it was sent; it can't be changed afterwards.")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        indexes: ClassVar = [
            models.Index(fields=["user", "-created_at"], name="gpu_request_by_person"),
            models.Index(fields=["state", "changed_at"], name="gpu_request_due"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(state__in=[str(state) for state in State]), name="gpu_request_state"
            ),
            models.UniqueConstraint(
                fields=["template_uid"], condition=~models.Q(template_uid=""), name="gpu_request_per_template"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def wish(self) -> Wish:
        """What was asked. A row is only written for a query that reads as a wish."""
        wish = read(self.query).wish
        if wish is None:
            raise ValueError(f"GPU request {self.pk} holds no wish: {self.query}")
        return wish


class PastedManifest(models.Model):
    """A workload that somebody pasted into the form. It never changes, so its digest in an address says which it is."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="pasted_manifests")
    digest = models.CharField(max_length=MAX_DIGEST, help_text="SHA-256 of the text's UTF-8, in hex.")
    text = models.TextField()
    pasted_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["-pasted_at", "-pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest", "user"], name="pasted_manifest_once")]

    def __str__(self) -> str:
        return f"{self.digest[:12]} of {self.user}"


class Verb(models.TextChoices):
    """What somebody did, or the portal found."""

    SUBMIT = "submit", "asked for it"
    WITHDRAW = "withdraw", "took it back"
    OBSERVE = "observe", "looked"


class ClassVerb(models.TextChoices):
    """What an operator did about a GPU class."""

    CREATE = "create", "made"
    CHANGE = "change", "changed"
    DELETE = "delete", "deleted"


class AuditLine(models.Model):
    """Who did something, how it ended, in which web request. It is written once; what it is about a subclass says."""

    username = models.CharField(max_length=150, help_text="Who did it; empty where the portal looked by itself.")
    result = models.CharField(max_length=32, help_text="The state reached, or the code of the refusal.")
    detail = models.TextField(blank=True, default="", help_text="The API server's own sentence, if it said one.")
    request_id = models.CharField(max_length=MAX_REQUEST_ID, blank=True, default="")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        ordering: ClassVar = ["at", "pk"]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write the line once; TypeError on a second time."""
        if not self._state.adding:
            raise TypeError("an audit line is not changed")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> Never:
        """TypeError: lines stay."""
        raise TypeError("an audit line is not deleted")


class GpuRequestEvent(AuditLine):
    """The audit line of a GPU request."""

    gpu_request = models.ForeignKey(GpuRequest, null=True, on_delete=models.SET_NULL, related_name="events")
    namespace = models.CharField(max_length=MAX_LABEL)
    name = models.CharField(max_length=MAX_LABEL)
    verb = models.CharField(max_length=16, choices=Verb)

    def __str__(self) -> str:
        return f"{self.username or 'portal'} {self.verb} {self.namespace}/{self.name}: {self.result}"


class GPUClassEvent(AuditLine):
    """The audit line of a GPU class: by its name, since classes are no rows and a deleted one leaves its lines."""

    name = models.CharField(max_length=MAX_SUBDOMAIN, db_index=True)
    verb = models.CharField(max_length=16, choices=ClassVerb)

    def __str__(self) -> str:
        return f"{self.username} {self.verb} GPU class {self.name}: {self.result}"
