"""The proto package `v1`: DRAResourceHealth as Kubernetes 1.37 and newer speak it."""
