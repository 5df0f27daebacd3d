"""What only a demo has: no login, roles to switch between, the simulator's time, hints.

It is there where the setting DEMO names the simulator's administrator (`portal.demourls`), and only on loopback.
"""
