"""The kubelet's side of the driver: sockets, registration, and protobuf to and from the driver's verbs."""
