"""Tables of the model: what was spent in each scope, what may be, and what endpoints can do."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Table
from sqlmodel import Field, SQLModel

from upright.store.columns import big


class Spent(SQLModel, table=True):
    """What one scope has used in one period, added up with each row of the ledger (B16.2).

    ``period`` is a day since 1970 (UTC); 0: the whole life, of an item. ``extra`` is how often a
    person has granted the whole budget once more. ``warned_ms`` and ``stopped_ms`` say that people
    were told, once.
    """

    scope: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    period: int = Field(primary_key=True)
    tokens: int = Field(default=0, sa_column=big(null=False))
    usd_micros: int = Field(default=0, sa_column=big(null=False))
    steps: int = 0
    retries: int = 0
    repeats: int = 0  # calls that the session had made before, word for word
    millis: int = Field(default=0, sa_column=big(null=False))
    unpriced: int = 0  # calls without a price: no budget in money counts them
    extra: int = 0
    warned_ms: int | None = Field(default=None, sa_column=big())
    stopped_ms: int | None = Field(default=None, sa_column=big(index=True))
    changed_ms: int = Field(sa_column=big(null=False, index=True))


class BudgetRow(SQLModel, table=True):
    """A cap that a person has set beside those of the configuration; 0: none."""

    __tablename__ = "budget"
    scope: str = Field(primary_key=True)
    name: str = Field(primary_key=True)  # empty: each of the scope
    measure: str = Field(primary_key=True)
    amount: int = Field(sa_column=big(null=False))
    by: str
    at_ms: int = Field(sa_column=big(null=False))


class Endpoint(SQLModel, table=True):
    """A model's endpoint: what its probe found, and whether its breaker is open (B16.3)."""

    __tablename__ = "model_endpoint"
    id: str = Field(primary_key=True)  # of address and key: another key is another endpoint
    base_url: str
    probe_json: str = ""
    probed_at_ms: int | None = Field(default=None, sa_column=big())
    held_code: str = ""
    held_reason: str = ""
    held_at_ms: int | None = Field(default=None, sa_column=big())


SPENT: Final[Table] = SQLModel.metadata.tables["spent"]
BUDGET: Final[Table] = SQLModel.metadata.tables["budget"]
ENDPOINT: Final[Table] = SQLModel.metadata.tables["model_endpoint"]
