"""Make or change a GPUClass, and the DeviceClass that it generates, as the person who asks.

1. Selectors that the API server would refuse are refused in our own words.
2. Both objects pass a server dry run. A new name that exists, or a DeviceClass of that name that is another's, is
   refused; so is an object that somebody changed since the person looked (its resourceVersion).
3. The GPUClass is applied, then the DeviceClass with the GPUClass as its owner. Where only the first was written, doing
   it again writes the second.

The audit has a line for the GPUClass once it is written or deleted, and one for each refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from claims.models import ClassVerb
from claims.refusals import Code, RefusalError, refuse
from claims.services.audit import Deed, record_class, record_class_refusal
from claims.services.upstream import Attempt, refusal_of
from dra.kube import requests
from dra.kube.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from dra.kube.port import Cluster
from dra.kube.requests import DEVICE_CLASSES, FIELD_MANAGER, GPU_CLASSES, Person, Resource, path_of
from dra.objects import DeviceClass, GPUClass, ObjectMeta, decode, to_json
from dra.objects.meta import encode_value
from gpuinventory.gpuclasses import Check
from portal.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the person wants. `gpu_class` carries the resourceVersion that was looked at, "" for a new class.

    `seen` is the check of its generated selectors, None where an existing DeviceClass serves.
    """

    user: User
    person: Person
    gpu_class: GPUClass
    seen: Check | None = None
    request_id: str = ""

    @property
    def is_new(self) -> bool:
        """Whether the class must not exist yet."""
        return not self.gpu_class.metadata.resource_version


def put_gpu_class(change: Change, *, cluster: Cluster) -> GPUClass:
    """The class as stored; RefusalError says what is wrong, and then nothing was written but what step 3 names."""
    verb = ClassVerb.CREATE if change.is_new else ClassVerb.CHANGE
    deed, name = Deed(verb, change.user.username, change.request_id), change.gpu_class.metadata.name
    with _refusals_recorded(deed, name):
        _refuse_unfit(change.seen)
        writer = _Writer(cluster, change.person, name)
        former = writer.device_class()
        writer.refuse_foreign(former, change.gpu_class)
        writer.dry_run(change)
        stored = decode(writer.apply(GPU_CLASSES, change.gpu_class), GPUClass)
        record_class(deed, name, "stored")
        if stored.generated is not None:
            writer.apply(DEVICE_CLASSES, stored.generated)
        elif former is not None and _owned(former, stored):
            writer.delete_own(former)
    return stored


def delete_gpu_class(
    gpu_class: GPUClass, *, user: User, person: Person, cluster: Cluster, request_id: str = ""
) -> None:
    """Remove the class if it still is that one, and its own DeviceClass. Claims that exist stay.

    The garbage collector removes the DeviceClass too, half a minute late where the CRD is new, and else at once.
    """
    deed, name = Deed(ClassVerb.DELETE, user.username, request_id), gpu_class.metadata.name
    with _refusals_recorded(deed, name):
        writer = _Writer(cluster, person, name)
        own = writer.device_class()
        writer.delete(gpu_class)
        record_class(deed, name, "deleted")
        if own is not None and _owned(own, gpu_class):
            writer.delete_own(own)


@contextmanager
def _refusals_recorded(deed: Deed, name: str) -> Iterator[None]:
    """A line for the first of what is refused within, which goes on."""
    try:
        yield
    except RefusalError as refused:
        record_class_refusal(deed, name, refused.refusals[0])
        raise


def _refuse_unfit(seen: Check | None) -> None:
    unfit = [each for each in seen.findings if each.blocking] if seen else []
    if unfit:
        raise RefusalError(
            *(refuse(Code.SELECTOR_UNFIT, "selectors", number=each.selector, error=each.error) for each in unfit)
        )


def _body(wanted: GPUClass | DeviceClass) -> bytes:
    """The object as apply wants it: a struct leaves out its kind, which it can't be without."""
    return encode_value({"apiVersion": wanted.api_version, "kind": wanted.kind, **to_json(wanted)})


def _owned(device_class: DeviceClass, gpu_class: GPUClass) -> bool:
    return any(each.uid == gpu_class.metadata.uid for each in device_class.metadata.owner_references)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Requests about one name, each sent as the person; a no of the cluster becomes a refusal."""

    cluster: Cluster
    person: Person
    name: str

    def device_class(self) -> DeviceClass | None:
        """The DeviceClass of that name, if there is one."""
        request = requests.get(DEVICE_CLASSES, self.name).as_person(self.person)
        try:
            return decode(self.cluster.send(request), DeviceClass)
        except NotFoundError:
            return None
        except KubeError as error:
            raise self._refused(error, "get", DEVICE_CLASSES) from error

    def refuse_foreign(self, found: DeviceClass | None, gpu_class: GPUClass) -> None:
        """A DeviceClass that others use is not taken over."""
        if found is not None and gpu_class.spec.device_class.generated is not None and not _owned(found, gpu_class):
            raise RefusalError(refuse(Code.DEVICE_CLASS_TAKEN, "name", name=self.name))

    def dry_run(self, change: Change) -> None:
        """Ask for everything but storing."""
        if change.is_new:
            self._send(requests.create(GPU_CLASSES, _body(change.gpu_class), dry_run=True), "create", GPU_CLASSES)
        else:
            self.apply(GPU_CLASSES, change.gpu_class, dry_run=True)
        made = change.gpu_class.generated
        if made is not None:
            named = ObjectMeta(name=self.name)  # before the GPUClass is stored it can be no owner
            self.apply(DEVICE_CLASSES, DeviceClass(metadata=named, spec=made.spec), dry_run=True)

    def apply(self, resource: Resource, wanted: GPUClass | DeviceClass, *, dry_run: bool = False) -> bytes:
        """Server-side apply under the portal's field manager."""
        path = path_of(resource, name=self.name)
        request = requests.apply(path, _body(wanted), manager=FIELD_MANAGER, dry_run=dry_run)
        return self._send(request, "patch", resource)

    def delete(self, gpu_class: GPUClass) -> None:
        """Only the class of that uid."""
        self._send(requests.delete(GPU_CLASSES, self.name, uid=gpu_class.metadata.uid), "delete", GPU_CLASSES)

    def delete_own(self, device_class: DeviceClass) -> None:
        """Only the DeviceClass of that uid; gone is done, since the garbage collector may have come first."""
        request = requests.delete(DEVICE_CLASSES, self.name, uid=device_class.metadata.uid).as_person(self.person)
        try:
            self.cluster.send(request)
        except NotFoundError:
            return
        except KubeError as error:
            raise self._refused(error, "delete", DEVICE_CLASSES) from error

    def _send(self, request: requests.Request, verb: str, resource: Resource) -> bytes:
        try:
            return self.cluster.send(request.as_person(self.person))
        except KubeError as error:
            raise self._refused(error, verb, resource) from error

    def _refused(self, error: KubeError, verb: str, resource: Resource) -> RefusalError:
        upstream = str(error)
        match error:
            case AlreadyExistsError():
                return RefusalError(refuse(Code.GPU_CLASS_EXISTS, "name", name=self.name, upstream=upstream))
            case ConflictError():
                return RefusalError(refuse(Code.GPU_CLASS_CHANGED, name=self.name, upstream=upstream))
            case NotFoundError():
                return RefusalError(refuse(Code.GPU_CLASS_NOT_THERE, name=self.name, upstream=upstream))
            case _:
                named = f"{resource.plural}.{resource.group}"
                return RefusalError(refusal_of(error, Attempt(verb, self.person, "", self.name, named)))
