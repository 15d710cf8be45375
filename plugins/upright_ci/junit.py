"""JUnit: a report of tests in XML, read as a stream, without a tree, a DTD or an entity.

What Ant's, pytest's, Surefire's, jest's, PHPUnit's and Swift's reports have in common, and the
form in which Jenkins stores its results. There is no standard; what is unknown is passed over.

Source: github.com/testmoapp/junitxml; maven.apache.org, Surefire "Rerun failing tests".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, ParseError

from upright.api import TriggerRejectedError
from upright.kit.ci import Failure, first_errors
from upright.kit.payload import CODE, clean

MAX_DEPTH: Final = 64
MAX_ELEMENTS: Final = 2_000_000
MAX_KEPT: Final = 200  # failures whose lines are kept; more are counted and named
MAX_TEXT_CHARS: Final = 65_536  # of one failure
MAX_NAME_CHARS: Final = 500
CHUNK: Final = 65_536

_ROOTS: Final = frozenset({"testsuites", "testsuite", "testrun", "result"})
_CASES: Final = frozenset({"testcase", "case"})
_FAILED: Final = frozenset({"failure", "error", "errorDetails", "errorStackTrace"})
_FLAKY: Final = frozenset({"flakyFailure", "flakyError"})
_PARTS: Final = frozenset({"className", "testName", "name", "skipped"})  # as elements, in Jenkins'


@dataclass(slots=True, kw_only=True)
class _Test:
    """One test while it is read."""

    suite: str
    classname: str = ""
    name: str = ""
    failed: bool = False
    skipped: bool = False
    flaky: bool = False
    said: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def full_name(self) -> str:
        """Return the name as people know it."""
        own = self.name or "(no name)"
        return ".".join(filter(None, (self.classname or self.suite, own)))[:MAX_NAME_CHARS]

    def say(self, text: str) -> None:
        """Keep a piece of what it says, up to the cap."""
        if text and self.size < MAX_TEXT_CHARS:
            self.said.append(text[: MAX_TEXT_CHARS - self.size])
            self.size += len(self.said[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a report says. ``flaky`` failed and then passed; it counts as passed."""

    name: str
    tests: int
    skipped: int
    failures: tuple[Failure, ...]
    flaky: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        """Return how many passed, at once or in the end."""
        return max(0, self.tests - self.skipped - len(self.failures))

    @property
    def summary(self) -> str:
        """Return the numbers, in one line."""
        parts = [f"{self.tests} tests", f"{self.passed} passed", f"{len(self.failures)} failed"]
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        parts += [f"{len(self.flaky)} flaky: {', '.join(self.flaky[:10])}"] if self.flaky else []
        return ", ".join(parts)


def read(body: bytes) -> Report:
    """Read a report.

    Raises:
        TriggerRejectedError: 400: no XML, a DTD or an entity in it, too deep, too many elements,
            or no report of tests.
    """
    reader = _Reader()
    parser = DefusedXMLParser(
        target=reader, forbid_dtd=True, forbid_entities=True, forbid_external=True
    )
    try:
        for start in range(0, len(body), CHUNK):
            parser.feed(body[start : start + CHUNK])
        parser.close()
    except DefusedXmlException as error:
        raise _refused("The report has a DTD or an entity, which no report needs") from error
    except (ParseError, ValueError, LookupError) as error:
        reason = f"The report is no XML that can be read: {type(error).__name__}"
        raise _refused(reason) from error
    if not reader.is_report:
        raise _refused("The XML is no report of tests")
    return reader.report()


def _refused(reason: str) -> TriggerRejectedError:
    return TriggerRejectedError(reason, code=CODE)


class _Reader:
    """Takes the parser's events. Only what has failed is kept; the rest is counted."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._suites: list[str] = []
        self._elements = 0
        self._test: _Test | None = None
        self._catch: list[str] | None = None  # the text of an element that we read
        self._caught = 0
        self._name = ""
        self._tests = self._skipped = 0
        self._red: dict[tuple[str, str], Failure] = {}
        self._green: set[tuple[str, str]] = set()
        self._flaky: dict[str, None] = {}
        self.is_report = False

    # -------------------------------------------------------------- the parser's target
    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        tag = tag.rpartition("}")[2]
        self._elements += 1
        if len(self._path) >= MAX_DEPTH or self._elements > MAX_ELEMENTS:
            raise _refused("The report is nested too deep, or has too many elements")
        if not self._path:
            self.is_report = tag in _ROOTS
        self._path.append(tag)
        if tag in {"testsuite", "testsuites", "suite"}:
            self._suites.append(clean(attributes.get("name", "")))
            self._name = self._name or self._suites[-1]
        elif tag in _CASES:
            classname = clean(attributes.get("classname", ""))
            name = clean(attributes.get("name", ""))
            self._test = _Test(suite=self._suite, classname=classname, name=name)
        elif tag in _FAILED | _FLAKY:
            self._fail(tag, attributes)
        elif tag == "skipped" and self._test is not None:
            self._test.skipped = True
        if tag in _FAILED | _PARTS:
            self._catch, self._caught = [], 0

    def data(self, text: str) -> None:
        """Take a piece of text; what no test needs is dropped at once."""
        if self._catch is not None and self._caught < MAX_TEXT_CHARS:
            self._catch.append(text)
            self._caught += len(text)

    def end(self, tag: str) -> None:
        """End an element."""
        tag = tag.rpartition("}")[2]
        self._path.pop()
        if self._catch is not None and tag in _FAILED | _PARTS:
            self._text(tag, clean("".join(self._catch)).strip())
            self._catch = None
        if tag in _CASES and self._test is not None:
            self._keep(self._test)
            self._test = None
        elif tag in {"testsuite", "testsuites", "suite"}:
            if self._test is not None:  # an error of the suite itself
                self._keep(self._test)
                self._test = None
            self._suites.pop()

    def close(self) -> None:
        """End the document."""

    # -------------------------------------------------------------- what it means
    @property
    def _suite(self) -> str:
        return self._suites[-1] if self._suites else ""

    def _fail(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._test is None:
            self._test = _Test(suite=self._suite, name="(the suite itself)")
        self._test.failed |= tag in _FAILED
        self._test.flaky |= tag in _FLAKY
        if tag in _FAILED:
            said = (attributes.get("type", ""), attributes.get("message", ""))
            self._test.say(clean(": ".join(filter(None, said))))

    def _text(self, tag: str, text: str) -> None:
        test = self._test
        if test is None:
            if tag == "name" and self._path[-1:] == ["suite"]:
                self._suites[-1] = text
            return
        match tag:
            case "className":
                test.classname = text
            case "testName" | "name":
                test.name = text
            case "skipped":
                test.skipped = text.lower() != "false"
            case _:
                test.say(text)

    def _keep(self, test: _Test) -> None:
        self._tests += 1
        self._skipped += test.skipped and not test.failed
        which = (test.suite, test.full_name)
        if test.failed:
            kept = len(self._red) < MAX_KEPT
            lines = first_errors("\n".join(test.said)) if kept else ()
            self._red.setdefault(which, Failure(name=test.full_name, lines=lines))
            self._green.discard(which)
        elif not test.skipped:
            self._green.add(which) if which in self._red else None
        if test.flaky and not test.failed:
            self._flaky[test.full_name] = None

    def report(self) -> Report:
        """Return the whole; a test whose last try passed is flaky, not failed."""
        flaky = [*self._flaky, *(name for _, name in self._green)]
        red = [one for which, one in self._red.items() if which not in self._green]
        return Report(
            name=self._name,
            tests=self._tests,
            skipped=self._skipped,
            failures=tuple(red),
            flaky=tuple(sorted(dict.fromkeys(flaky))),
        )
