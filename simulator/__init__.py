"""Stand-ins for what a laptop lacks: GPUs below NVML. Production code runs on them unchanged.

The packages here import `dra` and `nodedriver`, never Django, and nothing in production imports them.
"""
