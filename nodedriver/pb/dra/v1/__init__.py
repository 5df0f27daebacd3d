"""k8s.io.kubelet.pkg.apis.dra.v1, which Kubernetes 1.34 and newer speak."""
