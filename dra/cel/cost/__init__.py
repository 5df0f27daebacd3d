"""What an expression costs in CEL's units: the range that the API server checks, and what an evaluation really costs.

Numbers are those of cel-go with the libraries of Kubernetes, to the unit: the limits are part of the API.
"""
