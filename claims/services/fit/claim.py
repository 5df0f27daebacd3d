"""The resource claim that each pod of a wish would bring, read out of the file that would be created."""

from __future__ import annotations

import json
import re
from typing import Final

import yaml

from claims.manifests import Files
from dra.objects import ObjectMeta, ResourceClaim, ResourceClaimSpec, decode

_CHOICE: Final = re.compile(r"/choice-([1-9])")


def choice_of(device_request: str) -> int:
    """Which choice a device request stands for, as `claims.manifests` names them: 0 for the first."""
    found = _CHOICE.search(device_request)
    return int(found[1]) - 1 if found else 0


def claim_of(files: Files) -> ResourceClaim:
    """The claim, named as the file is; InvalidObjectError where the file asks for what we can't read."""
    document = yaml.load(files.template.text, Loader=yaml.CSafeLoader)
    spec, metadata = document["spec"], document["metadata"]
    if document["kind"] == "ResourceClaimTemplate":
        spec = spec["spec"]
    return ResourceClaim(
        metadata=ObjectMeta(name=metadata["name"], namespace=metadata["namespace"]),
        spec=decode(json.dumps(spec).encode(), ResourceClaimSpec),
    )
