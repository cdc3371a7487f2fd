"""Run one stage of one job and judge it. Whatever a stage leaves behind is data from a stranger."""

from __future__ import annotations

import logging
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from dashboard.night import beside, publish, setup_cache, telemetry
from dashboard.night.beside import Half
from dashboard.night.context import (
    REFERENCE,
    Context,
    Workspace,
    make_guests_environment,
    read_reference_artifact,
    stage_environment,
)
from dashboard.plan.job import Job
from dashboard.process import process
from dashboard.process.process import ProcessOutcome
from dashboard.process.watchdog import MARK
from tvmdash import common
from tvmdash.common.files import sync, trees
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, SKIPPED, StepReason, StepResult, stages
from tvmdash.dashboard_info.stages import Stage, Status
from tvmdash.errors import DashboardError
from tvmdash.machine import devices
from tvmdash.text import format_bytes

_FULL_BYTES = 1 << 20
_log = logging.getLogger("night")


def take_copy(context: Context, job: Job) -> None:
    """Copy the job's code and config, so that an edit or a pull during the night changes nothing under way."""
    workspace = context.workspace(job)
    trees.remove(workspace.root)
    workspace.scratch.mkdir(parents=True)
    setup_cache.copy_code(job.folder, workspace.code)
    common.copy_tree(job.config_folder, workspace.config)
    workspace.fingerprint.write_text(setup_cache.fingerprint(workspace.code, job.config), encoding="ascii")


def perform(context: Context, job: Job, stage: Stage) -> StepResult:
    """Run the stage, judge it, publish what it left; the outcome is always a StepResult.

    What is measured once and cannot be made again survives a power cut from then on.
    """
    try:
        result = _perform(context, job, stage)
        if stage.alone:
            sync.sync_tree(context.workspace(job).root)
    except process.Cancelled:
        raise
    except (DashboardError, OSError) as error:
        return StepResult(stage.name, FAILED, _format_error(error, context), context.stamp)
    except Exception as error:  # noqa: BLE001 - a bug of ours in judging what a stage left must not cost the other jobs
        _log.exception("%s: %s", job.name, stage.name)
        message = f"Internal error in judging {stage.script}: {type(error).__name__}: {error!s:.200}."
        return StepResult(stage.name, FAILED, message, context.stamp)
    return result


def _perform(context: Context, job: Job, stage: Stage) -> StepResult:
    if stage.name == "setup":
        return _setup(context, job, stage)
    if stage.alone and beside.takes_turns(context, job):
        return beside.run_in_turn(
            beside.plan_turns(context, job),
            context.find_deadline(job, stage).seconds,
            nights=lambda: _run(context, job, stage, context.workspace(job).of(stage.name)),
            perform=lambda half, left_s: _perform_half(context, job, stage, half, left_s),
        )
    return _run(context, job, stage, context.workspace(job).of(stage.name))


def _setup(context: Context, job: Job, stage: Stage) -> StepResult:
    workspace = context.workspace(job)
    key = workspace.read_fingerprint()
    setup_dir = context.plan.config.setup
    kept = setup_cache.find_made(setup_dir, job.experiment, key, context.stamp)  # for another of tonight's TVMs
    if kept is None and not job.config["rerun_setup"]:
        kept = setup_cache.find(setup_dir, job.experiment, key)
    if kept is not None:
        _show_setup(workspace, kept)
        of_night = setup_cache.stamp_of(kept)
        message = f"unchanged: kept from {of_night}"
        return StepResult(stage.name, SKIPPED, message, context.stamp, reason=StepReason.KEPT, subject=of_night)
    folder = setup_cache.begin(setup_dir, job.experiment, key, context.stamp)
    try:
        result = _run(context, job, stage, folder)
        if result.success:
            setup_cache.finish(folder)
            _show_setup(workspace, folder)
    finally:
        if not os.path.isfile(folder / setup_cache.COMPLETE):
            trees.remove(folder)
    return result


def _show_setup(workspace: Workspace, folder: Path) -> None:
    link = workspace.code / "setup"
    link.unlink(missing_ok=True)  # a link that somebody's run by hand left; a folder was refused by the plan
    link.symlink_to(folder)


def _run(context: Context, job: Job, stage: Stage, destination: Path) -> StepResult:
    workspace = context.workspace(job)
    paths = {
        "config": workspace.config,
        "destination": destination,
        "raw": workspace.of("run"),
        "data": context.home.data(job.name),
        "output": context.home.output(job.name),
        "home": context.home.root,
    }
    left_in = paths["output"] if "output" in stage.arguments else destination
    for name in stage.arguments:
        paths[name].mkdir(parents=True, exist_ok=True)
    _remove_status(left_in)
    deadline = context.find_deadline(job, stage)
    timeout_s = deadline.seconds
    started_ns = time.time_ns()
    with telemetry.record(context, job, stage):
        outcome = process.run(
            [str(workspace.code / stage.script), *(str(paths[name]) for name in stage.arguments)],
            cwd=workspace.code,
            env={**_environment(context, job, workspace), **_name_reference(context, job, stage)},
            timeout_s=timeout_s,
            log=workspace.log(stage.name),
            sandbox=context.make_sandbox(job, left_in, paths["raw"]),
        )
    try:
        message = judge(outcome, left_in, stage, timeout_s, usual=deadline.text) + _compare(
            context, job, stage, left_in
        )
        failed_points = publish.publish(context, job, stage, left_in)
    except (DashboardError, OSError) as error:
        text = _format_error(error, context) + describe_mended(outcome)
        status = error.status if isinstance(error, StageFailedError) else Status(False, "")
        return StepResult(
            stage.name,
            BLOCKED if status.blocked else FAILED,
            text,
            context.stamp,
            round(outcome.elapsed_s, 3),
            outcome.tail,
            started_ns=started_ns,
            in_log=status.in_log,
        )
    finally:
        if "output" in stage.arguments:
            _remove_status(left_in)
    text, elapsed_s = message + describe_mended(outcome), round(outcome.elapsed_s, 3)
    return StepResult(
        stage.name, OK, text, context.stamp, elapsed_s, failed_points=failed_points, started_ns=started_ns
    )


def _compare(context: Context, job: Job, stage: Stage, folder: Path) -> str:
    """Compare what was run in turn with the reference, where `stage` has analyzed it; what is to be said of it."""
    if stage.leaves != beside.DATA_FILE or not beside.takes_turns(context, job):
        return ""
    declared = publish.add_declared(job, common.read_json(folder / beside.DATA_FILE))
    timeout_s = context.find_deadline(job, stage).seconds
    return beside.compare(context, job, lambda half: _perform_half(context, job, stage, half, timeout_s), declared)


def _perform_half(context: Context, job: Job, stage: Stage, half: Half, timeout_s: float) -> None:
    """Perform a stage of one of the runs that take turns; DashboardError where it fails."""
    workspace = context.workspace(job)
    if half.of_reference and job.tvm:
        reference = read_reference_artifact(workspace.reference)
        context = replace(context, artifacts={**context.artifacts, job.tvm: reference})
    paths = {"config": workspace.config, "raw": half.of("run"), "destination": half.of(stage.name)}
    trees.remove(paths["destination"])
    paths["destination"].mkdir(parents=True)
    outcome = process.run(
        [str(workspace.code / stage.script), *(str(paths[name]) for name in stage.arguments)],
        cwd=workspace.code,
        env=_environment(context, job, workspace),
        timeout_s=timeout_s,
        log=half.log(stage.name),
        sandbox=context.make_sandbox(job, paths["destination"], paths["raw"]),
    )
    judge(outcome, paths["destination"], stage, timeout_s)


def _remove_status(folder: Path) -> None:
    """Remove the status that an earlier stage left there, lest this one be judged by it."""
    if not trees.remove(folder / stages.STATUS_FILE):
        raise DashboardError("could not be removed.", place=folder / stages.STATUS_FILE, remedy="Delete it by hand.")


def _environment(context: Context, job: Job, workspace: Workspace) -> dict[str, str]:
    config = context.plan.config
    cache = config.tmp_data / "cache" / "matplotlib"
    cache.mkdir(parents=True, exist_ok=True)
    environment = stage_environment(
        job,
        home_root=context.home.root,
        stamp=context.stamp,
        seed=context.plan.seed,
        env_name=config.env_name,
        scratch=workspace.scratch,
        cache=cache,
        artifact=context.artifact(job),
        added=config.env,
    )
    environment["TVMDASH_ENGINES"] = str(config.setup / ".engines")
    environment["TVMDASH_TUNING"] = str(config.setup / ".tuning")
    environment["TVMDASH_CODE"] = str(config.setup / ".code")
    environment[devices.VARIABLE] = devices.format_devices(config.devices)
    if context.find_guest(job):
        environment = make_guests_environment(environment, workspace.scratch)
    return {**environment, MARK: f"{context.mark}/{next(context.numbers)}"}


def _name_reference(context: Context, job: Job, stage: Stage) -> dict[str, str]:
    """Name the file of the reference to a stage that measures both TVMs by itself."""
    path = context.workspace(job).reference
    is_told = stage.alone and path.is_file() and not beside.takes_turns(context, job)
    return {REFERENCE: str(path)} if is_told else {}


class StageFailedError(DashboardError):
    """A failure that a stage reported itself, in its status."""

    def __init__(self, status: Status) -> None:
        what = "that it is blocked, but not by what" if status.blocked else "a failure without a reason"
        super().__init__(status.message or f"The stage reported {what}.")
        self.status = status


def judge(outcome: ProcessOutcome, folder: Path, stage: Stage, timeout_s: float, *, usual: str = "") -> str:
    """Return the message of a stage that went well; DashboardError says why it did not.

    usual: what it usually takes, as a sentence.
    """
    if outcome.timed_out:
        raise DashboardError(
            f"{stage.script} timed out after {timeout_s:g} s and was stopped. {usual}{' ' * bool(usual)}Raise"
            f" timeouts.{stage.name} in its config.json if it needs longer."
        )
    if outcome.signal is not None:
        raise DashboardError(
            f"{stage.script} was killed by {_format_signal(outcome.signal)} after {outcome.elapsed_s:.1f} s."
        )
    status = _status(outcome, folder, stage)
    if not status.success:
        raise StageFailedError(status)
    if outcome.exit_code:
        raise DashboardError(
            f"{stage.script} reported success but exited with status {outcome.exit_code}; its results were discarded."
        )
    if stage.leaves and not (folder / stage.leaves).is_file():
        raise DashboardError(f"{stage.script} reported success but did not write {stage.leaves}.")
    return status.message


def describe_mended(outcome: ProcessOutcome) -> str:
    """Describe for the stage's message what was put right after it; empty where nothing was."""
    text = ""
    if outcome.left_behind:
        text += f" ({outcome.left_behind} background processes left running were killed)"
    if outcome.left_out_bytes:
        text += f" ({format_bytes(outcome.left_out_bytes)} of its output omitted from the log)"
    return text


def _status(outcome: ProcessOutcome, folder: Path, stage: Stage) -> Status:
    try:
        return stages.read_status(folder)
    except DashboardError as error:
        raise DashboardError(f"{stage.script} exited with status {outcome.exit_code}. {error}") from error


def _format_signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"{name} (out of memory?)" if name == "SIGKILL" else name


def _format_error(error: DashboardError | OSError, context: Context) -> str:
    text = str(error)
    if isinstance(error, OSError):
        text = f"{error.filename or 'a file'}: {error.strerror}."
    for folder in (context.home.root, context.plan.config.tmp_data):
        if folder.exists() and _count_free_bytes(folder) < _FULL_BYTES:
            return f"{text} The disk with {folder} is full; free some space."
    return text


def _count_free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
