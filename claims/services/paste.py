"""Keep a workload that somebody pasted, so that an address can name it by its digest.

It is kept as it came, right or wrong: `claims.manifests.pasted` judges it each time that it is used.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from django.db import transaction

from claims.manifests.pasted import check_size
from claims.models import PastedManifest
from portal.models import User

KEPT: Final = 20  # of each person; the oldest goes first


@transaction.atomic
def paste(user: User, text: str) -> str:
    """The digest, SHA-256 in hex. RefusalError: more than 1 MB, or with a character that no database takes."""
    text = text.replace("\r\n", "\n")  # a form sends lines with both
    check_size(text)
    digest = sha256(text.encode()).hexdigest()
    PastedManifest.objects.update_or_create(user=user, digest=digest, defaults={"text": text})
    newest = PastedManifest.objects.filter(user=user).values_list("pk", flat=True)[:KEPT]
    PastedManifest.objects.filter(user=user).exclude(pk__in=list(newest)).delete()
    return digest
