"""A real kubectl on the simulator: what the request page tells people to type works there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from simulator.http import for_kubectl
from tests.cluster import build
from tests.simulator.serving import serving

pytestmark = pytest.mark.programs  # builds kubectl with Go

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: t}
spec:
  replicas: 1
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec: {containers: [{name: c, image: x}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: t}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: x}}]}}}
"""


def test_apply_change_apply_again_get_and_delete(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "work.yaml").write_text(DEPLOYMENT)
    (files / "kustomization.yaml").write_text("resources: [work.yaml]\n")
    (tmp_path / "namespace.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: t}}")
    with serving(tmp_path) as served:
        config = tmp_path / "kubectl.kubeconfig"
        config.write_text(for_kubectl(served.url, "secret"))

        def kubectl(*words: str) -> str:
            command = [str(build.programs("kubernetes") / "kubectl"), f"--kubeconfig={config}", *words]
            environment = {"HOME": str(tmp_path), "PATH": ""}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            return done.stdout + done.stderr

        assert kubectl("apply", "-f", str(tmp_path / "namespace.yaml")) == "namespace/t created\n"
        made = {"resourceclaimtemplate.resource.k8s.io/gpu created", "deployment.apps/w created"}
        assert set(kubectl("apply", "-k", str(files)).splitlines()) == made
        (files / "work.yaml").write_text(DEPLOYMENT.replace("replicas: 1", "replicas: 2"))
        assert "--server-side" in kubectl("apply", "-f", str(files / "work.yaml"))
        again = kubectl("apply", "--server-side", "--force-conflicts", "-f", str(files / "work.yaml"))
        assert "deployment.apps/w serverside-applied" in again
        assert kubectl("get", "deployment", "w", "-n", "t", "-o", "jsonpath={.spec.replicas}") == "2"
        assert 'deployment.apps "w" deleted' in kubectl("delete", "-k", str(files))
