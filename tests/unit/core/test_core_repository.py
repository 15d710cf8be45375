from __future__ import annotations

import pytest

from upright.core.repository import key, same


@pytest.mark.clause("E10.1")
@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/acme/app",
        "https://github.com/acme/app.git",
        "https://github.com/acme/app/",
        " https://GitHub.com/acme/app.git/ ",
        "https://user:token@github.com:8443/acme/app.git",
        "http://github.com/acme/app",
        "ssh://git@github.com:22/acme/app.git",
        "git://github.com/acme/app.git",
        "git@github.com:acme/app.git",
        "github.com:acme/app",
        "git@github.com:/acme/app.git",
    ],
)
def test_all_addresses_of_one_repository_have_one_key(address: str) -> None:
    assert key(address) == "github.com/acme/app"


@pytest.mark.clause("E10.1")
@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/acme/app2",
        "https://github.com/mallory/app",
        "https://evil.example/github.com/acme/app",
        "https://github.com.evil.example/acme/app",
        "git@gitlab.com:acme/app.git",
        "/home/anna/github.com/acme/app",
    ],
)
def test_another_repository_or_host_has_another_key(address: str) -> None:
    assert key(address) != "github.com/acme/app"


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/srv/git/app.git", "/srv/git/app"),
        ("/srv/git/app/", "/srv/git/app"),
        ("file:///srv/git/app.git", "/srv/git/app"),
        ("file://localhost/srv/git/app", "/srv/git/app"),
        ("../app.git", "../app"),
        ("./a:b", "./a:b"),
        ("C:\\git\\app", "C:\\git\\app"),
        ("C:/git/app.git", "C:/git/app"),
        ("app", "app"),
    ],
)
def test_a_path_stays_a_path(address: str, path: str) -> None:
    assert key(address) == path


def test_a_host_without_a_path_is_the_host() -> None:
    assert key("https://github.com") == "github.com/"


@pytest.mark.clause("E10.1")
def test_two_lists_of_addresses_meet_in_any_pair() -> None:
    ours = ["/srv/app.git", "git@github.com:acme/app.git"]
    assert same(ours, ["https://github.com/acme/app"])
    assert not same(ours, ["https://github.com/acme/other"])


@pytest.mark.parametrize("empty", [[], [""], [" "], [".git"]])
def test_an_empty_address_is_no_repository(empty: list[str]) -> None:
    assert not same(empty, empty)
