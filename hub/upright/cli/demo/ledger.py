"""Ledger: a small project with good tests, and the ways in which the demo breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MONEY: Final = '''"""Amounts."""


def total(amounts):
    """Return the sum of all amounts."""
    result = 0
    for amount in amounts:
        result += amount
    return result


def average(amounts):
    """Return the mean of the amounts, in cents; 0 for none."""
    if not amounts:
        return 0
    return round(total(amounts) / len(amounts), 2)


def split(amount, people, places=2):
    """Share an amount evenly.

    places: how many digits are kept, default 2.
    """
    return [round(amount / people, places) for _ in range(people)]


def balance(income, spent):
    """Return what is left of the income."""
    return total(income) - total(spent)
'''

DATES: Final = '''"""Days and months."""


def days(first, last):
    """Return the days from first to last, both among them."""
    found = []
    for day in range(first, last + 1):
        found.append(day)
    return found


def is_leap(year):
    """Say whether a year has a 29th of February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def late(due, paid, grace=3):
    """Return by how many days a payment is late; the default grace is 3 days."""
    over = paid - due
    if over <= grace:
        return 0
    return over


def latest(days_paid):
    """Return the last day of a sorted list."""
    return days_paid[-1]
'''

ACCOUNTS: Final = '''"""Accounts."""

from ledger.money import balance


def running(changes):
    """Return the balance after each change."""
    seen = []
    for number in range(len(changes)):
        seen.append(sum(changes[: number + 1]))
    return seen


def may_spend(left, price, blocked=False):
    """Say whether a price can be paid."""
    return left >= price and not blocked


def statement(name, income, spent):
    """Return one line: the name and what is left."""
    left = balance(income, spent)
    return f"{name}: {left}"


def biggest(amounts):
    """Return the biggest amount."""
    ordered = sorted(amounts)
    return ordered[-1]
'''

TESTS: Final = {
    "tests/__init__.py": "",
    "tests/test_money.py": """import unittest

from ledger.money import average, balance, split, total


class MoneyTest(unittest.TestCase):
    def test_total_adds_all(self):
        self.assertEqual(total([1, 2, 3]), 6)
        self.assertEqual(total([]), 0)

    def test_average_is_in_cents(self):
        self.assertEqual(average([1, 1, 2]), 1.33)
        self.assertEqual(average([]), 0)

    def test_split_keeps_cents(self):
        self.assertEqual(split(10, 3), [3.33, 3.33, 3.33])
        self.assertEqual(split(10, 3, places=0), [3, 3, 3])

    def test_balance_is_what_is_left(self):
        self.assertEqual(balance([10, 5], [3]), 12)
""",
    "tests/test_dates.py": """import unittest

from ledger.dates import days, is_leap, late, latest


class DatesTest(unittest.TestCase):
    def test_days_has_both_ends(self):
        self.assertEqual(days(3, 6), [3, 4, 5, 6])

    def test_leap_years(self):
        self.assertTrue(is_leap(2024))
        self.assertTrue(is_leap(2000))
        self.assertFalse(is_leap(1900))
        self.assertFalse(is_leap(2023))

    def test_late_only_after_the_grace(self):
        self.assertEqual(late(10, 13), 0)
        self.assertEqual(late(10, 14), 4)

    def test_latest_is_the_last(self):
        self.assertEqual(latest([1, 5, 9]), 9)
""",
    "tests/test_accounts.py": """import unittest

from ledger import accounts


class AccountsTest(unittest.TestCase):
    def test_running_has_every_change(self):
        self.assertEqual(accounts.running([5, -2, 4]), [5, 3, 7])

    def test_may_spend_up_to_what_is_left(self):
        self.assertTrue(accounts.may_spend(10, 10))
        self.assertFalse(accounts.may_spend(10, 11))
        self.assertFalse(accounts.may_spend(10, 5, blocked=True))

    def test_statement_says_what_is_left(self):
        self.assertEqual(accounts.statement("Ada", [10], [4]), "Ada: 6")

    def test_biggest_is_the_last_in_order(self):
        self.assertEqual(accounts.biggest([4, 9, 2]), 9)
""",
}
RIGHT: Final = {
    "README.md": "# Ledger\n",
    "ledger/__init__.py": '"""A ledger."""\n',
    "ledger/money.py": MONEY,
    "ledger/dates.py": DATES,
    "ledger/accounts.py": ACCOUNTS,
    **TESTS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One way to break one file."""

    name: str
    path: str
    right: str
    wrong: str

    def files(self) -> dict[str, str]:
        """Return the project with the bug in it."""
        return {**RIGHT, self.path: RIGHT[self.path].replace(self.right, self.wrong)}


def _bug(name: str, file: str, right: str, wrong: str) -> Bug:
    return Bug(name=name, path=f"ledger/{file}.py", right=right, wrong=wrong)


BUGS: Final = (
    _bug("range-end", "dates", "last + 1)", "last)"),
    _bug("range-short", "accounts", "range(len(changes))", "range(len(changes) - 1)"),
    _bug("range-people", "money", "range(people)", "range(people - 1)"),
    _bug("bound-grace", "dates", "over <= grace", "over < grace"),
    _bug("bound-price", "accounts", "left >= price", "left > price"),
    _bug("sign-over", "dates", "paid - due", "paid + due"),
    _bug("sign-balance", "money", "total(income) - total", "total(income) + total"),
    _bug("sign-total", "money", "result += amount", "result -= amount"),
    _bug("and-leap", "dates", "== 0 and (", "== 0 or ("),
    _bug("or-leap", "dates", "!= 0 or year", "!= 0 and year"),
    _bug("and-spend", "accounts", "price and not", "price or not"),
    _bug("default-places", "money", "places=2", "places=0"),
    _bug("default-grace", "dates", "grace=3", "grace=30"),
    _bug("default-blocked", "accounts", "blocked=False", "blocked=True"),
    _bug("return-total", "money", "    return result\n", "    result\n"),
    _bug("return-gone", "money", "    return result\n", ""),
    _bug("return-latest", "dates", "return days_paid[-1]", "days_paid[-1]"),
    _bug("return-found", "dates", "    return found\n", ""),
    _bug(
        "swapped-balance",
        "accounts",
        "left = balance(income, spent)",
        "left = balance(spent, income)",
    ),
    _bug("swapped-operands", "money", "(income) - total(spent)", "(spent) - total(income)"),
    _bug("swapped-division", "money", "amount / people", "people / amount"),
    _bug("index-latest", "dates", "days_paid[-1]", "days_paid[0]"),
    _bug("index-biggest", "accounts", "ordered[-1]", "ordered[0]"),
    _bug("rounding-places", "money", "len(amounts), 2)", "len(amounts), 1)"),
    _bug("rounding-whole", "money", "len(amounts), 2)", "len(amounts))"),
    _bug(
        "rounding-int",
        "money",
        "round(total(amounts) / len(amounts), 2)",
        "int(total(amounts) / len(amounts))",
    ),
)
