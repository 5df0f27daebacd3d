"""Stand-in for nvidia-cuda-mps-control as a client: each line of stdin is a command for the daemon that runs.

With words behind it (version 3) these are the one command.

A program of a few milliseconds, as the real one is: it imports no more than it needs, and nothing of ours.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> int:
    """Send each line to the daemon and print its answers; status 1 when one fails or no daemon is there."""
    path = os.path.join(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"), "control")  # noqa: PTH118, S108
    failed = False
    words = sys.argv[1:]
    messages = [{"words": words}] if words else [{"command": line} for line in map(str.strip, sys.stdin) if line]
    for message in messages:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(path)
            except (FileNotFoundError, ConnectionRefusedError):
                sys.stderr.write("Cannot find MPS control daemon process\n")
                return 1
            connection.sendall(json.dumps(message).encode() + b"\n")
            answer = json.loads(connection.makefile().readline() or '{"output": ""}')
        failed = failed or "error" in answer
        text = answer.get("output", answer.get("error"))
        if text:
            sys.stdout.write(f"{text}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
