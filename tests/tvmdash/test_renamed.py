"""Names that modules of tvmdash had: private experiments and subsystems go on with them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tvmdash
from tvmdash import _renamed

LIBRARY = Path(tvmdash.__file__).parent
ANCESTOR = (
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
)


@pytest.mark.parametrize("old", sorted(_renamed.RENAMED))
def test_each_old_name_is_the_module_at_its_new_place(old: str) -> None:
    new = importlib.import_module(f"tvmdash.{_renamed.RENAMED[old]}")
    sys.modules.pop(f"tvmdash.{old}", None)
    with pytest.warns(DeprecationWarning, match=rf"tvmdash\.{old} is now tvmdash\.{_renamed.RENAMED[old]}; import"):
        assert importlib.import_module(f"tvmdash.{old}") is new
    assert new.__spec__ is not None
    assert new.__spec__.name == f"tvmdash.{_renamed.RENAMED[old]}"


@pytest.mark.parametrize("name", ANCESTOR)
def test_the_names_of_the_ancestor_are_no_old_names(name: str) -> None:
    assert name not in _renamed.RENAMED
    importlib.import_module(f"tvmdash.{name}")


def test_an_author_is_told_in_the_stages_log_and_the_script_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "private.py"
    script.write_text(
        "from tvmdash import plot_specs\nfrom tvmdash.words import duration_in_words\n"
        "from tvmdash.plot_specs import Bar\nprint(plot_specs.Bar is Bar, duration_in_words(90))\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(LIBRARY.parent)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True 1 min")
    assert f"{script}:1: DeprecationWarning: tvmdash.plot_specs is now tvmdash.plot_util.specs" in done.stderr
    assert f"{script}:2: DeprecationWarning: tvmdash.words is now tvmdash.text" in done.stderr


@pytest.mark.parametrize(
    ("module", "old"), [(module, old) for module, names in _renamed.FUNCTIONS.items() for old in names]
)
def test_each_old_function_is_the_one_of_the_new_name(module: str, old: str) -> None:
    found, new = importlib.import_module(module), _renamed.FUNCTIONS[module][old]
    with pytest.warns(DeprecationWarning, match=rf"{old} is now {module}\.{new}\."):
        assert getattr(found, old) is getattr(found, new)
    with pytest.raises(AttributeError, match="no_such"):
        _ = found.no_such


def test_an_old_name_still_is_a_command(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(LIBRARY.parent)}
    argv = [sys.executable, "-m", "tvmdash.annotations", "--help"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


def test_a_name_that_never_was_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tvmdash\.nothing"):
        importlib.import_module("tvmdash.nothing")


@pytest.mark.parametrize("name", tvmdash.__all__)
def test_the_face_of_the_library_gives_what_it_lists(name: str) -> None:
    assert getattr(tvmdash, name).__name__ == name


def test_type_checkers_see_the_same_face() -> None:
    stub = (LIBRARY / "__init__.pyi").read_text(encoding="utf-8")
    assert all(f"import {name} as {name}\n" in stub for name in tvmdash.__all__)
