"""Repairs: which files are looked at, and which change is tried next."""

from __future__ import annotations

import re

import pytest

from upright.llm.scripted.repair import Patch, Repair, next_patch
from upright.llm.scripted.suspects import suspects
from upright.llm.scripted.unified import changed

LISTING = [
    "README.md",
    "app/__init__.py",
    "app/money.py",
    "app/deep/__init__.py",
    "app/deep/more.py",
    "src/other/thing.py",
    "tests/test_money.py",
]
TEST = """import app.deep
from app import money
from app.deep.more import dig
from .relative import gone
import sys


class T:
    def test_sum(self):
        money.total([1])

    def test_other(self):
        money.other()
"""
OUTPUT = """
FAIL: test_sum (tests.test_money.T.test_sum)
Traceback (most recent call last):
  File "/w/tests/test_money.py", line 9, in test_sum
AssertionError: 1 != 2
"""
SOURCE = '''"""Money: a < b."""


def other():
    return 1 < 2


def total(xs):
    """Return x < y."""
    # a < b
    return first(xs) < 3


def first(xs):
    return 2 < xs[0]
'''
BOUND = Repair(name="bound", pattern=re.compile(r" < "), replace=" <= ")
INDEX = Repair(name="index", pattern=re.compile(r"\[0\]"), replace="[1]")


def test_a_failing_tests_file_comes_first_and_then_what_it_imports() -> None:
    assert suspects(OUTPUT, LISTING, {}) == ["tests/test_money.py"]
    assert suspects(OUTPUT, LISTING, {"tests/test_money.py": TEST}) == [
        "tests/test_money.py",
        "app/deep/__init__.py",
        "app/money.py",
        "app/__init__.py",
        "app/deep/more.py",
    ]


@pytest.mark.parametrize(
    ("output", "paths"),
    [
        (
            """  File "/w/tests/test_money.py", line 1, in t
  File "/w/app/money.py", line 2, in total
  File "/usr/lib/python3/json.py", line 3, in x
""",
            ["app/money.py", "tests/test_money.py"],
        ),
        ("ERROR: test_x (test_money.T)\n", ["tests/test_money.py"]),
        (
            "ERROR: tests.test_money (unittest.loader._FailedTest.tests.test_money)\n",
            ["tests/test_money.py"],
        ),
        ("FAIL: test_x (other.thing.T.test_x)\n", ["src/other/thing.py"]),
        ("all is well", []),
    ],
    ids=["traceback", "old form", "import error", "inner folder", "nothing"],
)
def test_files_are_taken_from_what_the_output_names(output: str, paths: list[str]) -> None:
    assert suspects(output, LISTING, {}) == paths


def tried_all(*repairs: Repair, output: str = OUTPUT) -> list[Patch]:
    texts = {"tests/test_money.py": TEST, "app/money.py": SOURCE}
    patches: list[Patch] = []
    while patch := next_patch(
        repairs, ["app/money.py"], texts, output=output, tried={p.text for p in patches}
    ):
        patches.append(patch)
    return patches


def test_what_the_failing_test_uses_is_tried_first_then_what_that_uses_then_the_rest() -> None:
    lines = [changed(patch.text, "+") for patch in tried_all(BOUND)]
    assert lines == ["return first(xs) <= 3", "return 2 <= xs[0]", "return 1 <= 2"]


def test_words_that_mean_nothing_to_python_are_never_tried() -> None:
    assert len(tried_all(BOUND)) == 3


def test_repairs_are_tried_in_their_order_within_a_rank() -> None:
    names = [patch.repair for patch in tried_all(INDEX, BOUND)]
    assert names == ["bound", "index", "bound", "bound"]


def test_a_repair_that_asks_for_other_output_is_left_out() -> None:
    asking = Repair(name="x", pattern=BOUND.pattern, replace=" <= ", output=re.compile("None != "))
    assert not tried_all(asking)
    assert tried_all(asking, output="AssertionError: None != 3")


def test_a_change_that_is_no_python_is_never_tried() -> None:
    assert not tried_all(Repair(name="x", pattern=BOUND.pattern, replace=" <<< "))


def test_without_sources_there_is_nothing_to_try() -> None:
    assert next_patch([BOUND], [], {}, output="", tried=()) is None


def test_a_source_that_is_no_python_can_still_be_repaired_into_some() -> None:
    colon = Repair(name="colon", pattern=re.compile(r"(?m)^(def [^:\n]+)$"), replace=r"\1:")
    patch = next_patch(
        [colon], ["a.py"], {"a.py": "def f()\n    return 1\n"}, output="SyntaxError", tried=()
    )
    assert patch is not None
    assert changed(patch.text, "+") == "def f():"
