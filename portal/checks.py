"""System checks of our own settings: what is wrong, and what to write instead."""
