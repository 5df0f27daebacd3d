"""How a plugin makes itself known to the kubelet."""
