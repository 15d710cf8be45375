"""Addresses: what a person may type, and what is refused with a word of advice."""

from __future__ import annotations

import pytest

from upright_execd.address import AddressError, read_address


@pytest.mark.parametrize(
    ("typed", "url", "host"),
    [
        ("hub.example.org", "wss://hub.example.org/v1/device", "hub.example.org"),
        ("hub.example.org:8443", "wss://hub.example.org:8443/v1/device", "hub.example.org:8443"),
        ("https://Hub.Example.org/", "wss://hub.example.org/v1/device", "hub.example.org"),
        ("https://hub.example.org:443", "wss://hub.example.org/v1/device", "hub.example.org"),
        ("wss://h/v1/device", "wss://h/v1/device", "h"),
        ("http://127.0.0.1:8080", "ws://127.0.0.1:8080/v1/device", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "ws://127.0.0.1:8080/v1/device", "127.0.0.1:8080"),
        ("localhost", "ws://localhost/v1/device", "localhost"),
        ("http://[::1]:8080", "ws://[::1]:8080/v1/device", "[::1]:8080"),
        ("https://127.0.0.1:8443", "wss://127.0.0.1:8443/v1/device", "127.0.0.1:8443"),
    ],
)
def test_an_address_is_read(typed: str, url: str, host: str) -> None:
    address = read_address(typed)
    assert (address.url, address.host) == (url, host)


@pytest.mark.clause("E2.1")
@pytest.mark.parametrize(
    "typed",
    [
        "",
        "http://hub.example.org",
        "ws://192.0.2.1:8080",
        "http://127.0.0.1.example.org",
        "ftp://hub.example.org",
        "https://user:secret@hub.example.org",
        "https://hub.example.org/?token=secret",
        "https://hub.example.org/#x",
        "https://hub.example.org/elsewhere",
        "https://hub.example.org:99999",
        "https://[::1",
    ],
)
def test_what_is_no_address_or_not_safe_is_refused(typed: str) -> None:
    with pytest.raises(AddressError):
        read_address(typed)


@pytest.mark.clause("E2.1")
def test_plain_text_to_another_machine_is_refused_with_the_way_out() -> None:
    with pytest.raises(AddressError, match=r"Try https://hub\.example\.org"):
        read_address("http://hub.example.org")
