from __future__ import annotations

import pytest

from upright_execd.environment import COMMAND_VARIABLE, compose, may_set


@pytest.mark.clause("E8.5")
@pytest.mark.parametrize("name", ["TERM", "LANG", "LC_ALL", "NO_COLOR", "CI", "TZ"])
def test_a_few_names_may_always_be_set(name: str) -> None:
    assert may_set(name, ())


@pytest.mark.clause("E8.5")
@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "GIT_SSH_COMMAND",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "PATH",
        "HOME",
        "https_proxy",
        "HTTP_PROXY",
        "UPRIGHT_COMMAND_ID",
        "IFS",
    ],
)
def test_names_that_make_programs_run_other_things_are_never_set_even_if_listed(name: str) -> None:
    assert not may_set(name, {name})


@pytest.mark.clause("E8.5")
def test_the_owner_adds_names() -> None:
    assert not may_set("EDITOR", ())
    assert may_set("EDITOR", {"EDITOR"})


@pytest.mark.clause("E8.5")
def test_the_base_stays_the_allowed_is_added_and_the_rest_is_reported() -> None:
    asked = [("CI", "1"), ("ZED", "z"), ("LD_PRELOAD", "x"), ("EDITOR", "vi")]
    found = compose({"PATH": "/bin", "CI": "0"}, asked, owner=["EDITOR"], command_id="jb_1")
    assert found.dropped == ("LD_PRELOAD", "ZED")
    assert found.variables == {
        "PATH": "/bin",
        "CI": "1",
        "EDITOR": "vi",
        COMMAND_VARIABLE: "jb_1",
    }
