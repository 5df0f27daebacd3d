"""What a query would become, without doing it: the files, or why there are none. Reads rows only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from claims import selectors
from claims.manifests import REQUEST_LABEL, Files, render
from claims.manifests.pasted import patch
from claims.refusals import Code, Refusal, RefusalError, refuse
from claims.selectors import ClassOption, pasted_manifest
from claims.services.paste import KEPT
from claims.wish import (
    Bounds,
    ClassFacts,
    Owner,
    Reading,
    Wish,
    Workload,
    judge,
    misnamed,
    read,
    settled,
)
from gpuinventory.selectors import ClaimView, TemplateView, held, resource_claim, resource_claim_template
from gpuinventory.selectors.held import Held
from portal.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A query as read, what is wrong with it, and the files if nothing is.

    `fleet` is what it was judged by. `existing` is the template or claim of the wished name, this form's own or
    another. `manifest` is the workload of the person's own as it was pasted.
    """

    fleet: Held
    reading: Reading
    options: tuple[ClassOption, ...]
    bounds: Bounds
    key: str
    refusals: tuple[Refusal, ...]
    files: Files | None
    existing: TemplateView | ClaimView | None
    manifest: str | None

    @property
    def done(self) -> bool:
        """Whether this form's object is there already, as far as the read model knows."""
        return self.existing is not None and self.existing.labels.get(REQUEST_LABEL) == self.key

    @property
    def chosen(self) -> ClassOption | None:
        """The class that is chosen, if the cluster has it."""
        name = self.reading.values.get("class", "")
        return next((option for option in self.options if option.view.name == name), None)

    @property
    def wish(self) -> Wish | None:
        """The wish that the files are made from."""
        return self.reading.wish if self.files else None


def preview(*, user: User, query: str, key: str) -> Preview:
    """Judge the query by what this person may ask for and what is known of the cluster."""
    fleet = held.current()
    options = selectors.class_options(fleet)
    bounds = selectors.bounds_of(user, options, fleet)
    reading = _read(query, bounds)
    wish = reading.wish
    refusals = judge(wish, bounds) if wish else (*reading.refusals, *misnamed(reading.values, bounds))
    manifest, files = _manifest(user, reading), None
    if wish and not refusals:
        try:
            files = _files(wish, bounds.classes, key, manifest)
        except RefusalError as refused:
            refusals = refused.refusals
    existing = _existing(wish) if wish and files else None
    return Preview(
        fleet=fleet,
        reading=reading,
        options=options,
        bounds=bounds,
        key=key,
        refusals=refusals,
        files=files,
        existing=existing,
        manifest=manifest,
    )


def _existing(wish: Wish) -> TemplateView | ClaimView | None:
    """What has the wished name now, of the kind that would be created."""
    find = resource_claim if wish.owner is Owner.SHARED else resource_claim_template
    return find(wish.namespace, wish.name)


def _read(query: str, bounds: Bounds) -> Reading:
    """The query as read, with what it leaves to the class."""
    reading = read(query)
    facts = bounds.classes.get(reading.values.get("class", ""))
    added = settled(reading, facts) if facts else ()
    return read(urlencode([*reading.pairs, *added])) if added else reading


def _manifest(user: User, reading: Reading) -> str | None:
    """The workload of the person's own that the query names, while it is kept."""
    if reading.values.get("workload") != Workload.OWN:
        return None
    return pasted_manifest(user, reading.values.get("manifest", ""))


def _files(wish: Wish, classes: Mapping[str, ClassFacts], key: str, manifest: str | None) -> Files:
    """RefusalError where the wish's own workload is not kept any more, or can't be used."""
    facts, own = classes[wish.device_class], None
    if wish.workload is Workload.OWN:
        if manifest is None:
            raise RefusalError(refuse(Code.PASTED_GONE, "manifest", kept=KEPT))
        own = patch(manifest, wish, facts)
    return render(wish, facts, key, others=classes, own=own)
