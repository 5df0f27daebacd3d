"""Stand-in NVIDIA hardware: GPUs whose whole state is one locked file, seen through NVML, MPS and nvidia-smi.

Read on in `hardware.py` (what exists), `rules.py` (what may happen), `state.py` (the file), `nvml.py` (the door that
stands under pynvml), `mps.py` and `smi.py` (the programs) and `fleet.py` (the tree of files around the cards).
"""
