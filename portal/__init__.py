"""Django's ground floor: settings, people and teams, sign-in, the way to the cluster, and what every page shares.

Wires the apps above it by dotted names only and imports none of them.
"""
