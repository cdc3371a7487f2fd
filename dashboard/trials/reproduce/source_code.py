"""The code and config that a receipt was measured with: those that are here, or those of its commit."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.git.names import is_commit
from dashboard.night import setup_cache
from dashboard.plan.job import REPOSITORY, CodeFolders, Job
from dashboard.trials.receipt import Receipt
from tvmdash import common
from tvmdash.dashboard_info import experiment_of
from tvmdash.errors import DashboardError
from tvmdash.stages import pipeline

_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Code:
    """A job whose fingerprint is the receipt's, or, with `is_same` False, the nearest that can be had.

    text: where it is from. shared: the library of that commit, where it is not the one that is here.
    """

    job: Job
    is_same: bool
    text: str
    shared: Path | None = None


def find(receipt: Receipt, here: Job | None, code: CodeFolders, scratch: Path) -> Code:
    """The receipt's code and config; what is taken from the repository's history is unpacked in `scratch`."""
    config = _make_config_folder(receipt, here, scratch)
    folder = _find_folder(code.of(pipeline("experiment"), receipt.experiment), here, scratch)
    today = Job("experiment", receipt.experiment, folder, config, dict(receipt.config), None)
    if folder.is_dir() and _fits(receipt, today):
        return Code(today, is_same=True, text="current code and config")
    commit, name = str(receipt.repository.get("commit") or ""), experiment_of(receipt.experiment)
    try:
        then = _unpack(commit, name, scratch / "then")
        past = Job("experiment", receipt.experiment, then / "experiments" / name, config,
                   dict(receipt.config), None)  # fmt: skip
        if _fits(receipt, past):
            text = f"code and library of commit {commit[:12]} of this repository"
            return Code(past, is_same=True, text=text, shared=then / "shared")
        why = "the code at that commit is different"
    except _NotThereError as error:
        why = str(error)
    dirty = " with uncommitted changes" if receipt.repository.get("dirty") else ""
    was = f"it was of commit {commit[:12]}{dirty}; {why}" if commit else why
    if not folder.is_dir():
        raise DashboardError(f"{folder}: folder not found; {was}. Give the experiments' folder with --experiments-dir.")
    return Code(today, is_same=False, text=f"current code, NOT the original code: {was}")


def _find_folder(there: Path, here: Job | None, scratch: Path) -> Path:
    """The experiment's code of today; within a night its own copy, without what setup left in it."""
    if here is None or here.folder == there or not here.folder.is_dir():
        return there
    common.copy_tree(here.folder, scratch / "code", leaves_out=lambda entry: entry.path == "setup")
    return scratch / "code"


def _fits(receipt: Receipt, job: Job) -> bool:
    return setup_cache.fingerprint(job.folder, job.config) == receipt.fingerprint


def _make_config_folder(receipt: Receipt, here: Job | None, scratch: Path) -> Path:
    """The config as the receipt has it; other files beside it are those of today."""
    folder = scratch / "config"
    if here is not None:
        common.copy_tree(here.config_folder, folder)
    folder.mkdir(parents=True, exist_ok=True)
    common.write_json(folder / "config.json", dict(receipt.config), durable=False)
    return folder


class _NotThereError(Exception):
    """Why the code of then cannot be had from the repository, as a clause."""


def _unpack(commit: str, experiment: str, destination: Path) -> Path:
    """The experiment and the library as they were at `commit`; _NotThereError where this repository lacks them."""
    if not is_commit(commit):
        raise _NotThereError("the receipt names no commit")
    _ask(["rev-parse", "--git-dir"], f"{REPOSITORY} is not a readable git repository")
    _ask(["cat-file", "-e", f"{commit}^{{commit}}"], "that commit is not in this repository; fetch it")
    folder = f"experiments/{experiment}"
    outside = "the experiment was kept outside this repository, or was not committed"
    _ask(["cat-file", "-e", f"{commit}:{folder}"], f"that commit has no {folder}: {outside}")
    destination.mkdir(parents=True)
    archive = destination.with_suffix(".tar")
    whole = "that commit could not be unpacked"
    _ask(["archive", "--format=tar", f"--output={archive}", commit, "--", folder, "shared"], whole)
    _call(["tar", "-xf", str(archive), "-C", str(destination)], whole)
    return destination


def _ask(arguments: list[str], otherwise: str) -> None:
    """Call git in the repository; _NotThereError(otherwise) where it says no."""
    _call(["git", "-C", str(REPOSITORY), *arguments], otherwise)


def _call(argv: list[str], otherwise: str) -> None:
    try:
        subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise _NotThereError(otherwise) from error
