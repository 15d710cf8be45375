from __future__ import annotations

import pytest

from upright.kit.mask import MASKED, masked

HALF = "a1" * 18


@pytest.mark.parametrize(
    "secret",
    [
        f"ghp_{HALF}",
        "uprt_" + "0a" * 27,
        f"github_pat_{HALF}",
        f"glpat-{HALF}",
        f"xoxb-{HALF}",
        "AKIA" + "A1" * 8,
        f"eyJ{HALF}.eyJ{HALF}.{HALF}",
    ],
)
def test_a_token_is_masked_wherever_it_stands(secret: str) -> None:
    assert masked(f"got <{secret}>, sorry") == f"got <{MASKED}>, sorry"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("DB_PASSWORD=hunter22 next", f"DB_PASSWORD={MASKED} next"),
        ('{"api_key": "abcdef", "n": 1}', f'{{"api_key": "{MASKED}", "n": 1}}'),
        ("https://bob:hunter22@git.example.org/x", f"https://{MASKED}@git.example.org/x"),
        (f"Authorization: Bearer {HALF}", f"Authorization: Bearer {MASKED}"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\ndef", MASKED),
    ],
)
def test_what_is_named_as_a_secret_is_masked_with_its_name_kept(said: str, shown: str) -> None:
    assert masked(said) == shown


@pytest.mark.parametrize(
    "plain", ["expected 1, got 2", "git@git.example.org:acme/app.git", "commit a1b2c3 by ann"]
)
def test_what_is_none_stays(plain: str) -> None:
    assert masked(plain) == plain


@pytest.mark.timeout(20)  # quadratic, each would take minutes
@pytest.mark.parametrize("piece", ["token", "a", "a.", "eyJaaaaaa.", "http://", "bearer ", "key=:"])
def test_no_text_holds_it_up(piece: str) -> None:
    masked(piece * (400_000 // len(piece)))
