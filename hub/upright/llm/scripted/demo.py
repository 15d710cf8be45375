"""Demo: the script that comes with Upright.

It turns a red run of a Python project's tests green. It is no oracle: it reads what the tests
print and the files they point at, tries one small change after another in the functions that the
failing tests use, and keeps the one with which the whole suite passes. What it can repair, as
(kind: right -> wrong), each place by itself:

- the end of a range: ``range(1, n + 1)`` -> ``range(1, n)``, ``range(n)`` -> ``range(n - 1)``,
  ``xs[:n]`` -> ``xs[:n - 1]``
- a bound: ``<=`` -> ``<``, ``>=`` -> ``>``, and back; ``==`` and ``!=``
- a sign: ``+`` and ``-``, ``+=`` and ``-=``, ``return -x`` -> ``return x``
- a connective: ``and`` and ``or``; a ``not`` too many or too few
- a default: ``places=2`` -> ``places=0`` (the docstring's ``default 2``, then 0, 1, 2, 10, 100),
  ``True`` and ``False``
- a missing return: ``return total`` -> ``total``, or the line gone after ``total = ...`` in the
  body or in a loop
- the order of arguments: ``f(a, b)`` -> ``f(b, a)``, ``a - b`` -> ``b - a`` (also ``/ // %``)
- an index: ``[0]``, ``[1]``, ``[-1]``, ``[-2]`` for one another
- rounding: ``round(x, 2)`` -> ``round(x)`` or other places, ``round`` for ``int``, ``/`` and
  ``//``, ``floor`` and ``ceil``, ``ROUND_HALF_UP`` and its like
- ``*`` and ``/``, ``min`` and ``max``
"""

from __future__ import annotations

from pathlib import Path


def demo_script(scene: str = "demo") -> Path:
    """Return the path of the demo's script; *scene* ``people`` is for its second scene, too."""
    return Path(__file__).with_name(f"{scene}.toml")
