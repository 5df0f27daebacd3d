"""The files of a wish, word for word: what people copy must not change unnoticed."""

from __future__ import annotations

from dataclasses import replace

from claims.manifests import render
from claims.wish import ClassFacts, Strategy, Wish
from dra.quantity import parse_quantity
from gpuinventory.gpuclasses import Offer, Part

WISH = Wish(namespace="inference-team", name="reranker", device_class="nvidia-h100-mps")
FACTS = ClassFacts(name="nvidia-h100-mps", driver="gpu.deckhouse.io", extended_resource="gpu.deckhouse.io/h100")
KEY = "3f9a1c5e7b2d4f60"

SHARE = """\
# Each pod that names it gets a resource claim of its own.
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: reranker
  namespace: inference-team
  labels:
    portico.dev/request: "3f9a1c5e7b2d4f60"
spec:
  metadata:
    labels:
      portico.dev/request: "3f9a1c5e7b2d4f60"
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: nvidia-h100-mps
          count: 1
          capacity:
            requests:
              sharePercent: "25"
              memory: "10Gi"
"""

POD = """\
# A pod to start from: put your own image in. For a workload
# of your own copy two lists: spec.resourceClaims, and
# resources.claims of each container that uses the device.
apiVersion: v1
kind: Pod
metadata:
  name: reranker
  namespace: inference-team
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: registry.example/replace-me:latest
    resources:
      claims:
      - name: gpu
  resourceClaims:
  - name: gpu
    resourceClaimTemplateName: reranker
"""

QUOTA = """\
# For an administrator. There is room for 4 devices at a time,
# which is one pod of this request: raise it to what the team
# may have. A share counts as a whole device.
apiVersion: v1
kind: ResourceQuota
metadata:
  name: devices-nvidia-h100-mps
  namespace: inference-team
spec:
  hard:
    nvidia-h100-mps.deviceclass.resource.k8s.io/devices: "4"
    requests.deviceclass.resource.kubernetes.io/nvidia-h100-mps: "4"
    requests.gpu.deckhouse.io/h100: "4"
"""


def test_a_share_consumes_its_percentage_and_its_memory() -> None:
    assert render(replace(WISH, share=25, memory=parse_quantity("10Gi")), FACTS, KEY).template.text == SHARE


def test_memory_of_a_whole_device_is_a_floor_and_consumes_nothing() -> None:
    template = render(replace(WISH, memory=parse_quantity("40Gi"), count=2), FACTS, KEY).template.text
    assert "capacity:\n" not in template
    assert (
        "          selectors:\n"
        "          - cel:\n"
        "              expression: |-\n"
        "                has(device.capacity[device.driver].memory) &&\n"
        '                device.capacity[device.driver].memory.compareTo(quantity("40Gi")) >= 0\n'
        "          count: 2\n"
    ) in template


def test_a_whole_device_without_memory_asks_for_nothing_more() -> None:
    template = render(WISH, FACTS, KEY).template.text
    assert template.endswith("        exactly:\n          deviceClassName: nvidia-h100-mps\n          count: 1\n")


def test_mps_is_a_config_of_the_class_s_driver() -> None:
    template = render(replace(WISH, strategy=Strategy.MPS), FACTS, KEY).template.text
    assert template.endswith(
        "      config:\n"
        "      - requests:\n"
        "        - gpu\n"
        "        opaque:\n"
        "          driver: gpu.deckhouse.io\n"
        "          parameters:\n"
        "            apiVersion: resource.gpu.deckhouse.io/v1alpha1\n"
        "            kind: GpuConfig\n"
        "            sharing:\n"
        "              strategy: MPS\n"
    )


def kinds_of_configs(text: str) -> list[str]:
    return [
        line.removeprefix("            kind: ") for line in text.splitlines() if line.startswith("            kind: ")
    ]


def test_mps_on_a_mig_device_is_a_config_of_its_own_kind() -> None:
    by_profile = render(replace(WISH, strategy=Strategy.MPS, profile="3g.40gb"), FACTS, KEY).template.text
    assert kinds_of_configs(by_profile) == ["MigDeviceConfig"]
    only_parts = offer(wholes=False, parts=(Part("3g.40gb", 0),))
    by_class = render(replace(WISH, strategy=Strategy.MPS), replace(FACTS, offer=only_parts), KEY).template.text
    assert kinds_of_configs(by_class) == ["MigDeviceConfig"]


def test_a_class_of_whole_cards_and_mig_devices_gets_both_kinds_and_names_no_request() -> None:
    either = offer(wholes=True, parts=(Part("3g.40gb", 0),))
    template = render(replace(WISH, strategy=Strategy.MPS), replace(FACTS, offer=either), KEY).template.text
    assert kinds_of_configs(template) == ["GpuConfig", "MigDeviceConfig"]
    assert "- requests:" not in template


def offer(*, wholes: bool, parts: tuple[Part, ...]) -> Offer:
    return Offer(drivers=("gpu.deckhouse.io",), wholes=wholes, sizes=(), parts=parts, share=None, slots=None)


def test_the_pod_uses_the_template() -> None:
    assert render(WISH, FACTS, KEY).pod.text == POD


def test_the_quota_counts_devices_under_every_name_of_the_class() -> None:
    assert render(replace(WISH, count=4), FACTS, KEY).quota.text == QUOTA


def test_a_class_name_too_long_for_an_extended_resource_is_counted_by_its_own_key() -> None:
    name = "a" * 64
    quota = render(replace(WISH, device_class=name), ClassFacts(name=name), KEY).quota.text
    assert quota.endswith(f'  hard:\n    {name}.deviceclass.resource.k8s.io/devices: "1"\n')


def test_the_same_wish_gives_the_same_bytes() -> None:
    first, second = render(WISH, FACTS, KEY).template, render(replace(WISH), replace(FACTS), KEY).template
    assert first.content == second.content
    assert first.digest == second.digest
    assert first.digest != render(replace(WISH, count=2), FACTS, KEY).template.digest
