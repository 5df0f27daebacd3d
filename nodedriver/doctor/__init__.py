"""The doctor: looks at a node for what keeps claims from working as promised, and says what to do about it.

It only looks. `findings` and `judging` are pure, `looks` opens files below the roots of the settings.
"""
