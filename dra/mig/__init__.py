"""MIG geometry without hardware: profiles, placements, counters."""
