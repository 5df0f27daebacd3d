"""The doctor: looks at a node for what keeps claims from working as promised, and says what to do about it.

It only looks. `examination` goes through it all; `looks` and `processes` open files below the roots of the settings,
and what was `seen` is judged by the pure rest.
"""
