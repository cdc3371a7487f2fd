"""The pins of both requirements files are exact and complete."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPO = Path(__file__).resolve().parents[2]
FILES = (REPO / "requirements.txt", REPO / "tests" / "requirements.txt")
OPTIONAL = (REPO / "requirements-s3.txt", REPO / "tests" / "object_storage" / "requirements.txt")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NOT_PINNED = {"pip", "setuptools"}
"""What `python -m venv` itself puts there."""


def pins(path: Path, python: str | None = None) -> list[Requirement]:
    """The requirements in `path` that hold for `python`, this one by default."""
    lines = (line.split(" #")[0].strip() for line in path.read_text().splitlines())
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    env = {"python_version": python} if python else {}
    return [requirement for requirement in found if not requirement.marker or requirement.marker.evaluate(env)]


def hashed(path: Path) -> dict[str, int]:
    """The pins in a file of hashes, each with its marker as pip reads it, and how many hashes it has."""
    found: dict[str, int] = {}
    for line in path.read_text().replace("\\\n", " ").splitlines():
        if line and not line.lstrip().startswith("#"):
            pin, *hashes = re.split(r"\s+--hash=", line.strip())
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", text) for text in hashes)
            found[_plain(Requirement(pin))] = len(hashes)
    return found


def _plain(pin: Requirement) -> str:
    marker = str(pin.marker or "").replace("python_full_version", "python_version")
    return f"{normal(pin.name)}{pin.specifier} {marker}".strip()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("path", [*FILES, *OPTIONAL], ids=["dashboard", "tests", "s3", "object_storage"])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_is_one_exact_pin(path: Path, python: str) -> None:
    found = pins(path, python)
    assert found
    for requirement in found:
        assert re.fullmatch(r"==\d+(\.\w+)*", str(requirement.specifier)), requirement
    names = [normal(requirement.name) for requirement in found]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", [*FILES, OPTIONAL[0]], ids=["dashboard", "tests", "s3"])
def test_every_pin_has_its_hashes_beside_it(path: Path) -> None:
    lines = (line.split(" #")[0].strip() for line in path.read_text().splitlines())
    wanted = {_plain(Requirement(line)) for line in lines if line and not line.startswith("#")}
    found = hashed(path.with_name(f"{path.stem}-hashes.txt"))
    assert set(found) == wanted, "run tests/make_hashes.sh"
    assert all(found.values())


@pytest.mark.skipif(not (Path(sys.prefix) / ".complete").exists(), reason="not the environment of tests/run.sh")
def test_what_is_installed_is_what_is_pinned_and_fits_together() -> None:
    wanted = {normal(pin.name): str(pin.specifier)[2:] for path in FILES for pin in pins(path)}
    found = {normal(dist.name): dist.version for dist in importlib.metadata.distributions(path=[sys.path[-1]])}
    assert {name: version for name, version in found.items() if name not in NOT_PINNED} == wanted
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_pin_is_a_wheel_for_every_python(python: str, machine: str, tmp_path: Path) -> None:
    lines = [f"{pin.name}{pin.specifier}\n" for path in FILES for pin in pins(path, python)]
    (tmp_path / "pins.txt").write_text("".join(lines))
    platforms = [f"--platform=manylinux{glibc}_{machine}" for glibc in ("_2_28", "_2_17", "2014")]
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps"]
    argv += ["--only-binary=:all:", f"--python-version={python}", *platforms]
    argv += [f"--target={tmp_path / 'none'}", "-r", str(tmp_path / "pins.txt")]
    dry = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert dry.returncode == 0, dry.stderr
