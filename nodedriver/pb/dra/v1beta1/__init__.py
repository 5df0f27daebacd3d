"""k8s.io.kubelet.pkg.apis.dra.v1beta1, for older kubelets: v1 without share ids."""
