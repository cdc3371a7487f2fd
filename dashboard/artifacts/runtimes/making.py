"""Fetches the source of a wheel's release and compiles the runtime of one device from it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.artifact import Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import command as git_command
from dashboard.artifacts.git.cmake import find_first_error
from dashboard.artifacts.runtimes.recipes import RECIPES, Recipe
from dashboard.process import process

_STANDARD = "c++20"


def library_name(kind: str) -> str:
    """Return the name under which TVM loads the library."""
    return f"libtvm_runtime_{kind}.so"


def tag_of(version: str) -> str:
    """The git ref that a release was made from."""
    return f"refs/tags/v{version}"


@dataclass(frozen=True)
class Making:
    """One runtime being made for `artifact` in the empty folder `place`, from the source at the git remote `remote`."""

    artifact: Artifact
    kind: str
    remote: str
    place: Path
    context: BuildContext

    @property
    def recipe(self) -> Recipe:
        return RECIPES[self.kind]

    @property
    def source(self) -> Path:
        return self.place / "source"

    @property
    def folder(self) -> Path:
        """The folder that is kept."""
        return self.place / self.kind

    @property
    def library(self) -> Path:
        return self.folder / library_name(self.kind)

    def fetch(self) -> str:
        """Fetch the wheel's tag, and nothing before it; its commit, which must be the wheel's own."""
        tag = tag_of(self.artifact.version)
        self.source.mkdir()
        self._git("init", "--quiet", ".")
        self._git("fetch", "--quiet", "--depth=1", "--no-tags", "--", self.remote, tag)
        commit = (git_command.ask(["rev-parse", "FETCH_HEAD^{commit}"], cwd=self.source) or "").strip()
        own = self.artifact.commit
        if own is None or not commit.startswith(own):
            raise ArtifactError(
                f"{self.remote}: {tag} is commit {commit[:12]}, but the wheel was built from "
                f"{own or 'an unknown one'}. Set tvm_source to the remote that the wheel was built from."
            )
        self._git("checkout", "--quiet", commit, "--", *self.recipe.folders)
        return commit

    def compile(self) -> str:
        """Compile and link against the wheel's own libraries; the compiler's first words."""
        compiler = shutil.which("c++") or shutil.which("g++")
        if compiler is None:
            raise ArtifactError(f"no C++ compiler found (Debian, Ubuntu: {self.recipe.install}).")
        self.folder.mkdir()
        headers = [f"-I{self.source / name}" for name in self.recipe.folders]
        headers += [f"-I{folder / 'tvm_ffi' / 'include'}" for folder in self.artifact.pythonpath]
        options = [f"-std={_STANDARD}", "-O2", "-fPIC", *(f"-D{name}" for name in self.recipe.defines), *headers]
        objects = []
        for number, name in enumerate(self.recipe.files):
            objects.append(str(self.place / f"{number}.o"))
            self._run(f"compile-{number}", [compiler, *options, "-c", name, "-o", objects[-1]])
        folders = [f"-L{folder}" for folder in self.artifact.library_path]
        libraries = [f"-l{name}" for name in ("tvm_runtime", "tvm_ffi", *self.recipe.libraries)]
        self._run("link", [compiler, "-shared", "-o", str(self.library), *objects, *folders, *libraries])
        self._run("version", [compiler, "--version"])
        return self._log("version").read_text(encoding="utf-8", errors="replace").partition("\n")[0]

    def _log(self, step: str) -> Path:
        return self.context.log_folder / f"runtime-{self.kind}-{self.artifact.version}-{step}.log"

    def _git(self, *arguments: str) -> None:
        git_command.work(
            list(arguments), cwd=self.source, log=self._log(f"git-{arguments[0]}"), deadline=self.context.deadline
        )

    def _run(self, step: str, argv: Sequence[str]) -> None:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TMPDIR": str(self.place)}
        log = self._log(step)
        left_s = self.context.deadline.left_s()
        outcome = process.run(argv, cwd=self.source, env=environment, timeout_s=left_s, log=log)
        if outcome.exit_code != 0 or outcome.timed_out:
            said = "timed out" if outcome.timed_out else find_first_error(log) or outcome.tail[-300:]
            raise ArtifactError(
                f"{step}: {said} (log: {log}). Required packages (Debian, Ubuntu): {self.recipe.install}."
            )
