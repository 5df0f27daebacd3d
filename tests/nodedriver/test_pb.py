"""The committed stubs are what the pinned generator makes of the committed .proto files, byte for byte."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def test_generated_code_matches_its_sources(tmp_path: Path) -> None:
    protos = sorted(path.relative_to(CHECKOUT) for path in CHECKOUT.glob("nodedriver/pb/**/*.proto"))
    assert [str(path.parent) for path in protos] == [
        "nodedriver/pb/dra/v1",
        "nodedriver/pb/dra/v1beta1",
        "nodedriver/pb/drahealth/v1",
        "nodedriver/pb/drahealth/v1alpha1",
        "nodedriver/pb/pluginregistration/v1",
    ]
    outputs = [f"--{kind}={tmp_path}" for kind in ("python_out", "pyi_out", "grpc_python_out")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", *outputs, *map(str, protos)]
    subprocess.run(command, cwd=CHECKOUT, check=True)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*_pb2*")}
    kept = {path.relative_to(CHECKOUT): path.read_bytes() for path in CHECKOUT.glob("nodedriver/pb/**/*_pb2*.py*")}
    kept = {path: content for path, content in kept.items() if path.suffix in (".py", ".pyi")}
    assert len(made) == 15
    assert made == kept
