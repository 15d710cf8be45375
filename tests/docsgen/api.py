"""The API: its paths as a table; the whole document is written beside the page."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from upright.web.app import routes
from upright.web.openapi import document

FILE: Final = Path(__file__).parents[2] / "docs/reference/openapi.json"


def text() -> str:
    """Return the document as its file holds it."""
    return json.dumps(document(routes()), indent=1, ensure_ascii=False) + "\n"


def table() -> str:
    """Write the document into its file, and return the table of its paths."""
    written = text()
    if not FILE.exists() or FILE.read_text(encoding="utf-8") != written:
        FILE.write_text(written, encoding="utf-8")
    rows = [
        _row(method.upper(), path, operation)
        for path, operations in json.loads(written)["paths"].items()
        for method, operation in operations.items()
    ]
    digest = hashlib.sha256(written.encode()).hexdigest()[:16]
    return "\n".join(
        [
            "| method and path | role | what it does | query | body |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"SHA-256 of [openapi.json](openapi.json) begins with `{digest}`.",
        ]
    )


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    query = [each["name"] for each in operation["parameters"] if each["in"] == "query"]
    content = operation.get("requestBody", {}).get("content", {})
    body = [*content.get("application/json", {}).get("schema", {}).get("properties", {})]
    role = operation.get("x-role", "anybody")
    if operation.get("x-runs-commands"):
        role += ", exec"
    summary = operation["summary"].replace("``", "`").replace("|", "\\|")
    cells = (f"`{method} {path}`", role, summary, ", ".join(query), ", ".join(body))
    return "| " + " | ".join(cells) + " |"
