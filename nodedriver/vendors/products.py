"""Names and memory of cards by PCI id, for what their kernel drivers do not tell. A table, and nothing else.

Ids and names: the PCI ID Repository (pci.ids); memory in GiB from the vendors' product pages.
"""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Product:
    """A model. Memory in bytes; 0 where one id stands for cards of several sizes."""

    name: str
    memory: int


def _product(name: str, gib: int) -> Product:
    return Product(name, gib * _GIB)


# By vendor and device id, as sysfs writes them.
PRODUCTS = {
    ("0x1002", "0x66a1"): _product("AMD Instinct MI50", 0),
    ("0x1002", "0x738c"): _product("AMD Instinct MI100", 32),
    ("0x1002", "0x740f"): _product("AMD Instinct MI210", 64),
    ("0x1002", "0x7408"): _product("AMD Instinct MI250X", 64),  # each of its two dies is a card
    ("0x1002", "0x740c"): _product("AMD Instinct MI250X/MI250", 64),
    ("0x1002", "0x74a0"): _product("AMD Instinct MI300A", 128),
    ("0x1002", "0x74a1"): _product("AMD Instinct MI300X", 192),
    ("0x1002", "0x74a2"): _product("AMD Instinct MI308X", 192),
    ("0x1002", "0x74a5"): _product("AMD Instinct MI325X", 256),
    ("0x1002", "0x75a0"): _product("AMD Instinct MI350X", 288),
    ("0x1002", "0x75a3"): _product("AMD Instinct MI355X", 288),
    ("0x1002", "0x73a1"): _product("AMD Radeon Pro V620", 32),
    ("0x1002", "0x7448"): _product("AMD Radeon Pro W7900", 48),
    ("0x1002", "0x745e"): _product("AMD Radeon Pro W7800", 0),
    ("0x8086", "0x0bd5"): _product("Intel Data Center GPU Max 1550", 128),
    ("0x8086", "0x0bda"): _product("Intel Data Center GPU Max 1100", 48),
    ("0x8086", "0x56c0"): _product("Intel Data Center GPU Flex 170", 16),
    ("0x8086", "0x56c1"): _product("Intel Data Center GPU Flex 140", 6),  # each of its two chips is a card
    ("0x8086", "0x56a0"): _product("Intel Arc A770", 0),
    ("0x8086", "0x56a1"): _product("Intel Arc A750", 8),
    ("0x8086", "0xe20b"): _product("Intel Arc B580", 12),
    ("0x8086", "0xe211"): _product("Intel Arc Pro B60", 24),
    ("0x8086", "0xe212"): _product("Intel Arc Pro B50", 16),
}
