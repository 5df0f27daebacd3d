"""CEL for device selectors: an engine with exactly the environment that kube-scheduler gives them. Pure.

Semantics are cel-go's as k8s.io/dynamic-resource-allocation/cel uses it.
"""
