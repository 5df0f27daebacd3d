"""Submit a wish: make its ResourceClaimTemplate, or the ResourceClaim that pods share, as the person who asks, once.

One form, one row, one object, however often it is sent:

1. A row with this form's number answers a repeated submit.
2. What would be sent must be what the person saw; a server dry run must accept it. Until here nothing is written.
3. The row is written (submitting), then the object is POSTed, then the row is confirmed.
4. A name that exists is done only if the object carries this form's own label. Where the answer to the POST is lost,
   the row stays submitting and `advance` finds out by reading.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from claims.lifecycle import EXISTING, FINAL, Event, State, move
from claims.manifests import File
from claims.models import GpuRequest, Verb
from claims.refusals import Code, Refusal, RefusalError, refuse
from claims.services.audit import Deed, record, record_refusal
from claims.services.objects import own_object, resource_of
from claims.services.preview import preview
from claims.services.upstream import Attempt, refusal_of
from claims.wish import Wish, write
from dra.kube import requests
from dra.kube.errors import AlreadyExistsError, BusyError, KubeError, UnreachableError
from dra.kube.port import Cluster
from dra.kube.requests import Person
from dra.kube.responses import Header
from dra.objects import decode
from portal.models import TeamNamespace, User


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What the form sent: the wish's query, the form's number, and the digest of the file that was shown."""

    user: User
    person: Person
    query: str
    key: str
    digest: str
    request_id: str = ""


def submit(submission: Submission, *, cluster: Cluster) -> GpuRequest:
    """The row of this form; RefusalError says what is wrong, and then no object and no row was made."""
    seen = preview(user=submission.user, query=submission.query, key=submission.key)
    if seen.wish is None or seen.files is None:
        raise RefusalError(*seen.refusals)
    if not seen.files.creatable:
        raise RefusalError(refuse(Code.FORM_FILES_ONLY, name=seen.wish.name))
    attempt = _Attempt(submission, seen.wish, seen.files.template, cluster)
    row = attempt.known_row()
    if row is None:
        attempt.refuse_unless_as_shown()
        attempt.dry_run()
        row = attempt.write_row()
    return row if row.state in EXISTING | FINAL else attempt.create(row)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The steps of one submit, over what does not change while it runs."""

    submission: Submission
    wish: Wish
    file: File
    cluster: Cluster

    def known_row(self) -> GpuRequest | None:
        """The row that this form made before. Another person's, or one for another wish, is refused."""
        row = GpuRequest.objects.filter(key=self.submission.key).first()
        if row is not None:
            self._refuse_foreign(row)
        return row

    def refuse_unless_as_shown(self) -> None:
        """The bytes must be those of the preview."""
        if self.file.digest != self.submission.digest:
            raise RefusalError(refuse(Code.FORM_CHANGED, name=self.wish.name))

    def dry_run(self) -> None:
        """Ask the API server for everything but storing: names, rights, admission, quota, fields."""
        try:
            self._post(self.file.content, dry_run=True)
        except AlreadyExistsError as error:
            if self._own_uid() is None:
                raise self._refused(error) from error
        except KubeError as error:
            raise self._refused(error) from error

    def write_row(self) -> GpuRequest:
        """The row before the object, so that nothing exists in the cluster that we do not know of."""
        row, _ = GpuRequest.objects.get_or_create(
            key=self.submission.key,
            defaults={
                "user": self.submission.user,
                "team": TeamNamespace.objects.get(namespace=self.wish.namespace).team,
                "namespace": self.wish.namespace,
                "name": self.wish.name,
                "query": write(self.wish),
                "template": self.file.text,
            },
        )
        self._refuse_foreign(row)
        return row

    def create(self, row: GpuRequest) -> GpuRequest:
        """POST, and confirm the row. A definite no removes the row again; no answer leaves it to `advance`."""
        if row.state == State.NOT_CREATED:
            row.state = move(State.NOT_CREATED, Event.SUBMIT)
            row.save(update_fields=["state", "changed_at"])
        try:
            uid = self._posted_uid(row.template.encode())
        except (UnreachableError, BusyError):
            record(self._deed, row)
            return row
        except KubeError as error:
            row.delete()
            raise self._refused(error) from error
        return self._confirm(row, uid)

    def _posted_uid(self, content: bytes) -> str:
        try:
            return decode(self._post(content), Header).metadata.uid
        except AlreadyExistsError:
            uid = self._own_uid()
            if uid is None:
                raise
            return uid

    @transaction.atomic
    def _confirm(self, row: GpuRequest, uid: str) -> GpuRequest:
        locked = GpuRequest.objects.select_for_update().get(pk=row.pk)
        before = State(locked.state)
        locked.state, locked.template_uid = move(before, Event.CONFIRM), uid
        locked.save(update_fields=["state", "template_uid", "changed_at"])
        if locked.state != before:  # of two submits at once only the first is an event
            record(self._deed, locked)
        return locked

    def _post(self, content: bytes, *, dry_run: bool = False) -> bytes:
        request = requests.create(
            resource_of(self.wish), content, namespace=self.wish.namespace, yaml=True, dry_run=dry_run
        )
        return self.cluster.send(request.as_person(self.submission.person))

    def _own_uid(self) -> str | None:
        try:
            found = own_object(self.cluster, self.wish, key=self.submission.key, person=self.submission.person)
        except KubeError as error:
            raise self._refused(error) from error
        return found.uid if found else None

    def _refuse_foreign(self, row: GpuRequest) -> None:
        if row.user_id != self.submission.user.pk or row.wish != self.wish:
            raise RefusalError(refuse(Code.FORM_USED))

    def _refused(self, error: KubeError) -> RefusalError:
        attempt = Attempt(
            "create", self.submission.person, self.wish.namespace, self.wish.name, resource_of(self.wish).full_name
        )
        refusal: Refusal = refusal_of(error, attempt)
        record_refusal(self._deed, (self.wish.namespace, self.wish.name), refusal)
        return RefusalError(refusal)

    @property
    def _deed(self) -> Deed:
        return Deed(Verb.SUBMIT, self.submission.user.username, self.submission.request_id)
