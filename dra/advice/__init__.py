"""Advice: why resource claims fit or do not fit, what the scheduler will do about them, and what to change. Pure.

`explain` answers for one node, `explain_fleet` for all; `told` chooses whose names are heard; `suggest` changes that
were tried by allocating them.
"""
