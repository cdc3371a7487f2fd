"""A page of nightly wheels that are copies of real TVM under MLC's name, some of them with a file changed."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests

TIMEOUT_S = 1800.0
_COMMIT = "g7b5acb32b"
Edit = Callable[[str], str]
"""What becomes of a file's text."""


def replace(old: str, new: str) -> Edit:
    """The edit that replaces a text, which has to be there, where it is first."""

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return edit


def pack(
    tvm: Artifact,
    page: Path,
    number: int,
    *,
    commit: str,
    edits: Mapping[str, Edit] = MappingProxyType({}),
    ffi: str = ">=0.1.14.post0",
) -> None:
    """A nightly wheel with the files of that TVM, some edited; stored, because to compress 300 MB takes a minute."""
    name, site = f"mlc_ai_nightly_cpu-0.26.dev{number}", tvm.path / "site"
    info, edits = f"{name}.dist-info", {"tvm/_version.py": replace(_COMMIT, f"g{commit}"), **edits}
    page.mkdir(exist_ok=True)
    with zipfile.ZipFile(page / f"{name}-py3-none-linux_x86_64.whl.part", "w") as wheel:
        for file in sorted(path for path in (site / "tvm").rglob("*") if path.is_file() and path.suffix != ".pyc"):
            place = file.relative_to(site).as_posix()
            if place in edits:
                wheel.writestr(place, edits[place](file.read_text()))
            else:
                wheel.write(file, place)
        needs = "".join(f"Requires-Dist: {need}\n" for need in (f"apache-tvm-ffi{ffi}", "numpy", "ml_dtypes"))
        head = f"Metadata-Version: 2.1\nName: mlc-ai-nightly-cpu\nVersion: 0.26.dev{number}\n{needs}"
        wheel.writestr(f"{info}/METADATA", head)
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
        wheel.writestr(f"{info}/WHEEL", tag)
        wheel.writestr(f"{info}/RECORD", "")
    (page / f"{name}-py3-none-linux_x86_64.whl.part").rename(page / f"{name}-py3-none-linux_x86_64.whl")


def make_lab(root: Path, page: Path) -> HomeForTests:
    """A home that measures the page's newest wheel, judges it and publishes a website."""
    remote = {"package": "mlc-ai-nightly-cpu", "find_links": str(page)}
    home = homes.make_home(root, Path("../shelf"), tvm_remote=remote)
    for name in ("stat_alerts", "website"):
        homes.write(home.home.config("subsystem", name) / "config.json", {"active": True})
    return home


def call(home: HomeForTests, *words: str, code: int = 0) -> str:
    """What a command on the home says; it has to end with that code."""
    done = subprocess.run(
        [sys.executable, "-m", "dashboard", words[0], str(home.path), *words[1:]],
        env={**homes.environment(), **{name: value for name, value in os.environ.items() if name.startswith("PIP_")}},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def read_page(home: HomeForTests, name: str) -> str:
    """What a page of the home's site says, with single blanks."""
    text = (home.home.output("website") / name).read_text()
    return " ".join(html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)).split())
