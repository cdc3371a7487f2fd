"""Git repositories of the small project in `standin_sources/`, which the git provider builds as it builds TVM."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "standin_sources"
_WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}
SAFE = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-c", "safe.directory=*")


def git(folder: Path, *arguments: str, day: int = 1) -> str:
    """What a git command in `folder` prints; commits are made on that day of August."""
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"2026-08-{day:02d}T12:00:00+00:00")
    environment = {**os.environ, **_WHO, **dates}
    done = subprocess.run(
        ["git", *SAFE, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {arguments}: {done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True)
class Remotes:
    """The three repositories, side by side in `folder`; `tvm` is what is asked for."""

    folder: Path

    @property
    def tvm(self) -> Path:
        return self.folder / "tvm"

    def commit(self, title: str, added: Mapping[str, str] | None = None, *, day: int = 1) -> str:
        """A commit of tvm that appends `added` texts to files, by path; its 40 digits."""
        for name, text in (added or {}).items():
            (self.tvm / name).parent.mkdir(parents=True, exist_ok=True)
            with (self.tvm / name).open("a", encoding="utf-8") as file:
                file.write(text)
        git(self.tvm, "add", "-A")
        git(self.tvm, "commit", "--quiet", "--allow-empty", "-m", title, day=day)
        return git(self.tvm, "rev-parse", "HEAD")

    def copy(self, folder: Path) -> Remotes:
        """The same repositories elsewhere."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Remotes(folder)


def make(folder: Path) -> Remotes:
    """The repositories with one commit each; the submodules' URLs are relative."""
    for name, submodule in (("dlpack", None), ("tvm-ffi", "dlpack"), ("tvm", "tvm-ffi")):
        place = folder / name
        shutil.copytree(SOURCES / name, place)
        git(place, "init", "--quiet")
        git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
        if submodule:
            (place / "3rdparty").mkdir()
            git(place, "clone", "--quiet", str(folder / submodule), f"3rdparty/{submodule}")
            git(place / "3rdparty" / submodule, "remote", "set-url", "origin", f"../../../{submodule}")
            text = f'[submodule "{submodule}"]\n\tpath = 3rdparty/{submodule}\n\turl = ../{submodule}\n'
            (place / ".gitmodules").write_text(text)
        git(place, "-c", "advice.addEmbeddedRepo=false", "add", "-A")
        git(place, "commit", "--quiet", "-m", f"{name}: begin")
    git(folder / "tvm", "tag", "v0.27.0")
    return Remotes(folder)


def make_relay_era(folder: Path) -> Remotes:
    """Repositories of a tree as before tvm-ffi, with VTA, tagged v0.18.0; its submodule cnpy cannot be had at all."""
    for name in ("dlpack", "vta-hw", "tvm"):
        place = folder / name
        shutil.copytree(SOURCES / name, place)
        git(place, "init", "--quiet")
        git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
    place, text = folder / "tvm", ""
    shutil.copytree(SOURCES / "tvm-relay", place, dirs_exist_ok=True)
    (place / "3rdparty").mkdir()
    for name in ("dlpack", "vta-hw"):
        git(folder / name, "add", "-A")
        git(folder / name, "commit", "--quiet", "-m", f"{name}: begin")
        git(place, "clone", "--quiet", str(folder / name), f"3rdparty/{name}")
        text += f'[submodule "{name}"]\n\tpath = 3rdparty/{name}\n\turl = ../{name}\n'
    text += '[submodule "cnpy"]\n\tpath = 3rdparty/cnpy\n\turl = ../not-there\n'
    (place / ".gitmodules").write_text(text)
    git(place, "-c", "advice.addEmbeddedRepo=false", "add", "-A")
    git(place, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},3rdparty/cnpy")
    git(place, "commit", "--quiet", "-m", "tvm: begin")
    git(place, "tag", "v0.18.0")
    return Remotes(folder)
