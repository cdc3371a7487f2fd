"""A small copy of this repository: the real shell scripts, one tiny requirement, a `dashboard` that tells its call."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
TIMEOUT_S = 180.0
WHEEL = "tvmdash_probe-1.0-py3-none-any.whl"

_DASHBOARD = """
import json, locale, os, subprocess, sys, tvmdash_probe
umask = os.umask(0)
lock = subprocess.run(["flock", "-n", "-x", sys.prefix + ".lock", "true"])
told = {"argv": sys.argv[1:], "cwd": os.getcwd(), "prefix": sys.prefix, "env": dict(os.environ), "umask": umask}
told |= {"encoding": locale.getpreferredencoding(False), "json": json.__file__, "locked": lock.returncode == 1}
print(json.dumps(told))
sys.exit(int(os.environ.get("EXIT_WITH", "0")))
"""


@dataclass(frozen=True)
class Start:
    """One finished start."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def told(self) -> dict[str, Any]:
        """What the stand-in for the dashboard said of its call."""
        assert self.stdout, self.stderr
        return json.loads(self.stdout)


@dataclass(frozen=True)
class MiniRepo:
    """The copy, and the environment variables that cron would give, with a pip that knows one folder of wheels only."""

    path: Path
    env: Mapping[str, str]
    script: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "script", self.path / "run_dashboard.sh")

    @property
    def environments(self) -> list[Path]:
        return [stamp.parent for stamp in sorted(self.path.glob(".venv/*/.complete"))]

    def start(self, *arguments: str, cwd: Path | None = None, **env: str) -> Start:
        """Start run_dashboard.sh and wait for its end."""
        return finish(self.popen([str(self.script), *arguments], cwd=cwd, **env))

    def popen(self, argv: Sequence[str], *, cwd: Path | None = None, **env: str) -> subprocess.Popen[str]:
        """Start `argv` in a session of its own."""
        return subprocess.Popen(
            argv,
            cwd=cwd or self.path.parent,
            env={**self.env, **env},
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[str]) -> Start:
    """Wait for a start."""
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    return Start(process.returncode, stdout, stderr)


def _write_wheel(folder: Path) -> None:
    about = "tvmdash_probe-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("tvmdash_probe.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tvmdash-probe\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = ["tvmdash_probe.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD"]
        wheel.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in names))


def make_mini_repo(folder: Path) -> MiniRepo:
    """A copy in `folder`, whose path has spaces and letters beyond ASCII."""
    repo, wheels, programs = folder / "rëpo with späces", folder / "wheels", folder / "bin"
    for path in (repo / "shared" / "bash", repo / "dashboard", wheels, programs):
        path.mkdir(parents=True)
    for name in ("run_dashboard.sh", "shared/bash/common.sh"):
        shutil.copy2(REPO / name, repo / name)
    (repo / "dashboard" / "__init__.py").touch()
    (repo / "dashboard" / "__main__.py").write_text(_DASHBOARD)
    _write_wheel(wheels)
    write_pins(repo, hashlib.sha256((wheels / WHEEL).read_bytes()).hexdigest())
    (programs / "python3").symlink_to(real_python())
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
    return MiniRepo(repo, {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), **pip})


def write_pins(repo: Path, digest: str) -> None:
    """Pin the probe, whose wheel has this SHA-256."""
    (repo / "requirements.txt").write_text("tvmdash-probe==1.0\n")
    (repo / "requirements-hashes.txt").write_text(f"tvmdash-probe==1.0 \\\n    --hash=sha256:{digest}\n")


def real_python() -> str:
    """The Python that this environment was made from."""
    return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())


@pytest.fixture
def repo(tmp_path: Path) -> MiniRepo:
    """A copy that was never started."""
    return make_mini_repo(tmp_path)


@pytest.fixture(scope="session")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> tuple[MiniRepo, Start]:
    """A copy, and its first start as cron makes it: `env -i`, /bin/sh, another working directory, a relative home."""
    repo = make_mini_repo(tmp_path_factory.mktemp("ready"))
    cron = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in repo.env.items())]
    command = f'"{repo.script}" "höme of mine" --no-rebuild-tvm ""'
    return repo, finish(repo.popen([*cron, "/bin/sh", "-c", command]))


@pytest.fixture(scope="session")
def ready_repo(first_start: tuple[MiniRepo, Start]) -> MiniRepo:
    """A copy that was started before; tests leave it as it is."""
    repo, started = first_start
    assert started.exit_code == 0, started.stderr
    return repo


@pytest.fixture
def fake_python(tmp_path: Path) -> Any:
    """Makes `python3` programs that are this Python, changed by a line of code before anything runs."""

    def make(name: str, prelude: str) -> Path:
        place = tmp_path / "fakes" / name
        place.parent.mkdir(exist_ok=True)
        (place.parent / f"{name}.py").write_text(
            f"import sys\nsys.executable = {str(place)!r}\n{prelude}\n"
            "code = sys.argv[sys.argv.index('-c') + 1]\nsys.argv = ['-c']\nsys.path.insert(0, '')\nexec(code)\n"
        )
        place.write_text(f'#!/bin/sh\nexec "{real_python()}" -E -s "{place}.py" "$@"\n')
        place.chmod(0o755)
        return place

    return make


@pytest.fixture
def quick_python(ready_repo: MiniRepo, fake_python: Any) -> dict[str, str]:
    """Variables of a start by a Python whose `venv`, else three seconds of ensurepip, copies that of `ready_repo`."""
    made = ready_repo.environments[0]
    steps = f"""
if sys.argv[1:4] == ["-I", "-m", "venv"]:
    import pathlib, shutil, subprocess
    place = pathlib.Path(sys.argv[4])
    subprocess.run(["cp", "-al", {str(made)!r}, place], check=True)
    (place / ".complete").unlink()
    for package in place.glob("lib/*/site-packages/tvmdash_probe*"):
        shutil.rmtree(package) if package.is_dir() else package.unlink()
    sys.exit()
"""
    return {"TVMDASH_PYTHON": str(fake_python("python3", steps))}
