"""The names of tvmdash that authors import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import tvmdash

LIBRARY = Path(tvmdash.__file__).parent
PUBLIC = (
    "common",
    "dashboard_info",
    "plot_util",
    "config_util",
    "check_prerequisites",
    "trial_util",
    "analysis_util",
    "exp_templates",
    "summary_util",
    "slack_util",
    "relax_util",
    "traces",
)
"""What the ancestor's experiments and private ones of today import; they stay where they are."""


@pytest.mark.parametrize("name", PUBLIC)
def test_the_modules_that_authors_know_are_there(name: str) -> None:
    importlib.import_module(f"tvmdash.{name}")


@pytest.mark.parametrize("name", tvmdash.__all__)
def test_the_face_of_the_library_gives_what_it_lists(name: str) -> None:
    assert getattr(tvmdash, name).__name__ == name


def test_type_checkers_see_the_same_face() -> None:
    stub = (LIBRARY / "__init__.pyi").read_text(encoding="utf-8")
    assert all(f"import {name} as {name}\n" in stub for name in tvmdash.__all__)
