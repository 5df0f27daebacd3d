"""The domain of Dynamic Resource Allocation: objects, quantities, MIG geometry, pools, and the door to Kubernetes.

Pure but for `dra.kube.client` and what it stands on: no I/O, clock, randomness, logging or Django. Its floors:
docs/dev/architecture.md.
"""
