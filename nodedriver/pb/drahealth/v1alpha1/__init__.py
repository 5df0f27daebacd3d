"""The proto package `v1alpha1`: DRAResourceHealth as Kubernetes 1.34 to 1.36 speak it."""
