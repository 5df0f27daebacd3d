"""A pasted workload: what is put into it, what stays, what is refused and how, and that no text makes it fall over."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from claims.manifests.pasted import MAX_BYTES, patch
from claims.manifests.yaml import Value, document
from claims.refusals import Code, RefusalError
from claims.wish import ClassFacts, Owner, Style, Wish
from dra.extended import IMPLICIT_PREFIX
from tests.claims.yamltexts import NASTY

WISH = Wish(namespace="ml-train", name="trainer", device_class="h100", count=2)
FACTS = ClassFacts(name="h100", driver="gpu.portico.dev")
DEPLOYMENT = """\
# comments go
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null, annotations: {when: 2026-01-31, ratio: "0.5", at: 12:30}}
spec:
  replicas: 0x2
  paused: off
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      resourceClaims:
      - name: nic
        resourceClaimName: fast
      containers:
      - name: main
        image: web:1
        command: [sh, -c, "a\\n\\nb\\n"]
        resources: {requests: {cpu: 0.5}, claims: [{name: nic}]}
      - name: sidecar
        image: log:1
"""
PATCHED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  creationTimestamp: null
  annotations:
    when: "2026-01-31"
    ratio: "0.5"
    at: "12:30"
  namespace: ml-train
spec:
  replicas: 2
  paused: false
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      resourceClaims:
      - name: nic
        resourceClaimName: fast
      - name: gpu
        resourceClaimTemplateName: trainer
      containers:
      - name: main
        image: "web:1"
        command:
        - sh
        - "-c"
        - "a\\n\\nb\\n"
        resources:
          requests:
            cpu: 0.5
          claims:
          - name: nic
          - name: gpu
      - name: sidecar
        image: "log:1"
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: main, image: x}]}\n"


def test_the_devices_are_put_in_and_the_rest_stays() -> None:
    file = patch(DEPLOYMENT, WISH, FACTS)
    assert (
        file.name,
        file.text.replace("image: web:1", 'image: "web:1"').replace("image: log:1", 'image: "log:1"'),
    ) == (
        "workload.yaml",
        PATCHED,
    )


def test_what_was_patched_stays_as_it_is() -> None:
    once = patch(DEPLOYMENT, WISH, FACTS)
    assert patch(once.text, WISH, FACTS) == once


def test_a_shared_claim_takes_the_place_of_a_template() -> None:
    patched = patch(patch(POD, WISH, FACTS).text, replace(WISH, owner=Owner.SHARED, priority="high"), FACTS)
    spec = yaml.safe_load(patched.text)["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "trainer"}]
    assert spec["priorityClassName"] == "high"


@pytest.mark.parametrize(("resource", "named"), [(None, IMPLICIT_PREFIX + "h100"), ("x.io/gpu", "x.io/gpu")])
def test_an_extended_resource_is_a_limit_and_no_claim(resource: str | None, named: str) -> None:
    facts = replace(FACTS, extended_resource=resource)
    spec = yaml.safe_load(patch(POD, replace(WISH, style=Style.EXTENDED), facts).text)["spec"]
    assert spec == {"containers": [{"name": "main", "image": "x", "resources": {"limits": {named: "2"}}}]}


def test_a_cron_job_s_pod_is_found() -> None:
    pod: Value = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    job: dict[str, Value] = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}}
    text = document({**job, "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": pod}}}})
    spec = yaml.safe_load(patch(text, WISH, FACTS).text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}


BOMB = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", Code.PASTED_YAML),
        ("- a\n", Code.PASTED_YAML),
        ("a: [", Code.PASTED_YAML),
        ("a: \x00", Code.PASTED_YAML),
        ("a: !!python/object/apply:os.system [id]", Code.PASTED_YAML),
        (POD + "kind: Job\n", Code.PASTED_YAML),
        ("on: 1", Code.PASTED_YAML),
        ("a: 1e999", Code.PASTED_YAML),
        ("a: 0o", Code.PASTED_YAML),
        ("a: " + "9" * 5000, Code.PASTED_YAML),
        (f"{POD}---\n{POD}", Code.PASTED_DOCUMENTS),
        (BOMB, Code.PASTED_ALIAS),
        ("a: *a", Code.PASTED_ALIAS),
        ("a: " + "[" * 65 + "]" * 65, Code.PASTED_LARGE),
        ("[" * 100_000, Code.PASTED_YAML),
        ("a: [" + "x," * 20_001 + "]", Code.PASTED_LARGE),
        ("x" * (MAX_BYTES + 1), Code.PASTED_SIZE),
        (POD.replace("kind: Pod", "kind: Secret"), Code.PASTED_KIND),
        (POD.replace("v1", "v1beta1"), Code.PASTED_KIND),
        (POD.replace("kind: Pod", "kind: [Pod]"), Code.PASTED_KIND),
        (POD.replace("name: a", "name: a, namespace: other"), Code.PASTED_NAMESPACE),
        (POD.replace("{name: a}", "a"), Code.PASTED_SHAPE),
        (POD.replace("{name: a}", "{}"), Code.PASTED_SHAPE),
        (POD.replace("spec: ", "other: "), Code.PASTED_SHAPE),
        (POD.replace("[{name: main, image: x}]", "[]"), Code.PASTED_SHAPE),
        (POD.replace("[{name: main, image: x}]", "[x]"), Code.PASTED_SHAPE),
        (POD.replace("image: x", "resources: x"), Code.PASTED_SHAPE),
        (POD.replace("image: x", "resources: {claims: x}"), Code.PASTED_SHAPE),
    ],
)
def test_what_can_not_be_used_is_refused_in_words(text: str, code: Code) -> None:
    with pytest.raises(RefusalError) as caught:
        patch(text, WISH, FACTS)
    assert [(refusal.field, refusal.code) for refusal in caught.value.refusals] == [("manifest", code)]


def test_a_fault_names_its_line() -> None:
    with pytest.raises(RefusalError) as caught:
        patch(f"{POD}---\n{POD}", WISH, FACTS)
    assert dict(caught.value.refusals[0].facts) == {"line": "5"}


@given(st.text(max_size=80) | st.text(st.sampled_from("a:-[]{}&*!|>'\"\n #0.e%,?"), max_size=40))
def test_no_text_makes_it_fall_over(text: str) -> None:
    with pytest.raises(RefusalError):
        patch(text, WISH, FACTS)


@pytest.mark.parametrize("text", NASTY)
def test_texts_stay_what_they_were(text: str) -> None:
    pod: dict[str, Value] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": {"text": text}},
    }
    pasted = document({**pod, "spec": {"containers": [{"name": "main", "image": "x"}]}})
    assert yaml.safe_load(patch(pasted, WISH, FACTS).text)["metadata"]["annotations"] == {"text": text}
