"""A published number: what was measured then, on what and how, from a data file, a receipt or an exported record.

And its past, set up again: its code and config, and the facts of TVM and machine that have changed since.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.artifacts.git.names import is_commit
from dashboard.night import repository, setup_cache
from dashboard.plan.job import REPOSITORY, CodeFolders, Job
from tvmdash import common, config_util, records
from tvmdash.common import structured
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.dashboard_info.stages import pipeline
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware
from tvmdash.records import PointValue
from tvmdash.records.exchange import named_format, read_records
from tvmdash.records.metrics import RATIOS
from tvmdash.trials import receipt as receipts
from tvmdash.trials.receipt import Pins


@dataclass(frozen=True)
class PinnedRun:
    """One experiment of one night, with all that pins it."""

    source: str
    experiment: str
    stamp: str
    values: tuple[PointValue, ...]
    pins: Pins
    environment: Mapping[str, Any]

    @property
    def repeatable(self) -> tuple[PointValue, ...]:
        """The numbers that are measured again; a ratio to the reference is that of one of them."""
        return tuple(value for value in self.values if value.key.metric not in RATIOS)

    @property
    def ratios(self) -> Mapping[str, PointValue]:
        """Ratios to the reference, measured in turn, by the ID of the series that they are ratios of."""
        found = (value for value in self.values if value.key.metric in RATIOS and value.value > 0)
        return {replace(value.key, metric=RATIOS[value.key.metric]).id: value for value in found}


def read(home: Home, name: str) -> PinnedRun:
    """The receipt in a file, or of `EXPERIMENT/STAMP` of the home; DashboardError says what it lacks.

    The file is a data file, a receipt of the website, or what `records export` wrote of one night, one line of it even.
    """
    experiment, slash, stamp = name.rpartition("/")
    of_night = bool(slash) and common.is_stamp(stamp) and "/" not in experiment
    path = home.data_file(experiment, stamp) if of_night else Path(name).expanduser()
    style = None if of_night else named_format(path)
    if style and style != "json":
        return _read_exported(path, style)
    value = common.read_json(path)
    if isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("night"), str)):
        return _read_exported(path, "json" if isinstance(value, list) else "jsonl")
    night = value.get("night") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(night, dict):
        kinds = "a data_<stamp>.json, a receipt, an exported record, or EXPERIMENT/STAMP"
        raise DashboardError(f"{path}: does not identify a night. Give {kinds}.")
    pins = _read_pins(night, path, "$.night")
    owner = pins.experiment or str(value.get("experiment") or path.parent.name)
    when = pins.stamp or str(value.get("stamp") or "")
    values = tuple(_values(home, path, value, owner, when))
    return PinnedRun(str(path), owner, when, values, pins, common.object_in(value, "environment"))


def _read_pins(night: Mapping[str, Any], path: Path, at: str) -> Pins:
    lacks = Pins.lacking(night)
    if lacks:
        why = "imported, added by hand, or measured without TVM"
        raise DashboardError(f"{path}: its night has no {' and '.join(lacks)}: {why}.")
    known = {name: value for name, value in night.items() if value is not None}
    return structured.from_json(Pins, known, path, at=at)


def _read_exported(path: Path, style: str) -> PinnedRun:
    """The records of one night that `records export` wrote; one of them is enough."""
    rows = list(read_records(path, style))
    if not rows:
        raise DashboardError(
            f"{path}: contains no records. Give a file written by `records export`, or one line of it."
        )
    nights = {(row.experiment, row.night, row.tvm_hash) for row in rows}
    if len(nights) != 1 or any(row.pins != rows[0].pins for row in rows):
        raise DashboardError(
            f"{path}: contains records of {len(nights)} nights. Give the records of one night, or a single line."
        )
    first = rows[0]
    pins = _read_pins(first.pins, path, "$.pins")
    recorded = {"night": {"imported": {}}, "records": [row.record.to_json() for row in rows]}
    values = tuple(records.night_of(recorded, first.experiment, first.night, None).values())
    return PinnedRun(str(path), first.experiment, first.night, values, pins, first.environment)


def _values(home: Home, path: Path, value: Mapping[str, Any], experiment: str, stamp: str) -> Iterator[PointValue]:
    if "data_file" not in value:  # a data file
        yield from records.read_data(path, experiment, home=home.machine()).values()
        return
    receipt = structured.from_json(receipts.Receipt, value, path)
    recorded = [entry.record for entry in receipt.records]
    leaves = {str(record["path"]): float(record["value"]) for record in recorded if "path" in record}
    whole = [record for record in recorded if "path" not in record]
    night = records.night_of({"night": receipt.night, "records": whole}, experiment, stamp, home.machine())
    yield from replace(night, leaves=leaves).values()


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


def find_code(receipt: PinnedRun, here: Job | None, code: CodeFolders, scratch: Path) -> Code:
    """The receipt's code and config; what is taken from the repository's history is unpacked in `scratch`."""
    config = _make_config_folder(receipt, here, scratch)
    folder = _find_folder(code.of(pipeline("experiment"), receipt.experiment), here, scratch)
    today = _make_job(receipt, here, folder, config)
    if folder.is_dir() and _fits(receipt, today):
        return Code(today, is_same=True, text="current code and config")
    commit, name = str(receipt.pins.repository.get("commit") or ""), experiment_of(receipt.experiment)
    try:
        then = _unpack(commit, name, scratch / "then")
        past = _make_job(receipt, here, then / "experiments" / name, config)
        if _fits(receipt, past):
            text = f"code and library of commit {commit[:12]} of this repository"
            return Code(past, is_same=True, text=text, shared=then / "shared")
        why = "the code at that commit is different"
    except _NotThereError as error:
        why = str(error)
    dirty = " with uncommitted changes" if receipt.pins.repository.get("dirty") else ""
    was = f"it was of commit {commit[:12]}{dirty}; {why}" if commit else why
    if not folder.is_dir():
        raise DashboardError(f"{folder}: folder not found; {was}. Give the experiments' folder with --experiments-dir.")
    return Code(today, is_same=False, text=f"current code, NOT the original code: {was}")


def _make_job(receipt: PinnedRun, here: Job | None, folder: Path, config: Path) -> Job:
    """The experiment with this code; its sandbox is as the home asks for today."""
    job = Job("experiment", receipt.experiment, folder, config, dict(receipt.pins.config), None)
    beside = config_util.read_beside(folder / config_util.FIELDS_FILE)
    return replace(job, beside=beside, is_sandboxed=here is not None and here.is_sandboxed)


def _find_folder(there: Path, here: Job | None, scratch: Path) -> Path:
    """The experiment's code of today; within a night its own copy, without what setup left in it."""
    if here is None or here.folder == there or not here.folder.is_dir():
        return there
    common.copy_tree(here.folder, scratch / "code", leaves_out=lambda entry: entry.path == "setup")
    return scratch / "code"


def _fits(receipt: PinnedRun, job: Job) -> bool:
    return setup_cache.fingerprint(job.folder, job.config) == receipt.pins.fingerprint


def _make_config_folder(receipt: PinnedRun, here: Job | None, scratch: Path) -> Path:
    """The config as the receipt has it; other files beside it are those of today."""
    folder = scratch / "config"
    if here is not None:
        common.copy_tree(here.config_folder, folder)
    folder.mkdir(parents=True, exist_ok=True)
    common.write_json(folder / "config.json", dict(receipt.pins.config), durable=False)
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


_PLACES = frozenset(("library_path",))
"""Facts of an engine that differ from home to home."""
Fact = tuple[str, str, str]
"""Its name, how it was then, how it is now."""
_MACHINE = ("host", "hw_model")
_FACTS = ("cpu_microcode", *hardware.STATE, "memory_bytes", "affinity", "system", "distribution", "libc", "python")


def is_same_machine(receipt: PinnedRun) -> bool | None:
    """Compare this machine with the receipt's; None where the receipt does not name it."""
    then, now = _machine_of(receipt), hardware.facts()
    return all(then[name] == now[name] for name in _MACHINE) if all(then.get(name) for name in _MACHINE) else None


def find_differing(receipt: PinnedRun, artifact: Artifact, code: Code, note: str) -> Iterator[Fact]:
    """Yield the facts that differ: of the TVM (with a `note` on how it was got), this repository and the machine."""
    was = {**dict(receipt.pins.artifact.get("facts") or {}), "key": receipt.pins.artifact.get("key")}
    has = {**artifact.facts, "key": artifact.key}
    for name in sorted(was.keys() | has.keys()):
        if str(was.get(name)) != str(has.get(name)) and name != "build_s":
            yield f"TVM's {name}", str(was.get(name)), str(has.get(name))
    if note:
        yield "TVM", str(receipt.pins.artifact.get("version")), note
    commit = str(receipt.pins.repository.get("commit") or "unknown")
    current = str(repository.describe(REPOSITORY).get("commit") or "unknown")
    if code.shared is None and commit != current:
        yield "commit of this repository", commit[:12], current[:12]
    then, now = _machine_of(receipt), hardware.facts()
    for name in (*_MACHINE, *_FACTS):
        if name in then and then[name] != now.get(name):
            yield name, _known(then[name]), _known(now.get(name))


def compare_engines(receipt: PinnedRun, nights: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    """Versions of what runs beside TVM that differ, as the data itself names them."""
    was = receipt.environment.get("engine")
    has = (nights[0].get("environment") or {}).get("engine") if nights else None
    if isinstance(was, dict) and isinstance(has, dict):
        was, has = _flatten(was), _flatten(has)
        for name in sorted(was.keys() & has.keys() - _PLACES):
            if was[name] != has[name]:
                yield f"engine's {name}", str(was[name])[:200], str(has[name])[:200]


def _flatten(engine: Mapping[str, Any]) -> dict[str, Any]:
    """Spread an engine's own facts beside its other fields."""
    facts = engine.get("facts")
    return {**{name: value for name, value in engine.items() if name != "facts"}, **dict(facts or {})}


def _machine_of(receipt: PinnedRun) -> dict[str, Any]:
    then = receipt.environment.get("machine")
    return dict(then) if isinstance(then, dict) else {}


def _known(value: object) -> str:
    return "unknown" if value is None else str(value)
