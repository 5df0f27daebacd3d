"""What presets add, word for word, written by hand after core/v1, apps/v1, and kfp 2."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claims.manifests import render
from claims.wish import ClassFacts, Preset, Style, Wish, Workload

WISH = Wish(namespace="ml-train", name="trainer", device_class="h100")
FACTS = ClassFacts(name="h100", driver="gpu.portico.dev", extended_resource="gpu.portico.dev/h100")
KEY = "3f9a1c5e7b2d4f60"


def text(wish: Wish, name: str) -> str:
    (file,) = (each for each in render(wish, FACTS, KEY).all if each.name == name)
    return file.text


PIPELINE = '''\
"""A step of a Kubeflow pipeline that asks for GPUs: put your own image in."""

from kfp import dsl


@dsl.container_component
def step():
    return dsl.ContainerSpec(image="registry.example/replace-me:latest")


@dsl.pipeline(name="trainer")
def pipeline():
    step().set_accelerator_type("gpu.portico.dev/h100").set_accelerator_limit(2)
'''


def test_a_pipeline_names_the_extended_resource() -> None:
    wish = replace(WISH, count=2, preset=Preset.KUBEFLOW, style=Style.EXTENDED)
    assert text(wish, "pipeline.py") == PIPELINE
    assert "put your own image in" in text(wish, "README.md")
    by_claims = render(replace(wish, style=Style.CLAIMS), FACTS, KEY)
    assert "pipeline.py" not in {file.name for file in by_claims.all}
    assert "names an extended resource and no claim" in text(replace(wish, style=Style.CLAIMS), "README.md")


NOTEBOOK = """\
# A stateful set to start from: put your own image in. For a workload
# of your own copy two lists: spec.resourceClaims, and
# resources.claims of each container that uses the device.
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: trainer
  namespace: ml-train
spec:
  serviceName: trainer
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: trainer
  template:
    metadata:
      labels:
        app.kubernetes.io/name: trainer
    spec:
      securityContext:
        fsGroup: 100
      containers:
      - name: main
        image: registry.example/replace-me:latest
        ports:
        - name: http
          containerPort: 8888
        volumeMounts:
        - name: home
          mountPath: "/home/jovyan"
        - name: shm
          mountPath: "/dev/shm"
        resources:
          claims:
          - name: gpu
      volumes:
      - name: shm
        emptyDir:
          medium: Memory
      resourceClaims:
      - name: gpu
        resourceClaimTemplateName: trainer
  volumeClaimTemplates:
  - metadata:
      name: home
    spec:
      accessModes:
      - ReadWriteOnce
      resources:
        requests:
          storage: "10Gi"
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: trainer
  namespace: ml-train
spec:
  selector:
    app.kubernetes.io/name: trainer
  ports:
  - name: http
    port: 8888
    targetPort: http
"""


def test_a_notebook_keeps_its_home_and_has_an_address() -> None:
    wish = replace(WISH, preset=Preset.NOTEBOOK, workload=Workload.STATEFUL_SET)
    assert text(wish, "statefulset.yaml") == NOTEBOOK
    assert text(wish, "service.yaml") == SERVICE
    assert "kubectl port-forward --namespace=ml-train statefulset/trainer 8888" in text(wish, "README.md")
    assert "volume.yaml" not in {file.name for file in render(wish, FACTS, KEY).all}


VOLUME = """\
# What stays when the pod goes. One node at a time can use it.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: trainer-cache
  namespace: ml-train
spec:
  accessModes:
  - ReadWriteOnce
  resources:
    requests:
      storage: "50Gi"
"""
NIM = """\
    spec:
      securityContext:
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
      imagePullSecrets:
      - name: ngc-secret
      containers:
      - name: main
        image: registry.example/replace-me:latest
        ports:
        - name: http
          containerPort: 8000
        env:
        - name: NGC_API_KEY
          valueFrom:
            secretKeyRef:
              name: ngc-api
              key: NGC_API_KEY
        startupProbe:
          httpGet:
            path: "/v1/health/ready"
            port: http
          periodSeconds: 10
          failureThreshold: 180
        readinessProbe:
          httpGet:
            path: "/v1/health/ready"
            port: http
          periodSeconds: 10
        livenessProbe:
          httpGet:
            path: "/v1/health/live"
            port: http
          periodSeconds: 10
        volumeMounts:
        - name: cache
          mountPath: "/opt/nim/.cache"
        - name: shm
          mountPath: "/dev/shm"
        resources:
          claims:
          - name: gpu
      volumes:
      - name: cache
        persistentVolumeClaim:
          claimName: trainer-cache
      - name: shm
        emptyDir:
          medium: Memory
      resourceClaims:
      - name: gpu
        resourceClaimTemplateName: trainer
"""
SECRETS = """\
      kubectl create secret docker-registry ngc-secret --namespace=ml-train \\
        --docker-server=nvcr.io --docker-username='$oauthtoken' --docker-password="$NGC_API_KEY"
      kubectl create secret generic ngc-api --namespace=ml-train \\
        --from-literal=NGC_API_KEY="$NGC_API_KEY"
"""


def test_a_nim_has_its_probes_secrets_and_model_cache() -> None:
    wish = replace(WISH, preset=Preset.NIM, workload=Workload.DEPLOYMENT)
    assert text(wish, "deployment.yaml").endswith(NIM)
    assert text(wish, "volume.yaml") == VOLUME
    assert SECRETS in text(wish, "README.md")
    assert "The volume goes too, with all that is on it." in text(wish, "README.md")
    names = ["template.yaml", "volume.yaml", "service.yaml", "deployment.yaml"]
    assert [file.name for file in render(wish, FACTS, KEY).applied] == names


@pytest.mark.parametrize(("name", "served"), [("1e3", "s-1e3"), ("9" + "a" * 62, "s-9" + "a" * 60), ("a-1", "a-1")])
def test_a_service_s_name_begins_with_a_letter(name: str, served: str) -> None:
    wish = replace(WISH, name=name, preset=Preset.NOTEBOOK, workload=Workload.STATEFUL_SET)
    assert f"  name: {served}\n" in text(wish, "service.yaml")
    assert f"  serviceName: {served}\n" in text(wish, "statefulset.yaml")


@pytest.mark.parametrize("preset", Preset)
def test_a_workload_of_ones_own_gets_nothing_of_a_preset(preset: Preset) -> None:
    wish = replace(WISH, workload=Workload.OWN, preset=preset)
    assert {file.name for file in render(wish, FACTS, KEY).applied} == {"template.yaml", "workload.yaml"}
