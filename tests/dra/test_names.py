"""Names follow RFC 1123 as Kubernetes checks them."""

from __future__ import annotations

import pytest

from dra.errors import InvalidNameError
from dra.names import check_driver_name, is_dns_label, is_dns_subdomain


@pytest.mark.parametrize(
    ("text", "label", "subdomain"),
    [
        ("gpu-0", True, True), ("0", True, True), ("a" * 63, True, True), ("a" * 64, False, True),
        ("gpu.portico.dev", False, True), ("", False, False), ("-a", False, False), ("a-", False, False),
        ("A", False, False), ("a..b", False, False), ("a_b", False, False), ("a\n", False, False),
        (".".join(["a" * 63] * 4), False, False), ("é", False, False),
    ],
)  # fmt: skip
def test_labels_and_subdomains(text: str, label: bool, subdomain: bool) -> None:  # noqa: FBT001  # a table's columns
    assert (is_dns_label(text), is_dns_subdomain(text)) == (label, subdomain)


def test_a_driver_name_is_a_subdomain_of_at_most_63_characters() -> None:
    assert check_driver_name("gpu.deckhouse.io") == "gpu.deckhouse.io"
    for name in ("", "GPU.example.com", f"{'a' * 60}.dev"):
        with pytest.raises(InvalidNameError, match="at most 63 characters"):
            check_driver_name(name)
