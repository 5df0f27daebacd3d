"""The kubelet's protocols: .proto files as Kubernetes 1.37 publishes them, and code generated from them. Nobody edits.

The files lie under their package's own path, so that protoc writes package imports. The proto package names are the
kubelet's, since method paths carry them. To regenerate, at the root of the checkout:
python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. nodedriver/pb/*/*/api.proto
"""
