"""Payloads: a strict view of decoded JSON; the only place that touches dictionaries.

Every refusal is a :class:`TriggerRejectedError` with status 400 that names the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from upright.api import TriggerRejectedError

CODE: Final = "trigger.malformed"


def clean(text: str) -> str:
    """Replace what no database stores as text: lone surrogates and NUL. All else stays."""
    if text.isascii() and "\0" not in text:
        return text
    # A surrogate has no UTF-8 form: "surrogatepass" makes three bytes of it that "replace" refuses.
    whole = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, slots=True)
class Json:
    """One JSON object and its place in the payload.

    The plain readers want the key to be there; ``maybe_…`` take a missing key or null as none.
    A value of another type is refused by both.
    """

    value: Mapping[str, Any]
    path: str = ""

    def refuse(self, key: str, wanted: str) -> NoReturn:
        """Refuse the payload because of one key."""
        place = f"{self.path}.{key}" if self.path else key
        reason = f"The payload has no {wanted} at {place}"
        raise TriggerRejectedError(reason, code=CODE)

    def maybe_text(self, key: str) -> str:
        """Return a text; empty when there is none."""
        found = self.value.get(key)
        if found is None:
            return ""
        return clean(found) if isinstance(found, str) else self.refuse(key, "text")

    def text(self, key: str) -> str:
        """Return a text that is not empty."""
        return self.maybe_text(key) or self.refuse(key, "text")

    def maybe_number(self, key: str) -> int | None:
        """Return a whole number, if there is one."""
        found = self.value.get(key)
        if found is None or (isinstance(found, int) and not isinstance(found, bool)):
            return found
        return self.refuse(key, "number")

    def number(self, key: str) -> int:
        """Return a whole number."""
        found = self.maybe_number(key)
        return self.refuse(key, "number") if found is None else found

    def flag(self, key: str) -> bool:
        """Return true or false; false when there is none."""
        found = self.value.get(key)
        if found is None or isinstance(found, bool):
            return found is True
        return self.refuse(key, "flag")

    def maybe_part(self, key: str) -> Json | None:
        """Return an object inside, if there is one."""
        found = self.value.get(key)
        if found is None:
            return None
        place = f"{self.path}.{key}" if self.path else key
        return Json(found, place) if isinstance(found, Mapping) else self.refuse(key, "object")

    def part(self, key: str) -> Json:
        """Return an object inside."""
        return self.maybe_part(key) or self.refuse(key, "object")

    def parts(self, key: str) -> tuple[Json, ...]:
        """Return the objects of a list; none when there is no list."""
        found = self.value.get(key)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            self.refuse(key, "list of objects")
        place = f"{self.path}.{key}" if self.path else key
        return tuple(Json(one, f"{place}[{index}]") for index, one in enumerate(found))

    def moment(self, key: str) -> datetime | None:
        """Return an aware time, from ISO 8601 or (in a push) from seconds since 1970."""
        found = self.value.get(key)
        if found is None:
            return None
        try:
            at = (
                datetime.fromtimestamp(found, UTC)
                if isinstance(found, int)
                else datetime.fromisoformat(self.maybe_text(key))
            )
        except (ValueError, OverflowError, OSError):
            self.refuse(key, "time")
        return at if at.tzinfo else at.replace(tzinfo=UTC)
