"""Write `simulator/schema.json`: field names and types of the kinds that the simulator serves.

Made from the OpenAPI document of Kubernetes (`api/openapi-spec/swagger.json` of the Go module k8s.io/kubernetes) and
the CRDs of our chart. Run again when either changes: `python scripts/simulator_schema.py SWAGGER`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from simulator.kinds import KINDS  # noqa: E402  # the script runs from anywhere

CRDS = ROOT / "helm" / "portico" / "crds"
TARGET = ROOT / "simulator" / "schema.json"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
# What the document calls an object although any JSON stands there, or a number may stand for the text.
SPECIAL = {
    QUANTITY: "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
}
KEPT = ("enum", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "pattern", "maxItems", "minItems")

type Node = dict[str, Any]


class Document:
    """The definitions of one OpenAPI document, taken over one by one as they are reached."""

    def __init__(self, definitions: Node) -> None:
        self._definitions = definitions
        self.types: dict[str, Node] = {}

    def root(self, group: str, version: str, kind: str) -> str | None:
        """The short name of the kind's type, with all that it reaches taken over; None where the document lacks it."""
        wanted = {"group": group, "version": version, "kind": kind}
        for name, definition in self._definitions.items():
            if wanted in definition.get("x-kubernetes-group-version-kind", ()) and "properties" in definition:
                return self._take(name)
        return None

    def _take(self, name: str) -> str:
        short = ".".join(name.split(".")[-3:])
        if short not in self.types:
            self.types[short] = {}
            definition = self._definitions[name]
            fields = {key: self.field(value) for key, value in definition.get("properties", {}).items()}
            self.types[short] |= {"fields": fields, "required": definition.get("required", [])}
        return short

    def field(self, schema: Node) -> Node:
        """One field: its type, and how lists of it merge."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/definitions/")
            if name in SPECIAL:
                return {"type": SPECIAL[name]}
            if "properties" not in self._definitions[name]:
                return self.field(self._definitions[name])
            return {"type": "object", "of": self._take(name)}
        return _field(schema, self.field)


def _field(schema: Node, nested: Any) -> Node:
    kept = {key: schema[key] for key in KEPT if key in schema}
    kind = schema.get("type", "any")
    if kind == "array":
        made = {"type": "list", "items": nested(schema["items"])}
        if schema.get("x-kubernetes-list-type") == "map":
            made["keys"] = schema["x-kubernetes-list-map-keys"]
        elif schema.get("x-kubernetes-list-type") == "set" or schema.get("x-kubernetes-patch-strategy") == "merge":
            made["set"] = "x-kubernetes-patch-merge-key" not in schema
        if "x-kubernetes-patch-merge-key" in schema:
            made["merge"] = schema["x-kubernetes-patch-merge-key"]
        return made | kept
    if kind == "object" and "additionalProperties" in schema:
        return {"type": "map", "items": nested(schema["additionalProperties"])} | kept
    return {"type": "any" if kind == "object" else kind} | kept


class Crd:
    """The schema of a custom resource: nested objects become types named by their path."""

    def __init__(self, types: dict[str, Node]) -> None:
        self._types = types

    def take(self, name: str, schema: Node) -> str:
        fields = {key: self._field(f"{name}.{key}", value) for key, value in schema.get("properties", {}).items()}
        self._types[name] = {"fields": fields, "required": schema.get("required", [])} | self._rules(schema)
        return name

    def _field(self, name: str, schema: Node) -> Node:
        preserved = schema.get("x-kubernetes-preserve-unknown-fields", False)
        if "properties" in schema and not preserved:
            return {"type": "object", "of": self.take(name, schema)} | self._default(schema)
        if schema.get("x-kubernetes-int-or-string"):
            return {"type": "quantity"} | self._default(schema)
        return _field(schema, lambda inner: self._field(name, inner)) | self._default(schema) | self._rules(schema)

    @staticmethod
    def _default(schema: Node) -> Node:
        return {"default": schema["default"]} if "default" in schema else {}

    @staticmethod
    def _rules(schema: Node) -> Node:
        """CEL rules, whose texts `simulator.api.rules` knows."""
        found = schema.get("x-kubernetes-validations", ())
        return {"rules": [{"at": each.pop("fieldPath", ""), **each} for each in map(dict, found)]} if found else {}


def build(swagger: Node) -> Node:
    """The whole data file: `kinds` from group/version/kind to a type, and the types."""
    document = Document(swagger["definitions"])
    kinds = {}
    for kind in KINDS:
        if root := document.root(kind.group, kind.version, kind.kind):
            kinds[f"{kind.api_version}/{kind.kind}"] = root
    return {"kinds": kinds | crd_kinds(document.types), "types": document.types}


def crd_kinds(types: dict[str, Node]) -> dict[str, str]:
    """The kinds of the chart's CRDs; their types are added to `types`."""
    kinds = {}
    for file in sorted(CRDS.glob("*.yaml")):
        spec = yaml.safe_load(file.read_text())["spec"]
        name = spec["names"]["kind"]
        for version in spec["versions"]:
            root = Crd(types).take(name, version["schema"]["openAPIV3Schema"])
            types[root]["fields"]["metadata"] = {"type": "object", "of": "meta.v1.ObjectMeta"}
            kinds[f"{spec['group']}/{version['name']}/{name}"] = root
    return kinds


def main() -> None:
    swagger = json.loads(Path(sys.argv[1]).read_text())
    TARGET.write_text(json.dumps(build(swagger), indent=None, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
