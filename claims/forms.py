"""The editor's fields of a GPU class, to the object and back. Shape only: rules stand in the CRD, and the API server's
own sentence says which of them was broken.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from django import forms

from claims.refusals import Code, RefusalError, refuse
from dra.errors import InvalidObjectError
from dra.objects import GPUClass, decode, to_json
from dra.objects.meta import encode_value
from gpuinventory.gpuclasses import GPUClassView

GENERATED, NAMED = "generated", "name"
_MODES: Final = (
    ("any", "Any: the person chooses"), ("whole", "Whole device"), ("slice", "Slice of a device (MIG)"),
    ("share", "Share of a device"), ("timesliced", "Time-sliced"), ("vfio", "Passed through (VFIO)"),
)  # fmt: skip
_STATES: Final = (("open", "Open"), ("paused", "Paused, with a message"), ("replaced", "Replaced by another class"))
_BETWEEN: Final = re.compile(r"\n[ \t]*\n")


def _text(label: str, most: int, *, required: bool = False, help_text: str = "") -> forms.CharField:
    return forms.CharField(label=label, max_length=most, required=required, help_text=help_text)


def _area(label: str, rows: int, help_text: str) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows, "spellcheck": "false"})
    return forms.CharField(label=label, required=False, max_length=400_000, widget=widget, help_text=help_text)


def _number(label: str, *, required: bool = True) -> forms.IntegerField:
    return forms.IntegerField(label=label, required=required, min_value=0, max_value=1_000_000)


class GPUClassForm(forms.Form):
    """What an operator types about a class."""

    name = _text("Name", 253, required=True, help_text="Small letters, digits, dots and dashes, such as h100-whole.")
    title = _text("Title", 80, required=True, help_text="What people read, such as H100 80 GB, whole card.")
    description = _area("Description", 3, "What it is for.")
    serve = forms.ChoiceField(
        label="Which DeviceClass serves",
        choices=((NAMED, "One that exists"), (GENERATED, "Its own, made with it")),
        widget=forms.RadioSelect,
    )
    device_class = _text("Existing DeviceClass", 253)
    selectors = _area("Selectors (CEL)", 6, "A device is taken where all are true. Put an empty line between two.")
    config = _area("Configuration (JSON)", 3, 'As in a DeviceClass: [{"opaque": {"driver": …, "parameters": …}}]')
    extended_resource_name = _text("Extended resource", 253, help_text="For pods without claims: example.com/h100.")
    mode = forms.ChoiceField(label="Mode", choices=_MODES)
    count_min, count_default, count_max = _number("Least"), _number("Default"), _number("Most")
    memory_min, memory_default, memory_max = _text("Least", 20), _text("Default", 20), _text("Most", 20)
    share_min, share_default = _number("Least", required=False), _number("Default", required=False)
    share_max, share_step = _number("Most", required=False), _number("Step", required=False)
    namespaces = _text("Namespaces", 20_000, help_text="With spaces between them; empty for all.")
    price_per_hour = _text("Price of a whole device per hour", 12)
    order = _number("Order", required=False)
    state = forms.ChoiceField(label="State", choices=_STATES)
    message = _text("Message", 400)
    replaced_by = _text("Replaced by", 253)
    resource_version = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    uid = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def faults(self) -> list[tuple[str, str, str]]:
        """Field id, label and sentence of everything that is wrong, as `partials/_errors.html` takes them."""
        return [
            (self[name].id_for_label, str(self[name].label), str(sentence))
            for name, sentences in self.errors.items()
            for sentence in sentences
        ]

    @property
    def expressions(self) -> tuple[str, ...]:
        """The selectors as typed, also of a form that lacks something else."""
        return split(self.data.get("selectors", "")) if self.is_bound else split(self.initial.get("selectors", ""))

    @property
    def generates(self) -> bool:
        """Whether the class makes its own DeviceClass."""
        return bool((self.data if self.is_bound else self.initial).get("serve") == GENERATED)

    def gpu_class(self) -> GPUClass:
        """The object of a valid form; RefusalError where the configuration is no JSON of that shape."""
        values = self.cleaned_data
        identity = {"resourceVersion": values["resource_version"], "uid": values["uid"]}
        metadata = {"name": values["name"], **{key: text for key, text in identity.items() if text}}
        try:
            return decode(encode_value({"metadata": metadata, "spec": self._spec()}), GPUClass)
        except InvalidObjectError as error:
            raise RefusalError(refuse(Code.CONFIG_SHAPE, "config", error=error)) from error

    def _spec(self) -> dict[str, Any]:
        values = self.cleaned_data
        plain = {
            "title": values["title"],
            "description": values["description"],
            "deviceClass": self._devices(),
            "mode": values["mode"],
            "count": self._group("count", "min", "default", "max"),
            "memory": self._group("memory", "min", "default", "max"),
            "share": self._group("share", "min", "default", "max", "step"),
            "namespaces": values["namespaces"].split(),
            "pricePerHour": values["price_per_hour"],
            "order": values["order"],
            "state": values["state"],
            "message": values["message"],
            "replacedBy": values["replaced_by"],
        }
        return {key: value for key, value in plain.items() if value not in ("", None, {}, [])}

    def _devices(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values["serve"] == NAMED:
            return {"name": values["device_class"]}
        made = {
            "selectors": [{"cel": {"expression": each}} for each in self.expressions],
            "config": _json(values["config"]),
            "extendedResourceName": values["extended_resource_name"],
        }
        return {GENERATED: {key: value for key, value in made.items() if value or key == "selectors"}}

    def _group(self, name: str, *keys: str) -> dict[str, Any]:
        values = {key: self.cleaned_data[f"{name}_{key}"] for key in keys}
        return {key: value for key, value in values.items() if value not in ("", None)}


def split(text: str) -> tuple[str, ...]:
    """Selectors out of a text with empty lines between them."""
    return tuple(each.strip() for each in _BETWEEN.split(text.replace("\r\n", "\n")) if each.strip())


def initial_of(gpu_class: GPUClass) -> dict[str, Any]:
    """The form's values for a class that exists."""
    spec, made = gpu_class.spec, gpu_class.spec.device_class.generated
    shares = "share" in to_json(gpu_class)["spec"] or spec.mode == "share"
    values: dict[str, Any] = {
        "name": gpu_class.metadata.name,
        "resource_version": gpu_class.metadata.resource_version,
        "uid": gpu_class.metadata.uid,
        "serve": GENERATED if made else NAMED,
        "device_class": spec.device_class.name or "",
        "namespaces": " ".join(spec.namespaces),
    }
    if made is not None:
        texts = [each.cel.expression for each in made.selectors if each.cel]
        values["selectors"] = "\n\n".join(_BETWEEN.sub("\n", text) for text in texts)
        values["config"] = json.dumps([to_json(each) for each in made.config], indent=2) if made.config else ""
        values["extended_resource_name"] = made.extended_resource_name or ""
    for key in ("title", "description", "mode", "price_per_hour", "order", "state", "message", "replaced_by"):
        values[key] = getattr(spec, key)
    groups = {"count": spec.count, "memory": spec.memory, **({"share": spec.share} if shares else {})}
    bounds = ((name, group, key) for name, group in groups.items() for key in group.__struct_fields__)
    return values | {f"{name}_{key}": getattr(group, key) for name, group, key in bounds}


def initial_for_new(view: GPUClassView | None, selectors: tuple[str, ...]) -> dict[str, Any]:
    """The values of a new class: like that one, whose DeviceClass has these selectors, or nearly empty."""
    empty = {"serve": GENERATED, "mode": "any", "state": "open", "count_min": 1, "count_default": 1, "count_max": 8}
    if view is None:
        return empty
    like = {"title": view.spec.title, "mode": view.spec.mode, "device_class": view.device_class}
    if not view.selectors:
        return empty | like | {"serve": NAMED}
    return empty | like | {"selectors": "\n\n".join((*selectors, *view.selectors))}


def _json(text: str) -> object:
    try:
        return json.loads(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        raise RefusalError(refuse(Code.CONFIG_SHAPE, "config", error=error)) from error
