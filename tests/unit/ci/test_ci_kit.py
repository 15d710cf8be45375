from __future__ import annotations

from upright.kit import ci


def test_the_lines_that_say_why_come_first_without_colours() -> None:
    log = (
        "section_start:1700000000:step_script\r\x1b[0K$ make test\n"
        "collecting 1 %\rcollecting 100 %\n"
        "\x1b[31mE   AssertionError: expected 01:30, got 02:30\x1b[0m\n"
        "0 errorless lines\n"
        "ERROR: Job failed: exit code 1\n"
    )
    assert ci.first_errors(log) == (
        "E   AssertionError: expected 01:30, got 02:30",
        "ERROR: Job failed: exit code 1",
    )


def test_where_no_line_says_why_the_first_ones_are_told() -> None:
    assert ci.first_errors("one\n\ntwo\n") == ("one", "two")
    assert ci.first_errors("") == ()


def test_an_endless_line_and_endless_lines_are_cut() -> None:
    (line, *_) = found = ci.first_errors("error " + "x" * 1_000 + "\n" + "error\n" * 100)
    assert len(line) == ci.MAX_LINE_CHARS
    assert line.endswith("x…")
    assert len(found) == ci.MAX_ERROR_LINES


def test_a_log_without_any_line_end_is_read_in_bounded_time() -> None:
    assert len(ci.first_errors("\x1b[" * 600_000)) <= ci.MAX_ERROR_LINES


def test_of_very_many_names_the_first_are_told_and_how_many_more_there_are() -> None:
    told = ci.named(f"test {number}" for number in range(60)).splitlines()
    assert len(told) == ci.MAX_NAMED + 1
    assert told[-1] == "… and 10 more"


def test_a_run_tells_the_same_facts_whatever_ran_it() -> None:
    failure = ci.Failure(name="unit", lines=("E   assert 1 == 2",))
    run = ci.Run(
        check="tests",
        repository="acme/app",
        status="completed",
        conclusion="timed_out",
        number=7,
        attempt=2,
        failures=(failure,),
    )
    assert run.title == "tests: timed out"
    facts = run.facts()
    assert facts["failed"] == "unit"
    assert facts["error"] == "E   assert 1 == 2"
    assert (facts["number"], facts["attempt"], facts["sha"]) == ("7", "2", "")
