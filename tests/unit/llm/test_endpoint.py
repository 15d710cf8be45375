"""Where the model is."""

from __future__ import annotations

import pytest

from upright.api import Secret
from upright.engine.ports import ModelRequestError
from upright.llm.endpoint import ModelSettings


@pytest.mark.clause("B17.4")
def test_a_role_has_its_own_model_or_the_common_one() -> None:
    settings = ModelSettings(base_url="http://x/v1", model="big", models={"router": "small"})
    assert [settings.model_for(role) for role in ("router", "worker")] == ["small", "big"]


def test_a_role_without_any_model_is_refused_by_name() -> None:
    with pytest.raises(ModelRequestError, match="worker"):
        ModelSettings(base_url="http://x/v1", models={"router": "small"}).model_for("worker")


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://10.0.0.7/v1", False),
        ("nonsense", False),
    ],
)
def test_this_machine_is_told_from_others(url: str, *, here: bool) -> None:
    assert ModelSettings(base_url=url).is_loopback() is here


def test_the_key_does_not_print() -> None:
    assert "sk-1" not in repr(ModelSettings(base_url="http://x/v1", api_key=Secret("sk-1")))
