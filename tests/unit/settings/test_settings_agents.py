from __future__ import annotations

from pathlib import Path

import pytest

from upright.core.bounds import DEFAULT, Bounds
from upright.settings.errors import SettingsError
from upright.settings.load import explain, load
from upright.settings.shape import Settings

MIA = "[agents.mia]\ntemplate = 'reviewer'\nchildren = 2\n"


def loaded(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "upright.toml"
    path.write_text(text, encoding="utf-8")
    return load({"UPRIGHT_HOME": str(tmp_path)}, file=path)


def test_an_agent_has_a_template_and_bounds_of_its_own(tmp_path: Path) -> None:
    settings = loaded(tmp_path, MIA)
    assert settings.agents["mia"].template == "reviewer"
    bounds = settings.terms().bounds
    assert bounds.for_agent("mia") == Bounds(children=2)
    assert bounds.for_agent("developer") == DEFAULT
    assert "agents.mia" in {key for key, _, _ in explain(settings)}


@pytest.mark.parametrize("key", ["open_items", "children", "depth"])
def test_a_bound_below_one_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError, match=f"{key} must be at least 1"):
        loaded(tmp_path, f"[agents.mia]\n{key} = 0\n")
