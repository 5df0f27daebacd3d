"""The API server as values: a call in, an answer or a watch out. Pure; `simulator.http` is its edge.

What it does not do it refuses with the API server's own codes: kinds that are not in `simulator.kinds` (404), protobuf
and tables (406, 415), eviction and other subresources (404), admission policies and webhooks (their kinds are 404).
"""
