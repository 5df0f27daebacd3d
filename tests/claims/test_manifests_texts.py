"""More files word for word: alternatives, slices, time slots, shared claims, workloads, and what lies around.

Written by hand after the API's own types (resource.k8s.io/v1, apps/v1, autoscaling/v2).
"""

from __future__ import annotations

from dataclasses import replace

from claims.manifests import render
from claims.wish import Choice, ClassFacts, Owner, Wish, Workload
from dra.quantity import parse_quantity

WISH = Wish(namespace="ml-train", name="trainer", device_class="h100")
FACTS = ClassFacts(name="h100", driver="gpu.portico.dev", extended_resource="gpu.portico.dev/h100")
KEY = "3f9a1c5e7b2d4f60"


def text(wish: Wish, name: str) -> str:
    (file,) = (each for each in render(wish, FACTS, KEY).all if each.name == name)
    return file.text


def requests(wish: Wish) -> str:
    """What the template asks for, without what stands above and the indentation of a template."""
    lines = text(wish, "template.yaml").partition("      requests:\n")[2].splitlines()
    return "".join(f"{line.removeprefix('      ')}\n" for line in lines)


def test_alternatives_are_tried_in_their_order() -> None:
    wish = replace(
        WISH,
        count=2,
        alternatives=(
            Choice(device_class="a100", count=4),
            Choice(device_class="h100", share=50, memory=parse_quantity("20Gi")),
        ),
    )
    assert requests(wish) == (
        "- name: gpu\n"
        "  firstAvailable:\n"
        "  - name: choice-1\n"
        "    deviceClassName: h100\n"
        "    count: 2\n"
        "  - name: choice-2\n"
        "    deviceClassName: a100\n"
        "    count: 4\n"
        "  - name: choice-3\n"
        "    deviceClassName: h100\n"
        "    count: 1\n"
        "    capacity:\n"
        "      requests:\n"
        '        sharePercent: "50"\n'
        '        memory: "20Gi"\n'
    )


def test_a_slice_is_asked_for_by_its_profile() -> None:
    assert requests(replace(WISH, profile="1g.20gb")) == (
        "- name: gpu\n"
        "  exactly:\n"
        "    deviceClassName: h100\n"
        "    selectors:\n"
        "    - cel:\n"
        "        expression: |-\n"
        "          has(device.attributes[device.driver].migProfile) &&\n"
        '          device.attributes[device.driver].migProfile == "1g.20gb"\n'
        "    count: 1\n"
    )


def test_slots_of_a_device_that_is_shared_in_time_are_consumed() -> None:
    assert requests(replace(WISH, slots=3)) == (
        "- name: gpu\n"
        "  exactly:\n"
        "    deviceClassName: h100\n"
        "    count: 1\n"
        "    capacity:\n"
        "      requests:\n"
        '        slots: "3"\n'
    )


def test_a_claim_that_pods_share() -> None:
    assert text(replace(WISH, owner=Owner.SHARED), "claim.yaml") == (
        "# All pods that name it share its devices: up to 256, in this namespace.\n"
        "apiVersion: resource.k8s.io/v1\n"
        "kind: ResourceClaim\n"
        "metadata:\n"
        "  name: trainer\n"
        "  namespace: ml-train\n"
        "  labels:\n"
        f'    portico.dev/request: "{KEY}"\n'
        "spec:\n"
        "  devices:\n"
        "    requests:\n"
        "    - name: gpu\n"
        "      exactly:\n"
        "        deviceClassName: h100\n"
        "        count: 1\n"
    )


AUTOSCALER = """\
# Each new replica takes devices of its own, as far as there are any.
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: trainer
  namespace: ml-train
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: trainer
  minReplicas: 2
  maxReplicas: 5
  metrics:
  - type: Resource
    resource:
      name: cpu
      target:
        type: Utilization
        averageUtilization: 80
"""
SCALED = """\
# A deployment to start from: put your own image in. For a workload
# of your own copy two lists: spec.resourceClaims, and
# resources.claims of each container that uses the device.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
  namespace: ml-train
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: trainer
  template:
    metadata:
      labels:
        app.kubernetes.io/name: trainer
    spec:
      containers:
      - name: main
        image: registry.example/replace-me:latest
        resources:
          requests:
            cpu: "1"
          claims:
          - name: gpu
      resourceClaims:
      - name: gpu
        resourceClaimTemplateName: trainer
"""


def test_an_autoscaler_owns_the_number_of_replicas() -> None:
    wish = replace(WISH, workload=Workload.DEPLOYMENT, autoscale=(2, 5))
    assert text(wish, "autoscaler.yaml") == AUTOSCALER
    assert text(wish, "deployment.yaml") == SCALED


README = """\
# trainer

GPUs of the class `h100` in the namespace `ml-train`.

The file of the claim costs nothing by itself: devices are held from the moment a pod is placed until it ends.

## Apply

Put your own image into `job.yaml`. In this folder:

    kubectl apply -k .

or

    kubectl apply --namespace=ml-train --filename=template.yaml --filename=job.yaml

This applies:

- `template.yaml`
- `job.yaml`

`quota.yaml` is for an administrator and is not applied with the rest.

## Take back

    kubectl delete -k .
"""
KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ml-train
resources:
- template.yaml
- job.yaml
"""


def test_what_lies_around_a_job() -> None:
    wish = replace(WISH, workload=Workload.JOB)
    assert text(wish, "README.md") == README
    assert text(wish, "kustomization.yaml") == KUSTOMIZATION
    command = "kubectl apply --namespace=ml-train --filename=template.yaml --filename=job.yaml"
    assert render(wish, FACTS, KEY).command == command


def test_all_that_is_applied_is_one_file_of_several_documents() -> None:
    files = render(replace(WISH, workload=Workload.JOB), FACTS, KEY)
    template, job = (file.text for file in files.applied)
    assert files.together.text == f"{template}---\n{job}"
