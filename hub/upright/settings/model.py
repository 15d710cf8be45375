"""Model: ``[model]`` and its roles: which endpoint is asked, for what, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from upright.api import SecretRef

OPENAI_URL: Final = "https://api.openai.com/v1"
ROLES: Final = ("router", "worker", "advisor", "memory", "compaction")


def check_address(base_url: str) -> None:
    """Raise ValueError when this is no address of an endpoint."""
    address = urlsplit(base_url)
    if address.scheme not in {"http", "https"} or not address.hostname:
        problem = f"base_url must be an address such as {OPENAI_URL}"
        raise ValueError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSection:
    """``[model.router]``, ``[model.worker]`` …: another model for one role (B17.4).

    With a ``base_url`` it is asked at an endpoint of its own, by a key of its own.
    """

    name: str = ""
    base_url: str = ""
    api_key: SecretRef | None = None

    def __post_init__(self) -> None:
        if self.base_url:
            check_address(self.base_url)
        if self.base_url and not self.name:
            problem = "an endpoint of its own needs the name of its model"
            raise ValueError(problem)
        if self.api_key is not None and not self.base_url:
            problem = "api_key is for an endpoint of its own: give its base_url, too"
            raise ValueError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSection:
    """``[model]``: an OpenAI-compatible endpoint; none when ``base_url`` is empty (B17.5)."""

    base_url: str = ""
    name: str = ""
    api_key: SecretRef | None = None
    router: RoleSection = field(default_factory=RoleSection)
    worker: RoleSection = field(default_factory=RoleSection)
    advisor: RoleSection = field(default_factory=RoleSection)
    memory: RoleSection = field(default_factory=RoleSection)
    compaction: RoleSection = field(default_factory=RoleSection)
    first_byte_s: float = 300.0
    idle_s: float = 120.0
    whole_s: float = 1_800.0
    tries: int = 4

    def __post_init__(self) -> None:
        if not self.base_url:
            return
        check_address(self.base_url)
        if not self.name and not (self.router.name and self.worker.name):
            msg = "name is missing, or UPRIGHT_MODEL_NAME: which model is asked?"
            raise ValueError(msg)

    @property
    def configured(self) -> bool:
        """Whether there is a model at all."""
        return bool(self.base_url)

    def roles(self) -> dict[str, RoleSection]:
        """Return each role that has a model of its own."""
        return {role: section for role in ROLES if (section := getattr(self, role)).name}

    def names(self) -> dict[str, str]:
        """Return the model of each role that has its own."""
        return {role: section.name for role, section in self.roles().items()}
