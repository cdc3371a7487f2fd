"""A night as a value, before anything runs: which jobs, in which order, and what is rejected and why."""

from __future__ import annotations

import difflib
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.spec import WHEEL, provider_of
from dashboard.artifacts.wheel.source import read_remote
from dashboard.plan import devices
from dashboard.plan.home_config import find_env_faults, find_spec_faults, find_timeout_faults, read_home_config
from dashboard.plan.job import OF_THE_JOB, CodeFolders, Job, Plan
from dashboard.plan.settings import Host, choose_hosts, find_host_faults
from dashboard.process.sandbox import find_obstacle
from tvmdash import common, config_util
from tvmdash.common import stamp_of, utc_now
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import HOST_SIGN, VARIANT_SIGN, Home, variant_of
from tvmdash.dashboard_info.stages import EXPERIMENT, PIPELINES, SUBSYSTEM, Pipeline, Stage, pipeline
from tvmdash.errors import DashboardError
from tvmdash.incidents.annotations import list_retired_experiments
from tvmdash.machine.devices import Device

_FIRST_LINE = 256
"""The bytes of a script's first line that Linux reads."""


@dataclass(frozen=True)
class _KnownConfig:
    """The part of the home's config that jobs' configs refer to; None where unreadable: then no name is a fault."""

    tvm: ArtifactSpec
    tvms: Mapping[str, ArtifactSpec] | None = None
    hosts: Mapping[str, Host] | None = None
    devices: Mapping[str, Device] | None = None


def make_plan(home: Home, code: CodeFolders, *, seed: int | None = None, host: str = "") -> Plan:
    """Make the plan of a home. Faults of one job reject that job; those of the top-level config are raised.

    host: the one on which this is; empty for the home's own machine.
    """
    config = read_home_config(home)
    chosen = next(item for item in (seed, config.seed, _draw_seed()) if item is not None)
    found = _find_jobs(home, code, _KnownConfig(config.tvm, config.tvms, config.hosts, config.devices))
    retired = list_retired_experiments(home.root, stamp_of(utc_now()))
    jobs = _without(found, retired)
    variants = add_variants(_spread([job for job in jobs if not job.faults and job.config["active"]]))
    taking_part = _without(variants, retired)
    ordered = _order_jobs(taking_part, "experiment", chosen if config.randomize else None)
    measured = interleave(ordered, turn=len(home.night_stamps()))
    return Plan(
        home=home,
        config=config,
        seed=chosen,
        experiments=tuple(job for job in measured if job.host == host),
        subsystems=_order_jobs(taking_part, "subsystem", None),
        rejected=tuple(job for job in jobs if job.faults),
        inactive=(
            *(f"{job.kind} {job.name}" for job in jobs if not job.faults and not job.config["active"]),
            *(
                f"{job.kind} {job.name} (retired)"
                for job in (*found, *variants)
                if job.measures and job.name in retired
            ),
        ),
        drawn=seed is None and config.seed is None,
        away=tuple(job for job in measured if job.host != host),
        retired=tuple(_list_retired(home, code)),
    )


def _list_retired(home: Home, code: CodeFolders) -> Iterator[str]:
    written = common.read_json(home.config_file)
    for name, remedy in config_util.RETIRED_HOME_FIELDS.items():
        if isinstance(written, dict) and name in written:
            yield f"{home.config_file}: $.{name} has no effect any more. {remedy}"
    for (kind, name), remedy in config_util.RETIRED_JOBS.items():
        if _is_retired(code, pipeline(kind), home.config(kind, name)):
            yield f"{home.config(kind, name)}: there is no {kind} {name} any more. {remedy}"


def _is_retired(code: CodeFolders, row: Pipeline, path: Path) -> bool:
    """Return True for the config of a job that this repository no longer has; one of that name elsewhere is another."""
    is_ours = (row.kind, path.name) in config_util.RETIRED_JOBS and path.is_dir()
    return is_ours and not code.of(row, path.name).is_dir()


def _is_among(job: Job, experiments: AbstractSet[str]) -> bool:
    return job.measures and job.name in experiments


def _without(jobs: Iterable[Job], experiments: AbstractSet[str]) -> list[Job]:
    return [job for job in jobs if not _is_among(job, experiments)]


def find_jobs(home: Home, code: CodeFolders, tvm: ArtifactSpec) -> list[Job]:
    """List every job in the config tree, also the inactive ones, and with their faults the rejected ones.

    For a home whose own config cannot be read: no name of another TVM or host is a fault.
    """
    return _find_jobs(home, code, _KnownConfig(tvm))


def _find_jobs(home: Home, code: CodeFolders, known: _KnownConfig) -> list[Job]:
    return [job for row in PIPELINES for job in _jobs(home, known, code, row)]


def _spread(jobs: Sequence[Job]) -> list[Job]:
    """Make each job once for each host that measures it."""
    return [_put_on_host(job, host) for job in jobs for host in (job.hosts if job.measures else ("",))]


def _put_on_host(job: Job, host: str) -> Job:
    return replace(job, name=f"{job.name}{HOST_SIGN}{host}") if host else job


def _draw_seed() -> int:
    return random.SystemRandom().randrange(2**31)


def _order_jobs(jobs: Sequence[Job], kind: str, seed: int | None) -> tuple[Job, ...]:
    ordered = sorted((job for job in jobs if job.kind == kind), key=lambda job: (-job.config["priority"], job.name))
    if seed is not None:
        random.Random(seed).shuffle(ordered)
    return tuple(ordered)


def _jobs(home: Home, known: _KnownConfig, code: CodeFolders, row: Pipeline) -> Iterator[Job]:
    folder = home.configs(row.kind)
    if not folder.is_dir():
        return
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    strays = [path for path in paths if not path.is_dir()]
    yield from (
        _job(home, known, code, row, path) for path in paths if path.is_dir() and not _is_retired(code, row, path)
    )
    if strays:
        yield Job(
            row.kind,
            strays[0].name,
            code.of(row, strays[0].name),
            strays[0],
            {},
            None,
            (_format_stray_fault(home, row, strays),),
        )


def _format_stray_fault(home: Home, row: Pipeline, strays: Sequence[Path]) -> str:
    """Write one sentence for all that lies where only folders belong, however much it is."""
    more = f" and {len(strays) - 1} more here" if len(strays) > 1 else ""
    it = "them" if more else "this"
    return (
        f"{_format_path(home, strays[0])}{more}: not a folder. Each {row.kind} needs a folder with a config.json; "
        f"move {it} away."
    )


def _job(home: Home, known: _KnownConfig, code: CodeFolders, row: Pipeline, path: Path) -> Job:
    tvm, tvms, folder = known.tvm, known.tvms, code.of(row, path.name)
    spec = tvm if any(stage.needs_tvm for stage in row.stages) else None
    job = Job(row.kind, path.name, folder, path, {}, spec)
    try:
        values = read(row.kind, folder, path, _format_path(home, path))
        needs_tvm = spec is not None and config_util.read_needs_tvm(folder / config_util.FIELDS_FILE)
        beside = config_util.read_beside(folder / config_util.FIELDS_FILE)
    except ConfigError as error:
        return replace(job, faults=error.faults)
    except DashboardError as error:
        return replace(job, faults=(str(error),))
    if not values["active"]:
        return replace(job, config=values)
    shown = f"{_format_path(home, path)}/{config_util.CONFIG_FILE}"
    if spec is None:
        return replace(job, config=values, faults=(*_find_value_faults(job, values, shown), *_find_script_faults(job)))
    options = dict(tvm.options) if values["tvm_options"] is None else values["tvm_options"]
    try:
        values["tvm_remote"] = read_remote(values["tvm_remote"])
    except DashboardError as error:
        return replace(job, config=values, faults=(f"{shown}: $.{error}",))
    spec = ArtifactSpec.of(values["tvm_remote"] or tvm.remote, values["tvm_branch"] or tvm.branch, options)
    tvm_faults = [
        *find_spec_faults(spec, shown),
        *(find_faults(values, tvms, shown) if tvms is not None else ()),
        *(find_host_faults(values["hosts"], known.hosts, shown) if known.hosts is not None else ()),
        *(devices.find_faults(folder, values, known.devices, shown) if known.devices is not None else ()),
    ]
    others = read_wanted(values, tvms or {})
    hosts = choose_hosts(values["hosts"], known.hosts or {})
    is_sandboxed = values["sandbox"]
    for name in OF_THE_JOB:
        del values[name]
    job = replace(
        job, config=values, tvm=spec, others=others, needs_tvm=needs_tvm, beside=beside, hosts=hosts,
        is_sandboxed=is_sandboxed,
    )  # fmt: skip
    tvm_faults += _find_sandbox_fault(job, shown)
    return replace(job, faults=(*tvm_faults, *_find_value_faults(job, values, shown), *_find_script_faults(job)))


def _format_path(home: Home, path: Path) -> str:
    return str(path.relative_to(home.root))


def _find_value_faults(job: Job, values: Mapping[str, Any], shown: str) -> list[str]:
    names = [stage.name for stage in pipeline(job.kind).stages]
    return [*find_env_faults(values["env"], shown), *find_timeout_faults(values["timeouts"], names, shown)]


def _find_sandbox_fault(job: Job, shown: str) -> list[str]:
    obstacle = find_obstacle() if job.is_sandboxed and "" in job.hosts else ""
    return [f"{shown}: $.sandbox: {obstacle}."] if obstacle else []


def _find_script_faults(job: Job) -> list[str]:
    if not job.folder.is_dir():
        field = f"{job.kind}_dirs of the home's config.json"
        return [f"{job.folder}: no such {job.kind}. Check the name, or add the folder that contains it to {field}."]
    faults = [fault for stage in pipeline(job.kind).stages for fault in _find_script_fault(job, stage)]
    shown = job.folder / "setup"
    if shown.is_dir() and not shown.is_symlink() and any(stage.name == "setup" for stage in job.stages):
        faults.append(f"{shown}: this name is reserved for the output of setup.sh. Rename the folder.")
    return faults


def _find_script_fault(job: Job, stage: Stage) -> Iterator[str]:
    script = job.folder / stage.script
    if not script.is_file():
        if script.is_symlink() and not script.exists():
            yield f"{script}: broken link to {os.readlink(script)}. Copy the original folder again with cp -rL."
        elif script.exists() or not stage.optional:
            yield f"{script}: no such script. Every {job.kind} needs a {stage.script}."
        return
    if not os.access(script, os.X_OK):
        yield f"{script}: not executable. Run: chmod +x {script}"
    try:
        with script.open("rb") as file:
            first = file.readline(_FIRST_LINE)
    except OSError as error:
        yield f"{script}: cannot be read: {error.strerror}."
        return
    if not first.startswith(b"#!"):
        yield f"{script}: the first line does not start with #!. Begin the script with #!/usr/bin/env bash."
    elif first.endswith(b"\r\n"):
        yield f"{script}: has Windows line endings (CR LF). Run: sed -i 's/\\r$//' {script}"


_MISSPELT = 0.8

_FIELDS = {EXPERIMENT.kind: config_util.EXPERIMENT_FIELDS, SUBSYSTEM.kind: config_util.SUBSYSTEM_FIELDS}
"""The fields that every job of a kind has."""


def read(kind: str, folder: Path, path: Path, shown: str) -> dict[str, Any]:
    """Read and check the config of the job whose scripts lie in `folder` and whose config folder is `path`.

    DashboardError says what is wrong with the folder, ConfigError every fault of the config; `shown` names the folder.
    """
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError:
        raise DashboardError(f"{shown!r}: the folder name is not valid UTF-8. Rename the folder.") from None
    if pipeline(kind).measures and variant_of(path.name):
        raise DashboardError(
            f"{shown}: {VARIANT_SIGN!r} is reserved; it separates an experiment from its TVM. Rename the folder."
        )
    if pipeline(kind).measures and HOST_SIGN in path.name:
        raise DashboardError(
            f"{shown}: {HOST_SIGN!r} is reserved; it separates an experiment from its host. Rename the folder."
        )
    file = path / config_util.CONFIG_FILE
    if not file.exists():
        raise DashboardError(f"{shown}: config.json is missing. Add one, or move the folder away.")
    common_fields = _FIELDS[kind]
    config_util.read_beside(folder / config_util.FIELDS_FILE)
    own = config_util.read_fields(folder / config_util.FIELDS_FILE)
    config_util.read_takes_minutes(folder / config_util.FIELDS_FILE)
    config_util.read_metrics(folder / config_util.FIELDS_FILE)
    if not own and not (folder / config_util.FIELDS_FILE).exists():
        return _read_undeclared(file, common_fields, f"{shown}/{file.name}")
    return config_util.read_config(file, {**common_fields, **own}, shown_as=f"{shown}/{file.name}")


def _read_undeclared(file: Path, fields: config_util.Fields, shown: str) -> dict[str, Any]:
    """Read the config of a job that declares no fields: whatever else it holds is its own affair."""
    fields = {name: field for name, field in fields.items() if name not in config_util.SIZES}
    try:
        value = common.read_json(file, max_bytes=4 << 20)
    except DashboardError as error:
        raise ConfigError([str(error.at(shown))]) from error
    if not isinstance(value, dict):
        return config_util.check(value, fields, shown)
    own = {name: item for name, item in value.items() if name not in fields}
    near = [
        (name, matches[0])
        for name in own
        if (matches := difflib.get_close_matches(name, fields, n=1, cutoff=_MISSPELT))
    ]
    if near:
        remedy = f"If it is meant as a new field, declare it in the job's {config_util.FIELDS_FILE}."
        raise ConfigError([f"{shown}: $.{name}: Did you mean {right!r}? {remedy}" for name, right in near])
    known = {name: item for name, item in value.items() if name in fields}
    return {**own, **config_util.check(known, fields, shown)}


# Its results lie under that name, so that no series of one TVM ever holds a value of another; its code, its config and
# what its setup left are the experiment's.
def read_wanted(config: Mapping[str, Any], tvms: Mapping[str, ArtifactSpec]) -> tuple[tuple[str, ArtifactSpec], ...]:
    """Choose those of the home's `tvms` that an experiment with this config is measured on, in their order."""
    asked = config["tvms"]
    if asked is None:
        asked = [] if config["tvm_remote"] or config["tvm_branch"] else list(tvms)
    return tuple((name, add_options(spec, config)) for name, spec in tvms.items() if name in asked)


def add_options(spec: ArtifactSpec, config: Mapping[str, Any]) -> ArtifactSpec:
    """Give a source build the options of an experiment that has its own."""
    if config["tvm_options"] is None or provider_of(spec) == WHEEL:
        return spec
    return ArtifactSpec.of(spec.remote, spec.branch, config["tvm_options"])


def find_faults(config: Mapping[str, Any], tvms: Mapping[str, ArtifactSpec], shown: str) -> list[str]:
    """List a sentence for each TVM that the config `shown` names and the home does not."""
    there = f"TVMs in this home's `tvms`: {', '.join(tvms) or 'none'}."
    return [
        f"{shown}: $.tvms: this home has no TVM {name!r:.80}. {there}"
        for name in config["tvms"] or ()
        if name not in tvms
    ]


def add_variants(jobs: Sequence[Job]) -> list[Job]:
    """Keep a job that needs no TVM on another TVM only beside an experiment that needs that one."""
    needed = {name for job in jobs if job.needs_tvm for name, _ in job.others}
    return [
        job if job.needs_tvm else replace(job, others=tuple(item for item in job.others if item[0] in needed))
        for job in jobs
    ]


def interleave(jobs: Sequence[Job], turn: int) -> tuple[Job, ...]:
    """Put each job's variants behind it, so that a slow hour hits all alike.

    Which of them goes first takes turns: from one experiment to the next by name, and with `turn` from night to night.
    """
    names = sorted(job.name for job in jobs if job.others)
    ordered: list[Job] = []
    for job in jobs:
        every = [job, *(_make_variant(job, name, spec) for name, spec in job.others)]
        first = (turn + names.index(job.name)) % len(every) if job.others else 0
        ordered += [*every[first:], *every[:first]]
    return tuple(ordered)


def _make_variant(job: Job, name: str, spec: ArtifactSpec) -> Job:
    return replace(job, name=f"{job.name}{VARIANT_SIGN}{name}", tvm=spec, others=())
