"""Benchmarks: each prints ratios against a peer or a floor that does the same honest work in the same run."""
