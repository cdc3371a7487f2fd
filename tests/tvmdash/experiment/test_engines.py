"""Engines: installed once, found again, failing alone; no network is asked."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_store
from tvmdash.experiment.engines import Engine, EngineFacts

OFFLINE = ("--no-index",)


def wheel(folder: Path, name: str, version: str = "1.0", source: str = "") -> str:
    """The path of a pure-Python wheel of one module."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", source or f"version = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return str(path)


def install(root: Path, *engines: Engine, setup: str = "a") -> dict[str, engine_store.Place]:
    destination = root / "setup" / "experiment" / setup
    destination.mkdir(parents=True, exist_ok=True)
    return engine_store.install(engines, root / "setup" / ".engines", destination, timeout_s=60)


def test_an_engine_is_installed_whole_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine("fast", (wheel(tmp_path, "fastlib"), wheel(tmp_path, "helper")), pip_options=OFFLINE)
    place = install(tmp_path, engine)["fast"]
    assert {"fastlib.py", "helper.py"} <= {path.name for path in Path(place.path).iterdir()}
    monkeypatch.setattr(sys, "executable", "/nonexistent")  # pip is not asked again
    assert install(tmp_path, engine, setup="b")["fast"] == place
    assert engine_store.find(tmp_path / "setup" / "experiment" / "b", engine) == place


def test_an_engine_that_cannot_be_installed_says_why_and_costs_the_others_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Engine("broken", ("nosuchpackage==1.0",), pip_options=OFFLINE)
    good = Engine("good", (wheel(tmp_path, "goodlib"),), pip_options=OFFLINE)
    places = install(tmp_path, broken, good)
    why = "pip install failed: No matching distribution found for nosuchpackage==1.0"
    assert places["broken"].reason == why
    assert "Could not find a version" in capfd.readouterr().err, "the stage's log has all that pip said"
    assert not places["broken"].path
    assert places["good"].path
    found = engine_store.find(tmp_path / "setup" / "experiment" / "a", broken)
    assert found.reason == places["broken"].reason


def test_what_the_index_does_not_have_is_installed_otherwise(tmp_path: Path) -> None:
    there = Engine("fast for cards", (wheel(tmp_path, "fastlib"),), pip_options=OFFLINE)
    absent = Engine("fast", ("nosuchpackage==1.0",), pip_options=OFFLINE, otherwise=there)
    place = install(tmp_path, absent)["fast"]
    assert (Path(place.path) / "fastlib.py").exists()
    neither = replace(absent, name="neither", otherwise=replace(there, requirements=("nosuchpackage==2.0",)))
    reason = install(tmp_path, neither, setup="b")["neither"].reason
    assert [version in reason for version in ("nosuchpackage==1.0", "nosuchpackage==2.0")] == [True, True]


def test_of_a_long_reason_the_beginning_is_told(tmp_path: Path) -> None:
    broken = Engine("broken", (f"{'x' * 400}==1.0",), pip_options=OFFLINE)
    reason = install(tmp_path, broken)["broken"].reason
    assert reason.startswith("pip install failed: ")
    assert 200 <= len(reason) <= 250


def test_what_no_setup_names_any_more_is_removed(tmp_path: Path) -> None:
    old, new = (
        Engine("fast", (wheel(tmp_path, "fastlib", version),), pip_options=OFFLINE) for version in ("1.0", "2.0")
    )
    place = Path(install(tmp_path, old)["fast"].path)
    install(tmp_path, new, setup="b")
    assert place.is_dir(), "setup a still names it"
    install(tmp_path, new, setup="a")
    assert not place.exists()


def test_a_wheel_made_anew_is_installed_anew(tmp_path: Path) -> None:
    engine = Engine("fast", (wheel(tmp_path, "fastlib"),), pip_options=OFFLINE)
    first = install(tmp_path, engine)["fast"]
    os.utime(wheel(tmp_path, "fastlib", source="changed = True\n"), ns=(1, 1))
    second = install(tmp_path, engine)["fast"]
    assert second != first
    assert "changed" in (Path(second.path) / "fastlib.py").read_text()


def test_an_installation_that_was_interrupted_does_not_count(tmp_path: Path) -> None:
    engine = Engine("fast", (wheel(tmp_path, "fastlib"),), pip_options=OFFLINE)
    place = Path(install(tmp_path, engine)["fast"].path)
    (place / ".complete").unlink()
    (place / "fastlib.py").unlink()
    assert "no longer exists" in engine_store.find(tmp_path / "setup" / "experiment" / "a", engine).reason
    assert (Path(install(tmp_path, engine)["fast"].path) / "fastlib.py").exists()


def test_without_a_setup_an_engine_with_requirements_is_missing_and_one_without_is_there(tmp_path: Path) -> None:
    assert "never installed" in engine_store.find(tmp_path, Engine("fast", ("fastlib==1.0",))).reason
    assert engine_store.find(tmp_path, Engine("own", facts=lambda: EngineFacts("1"))).reason == ""
    (tmp_path / "engines.json").write_text(json.dumps({}))
    assert "did not install it" in engine_store.find(tmp_path, Engine("fast", ("fastlib==1.0",))).reason


@pytest.mark.parametrize(
    ("name", "requirements", "words"),
    [("fast", ("fastlib>=1.0",), "not an exact pin"), ("fast", (), "set `facts`"), ("../x", ("x==1",), "invalid name")],
)
def test_an_engine_that_cannot_be_repeated_is_refused(name: str, requirements: tuple[str, ...], words: str) -> None:
    with pytest.raises(DashboardError, match=words):
        Engine(name, requirements)


def test_an_engine_without_facts_tells_the_version_of_its_first_requirement() -> None:
    assert Engine("numbers", ('numpy==1.0; python_version > "3"', "x==1")).say().version[0].isdigit()
