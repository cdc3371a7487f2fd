"""Real TVM at two commits of a clone, through the git provider: which commits, and what is told of the builds."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts import artifact_store, provide
from dashboard.artifacts.artifact import Artifact, ArtifactSpec, runs_here
from dashboard.artifacts.git import git_provider
from tvmdash.text import format_bytes, format_duration

MIRROR, ARTIFACTS, COMMITS = "TVM_GIT_MIRROR", "TVMDASH_SLOW_ARTIFACTS", "TVMDASH_SLOW_COMMITS"
OPTIONS, REPORT = "TVMDASH_SLOW_OPTIONS", "TVMDASH_SLOW_REPORT"
LLVMS = ("llvm-config", *(f"llvm-config-{number}" for number in range(22, 14, -1)))
_CODE = (".cc", ".h", ".cpp", ".hpp", ".txt", ".cmake", ".c", ".cu", ".inc")


@dataclass(frozen=True)
class Pair:
    """Two commits (40 digits, the older one first) of the clone `remote`, and the options of their builds."""

    remote: str
    options: Mapping[str, str]
    older: str
    newer: str

    def spec(self, commit: str) -> ArtifactSpec:
        return ArtifactSpec.of(self.remote, commit, self.options)

    @classmethod
    def chosen(cls, remote: str, folder: Path) -> Pair:
        """The two that COMMITS (A..B) names; else the newest two that `folder` holds; else the tip and its parent.

        Options are those of OPTIONS (JSON); else of the builds that are there; else this machine's newest LLVM.
        """
        there = [
            one for one in artifact_store.artifacts_in(folder) if one.facts.get("remote") == remote and runs_here(one)
        ]
        there.sort(key=git_provider.rank)
        built = [
            one.commit
            for one in there
            if one.commit and git_provider.read_options(one) == git_provider.read_options(there[-1])
        ]
        given = os.environ.get(OPTIONS)
        options = (
            json.loads(given)
            if given
            else git_provider.read_options(there[-1])
            if there
            else {"USE_LLVM": newest_llvm()}
        )
        named = os.environ.get(COMMITS)
        older, newer = named.split("..") if named else built[-2:] if len(built) > 1 else ("HEAD^", "HEAD")
        return cls(remote, options, _commit(remote, older), _commit(remote, newer))


def newest_llvm() -> str:
    return next((path for name in reversed(LLVMS) if (path := shutil.which(name))), "ON")


def _commit(remote: str, revision: str) -> str:
    return _git(remote, "rev-parse", "--verify", f"{revision}^{{commit}}")


def _git(remote: str, *words: str) -> str:
    argv = ["git", "-c", "safe.directory=*", "-C", remote, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def taken_again_s(pair: Pair, commit: str, folder: Path, logs: Path) -> tuple[Artifact, float]:
    """The artifact of a commit that is there, and the seconds that it took to get it: a night without a new commit."""
    begun = time.monotonic()
    with provide.provide(pair.spec(commit), folder, rebuild=True, log_folder=logs, timeout_s=600.0) as provided:
        return provided.artifact, time.monotonic() - begun


def table(pair: Pair, builds: Mapping[str, Artifact], again_s: Mapping[str, float]) -> str:
    """The builds as a Markdown table."""
    return "\n".join(_lines(pair, builds, again_s))


def _lines(pair: Pair, builds: Mapping[str, Artifact], again_s: Mapping[str, float]) -> Iterator[str]:
    yield f"TVM built from {pair.remote} on {len(os.sched_getaffinity(0))} cores, {json.dumps(dict(pair.options))}:"
    yield ""
    yield "| commit | of | what | build | no change | libraries | whole artifact |"
    yield "|---|---|---|---:|---:|---:|---:|"
    whats = ("from what ccache had before", _difference(pair))
    for commit, what in zip((pair.older, pair.newer), whats, strict=True):
        one = builds[commit]
        sizes = format_bytes(sum(one.sizes_bytes.values())), format_bytes(size_bytes(one.path))
        times = format_duration(float(one.facts["build_s"])), format_duration(again_s[commit])
        row = (commit[:12], one.facts["committed"][:10], what, *times, *sizes)
        yield f"| {' | '.join(row)} |"


def _difference(pair: Pair) -> str:
    """As in "3 commits later, 12 files, 2 of them C++ or CMake"."""
    commits = int(_git(pair.remote, "rev-list", "--count", "--first-parent", f"{pair.older}..{pair.newer}"))
    files = _git(pair.remote, "diff", "--name-only", pair.older, pair.newer).splitlines()
    code = sum(name.endswith(_CODE) for name in files)
    return f"{commits} {'commit' if commits == 1 else 'commits'} later, {len(files)} files, {code} of them C++ or CMake"


def size_bytes(folder: Path) -> int:
    """What all files below take."""
    found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_size for path in itertools.filterfalse(Path.is_symlink, found))
