"""Names follow RFC 1123 as Kubernetes checks them."""

from __future__ import annotations

import pytest

from dra.errors import InvalidNameError
from dra.names import check_driver_name, is_dns_label, is_dns_subdomain, is_label_key, is_label_value


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


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("app", True, True), ("", False, True), ("A.b_c-d", True, True), ("example.com/App", True, False),
        ("a/b/c", False, False), ("/a", False, False), ("a/", False, False), ("Example.com/a", False, False),
        ("-a", False, False), ("a_", False, False), ("x" * 63, True, True), ("x" * 64, False, False),
        (f"{'a.' * 126}a/{'x' * 63}", True, False), ("a\n", False, False),
    ],
)  # fmt: skip
def test_label_keys_and_values(text: str, key: bool, value: bool) -> None:  # noqa: FBT001  # a table's columns
    assert (is_label_key(text), is_label_value(text)) == (key, value)
