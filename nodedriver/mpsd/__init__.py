"""The MPS supervisor: a process of its own that keeps NVIDIA's control daemons running, whatever the driver does.

`serve.py` is the process and its socket, `supervisor.py` knows which daemons should run, `daemon.py` runs one of them,
`control.py` says how it is commanded, `classic.py` and `namespaces.py` do so by protocol 2 and 3, `record.py` remembers
it on disk.
"""

from nodedriver.mpsd.serve import serve

__all__ = ["serve"]
