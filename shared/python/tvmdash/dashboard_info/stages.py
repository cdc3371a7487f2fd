"""The protocol between the night and the scripts: the stages of a job, and the status that each leaves.

`PIPELINES` is the one place that says what an experiment and a subsystem are. The engine, the precheck, the
templates, the documentation and the tests read it.
"""

from __future__ import annotations

import difflib
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact

STATUS_FILE = "status.json"
SETUP_RETRY_FILE = "retry"
"""A setup that leaves this file, with a reason in it, is run again the next night."""
POINTS_FILE = "points.json"
"""While a stage runs, in what it leaves: how many `points` it has, and how many it has `measured`."""
MAX_STATUS_BYTES = 1 << 20
_FIELDS = ("success", "message", "blocked", "in_log")
MAX_MESSAGE_CHARS = 4000


@dataclass(frozen=True)
class Stage:
    """One script of a job.

    `arguments` name what it is called with: `config` (folder of its config.json), `destination` (folder for what it
    leaves), `raw`, `data` (this experiment's data_<stamp>.json files), `analysis`, `output`, `home`.
    `leaves` is a file that must be there for the stage to count. `alone` stages have the machine to themselves.
    `report` is a file with a title and a value for people, which has to be one where it is there.
    """

    name: str
    arguments: tuple[str, ...]
    timeout_s: int
    optional: bool = False
    leaves: str | None = None
    alone: bool = False
    needs_tvm: bool = False
    report: str | None = None

    @property
    def script(self) -> str:
        """The script's file name in the job's folder."""
        return f"{self.name}.sh"


@dataclass(frozen=True)
class Pipeline:
    """A kind of job: where its code, configs and results lie, and its stages in order.

    `measures`: its stages make series of numbers. A job of such a kind may be measured on several TVMs, each time under
    another name (`NAME@TVM`) with one code and config; its numbers depend on these; what it measured is kept raw.
    """

    kind: str
    folder: str
    stages: tuple[Stage, ...]
    measures: bool = False

    def stage(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)


PIPELINES = (
    Pipeline(
        kind="experiment",
        folder="experiments",
        measures=True,
        stages=(
            Stage("setup", ("config", "destination"), timeout_s=3600, optional=True, needs_tvm=True),
            Stage("run", ("config", "destination"), timeout_s=7200, alone=True, needs_tvm=True),
            Stage("analyze", ("config", "raw", "destination"), timeout_s=1800, leaves="data.json"),
            Stage("visualize", ("config", "data", "destination"), timeout_s=1800),
            Stage(
                "summarize",
                ("config", "data", "destination"),
                timeout_s=600,
                leaves="summary.json",
                report="summary.json",
            ),
        ),
    ),
    Pipeline(
        kind="subsystem",
        folder="subsystem",
        stages=(Stage("run", ("config", "output", "home"), timeout_s=1800, report="report.json"),),
    ),
)
EXPERIMENT, SUBSYSTEM = PIPELINES
PRECHECK = "precheck"


def pipeline(kind: str) -> Pipeline:
    return next(row for row in PIPELINES if row.kind == kind)


@dataclass(frozen=True)
class Status:
    """Outcome that a stage reports.

    blocked: it did nothing, because something that it needs is missing. in_log: its output ends with the message too.
    """

    success: bool
    message: str
    blocked: bool = False
    in_log: bool = False


class Blocked(DashboardError):
    """A stage cannot do its work because something that it needs is missing: the message says what, and the remedy."""


def read_status(folder: Path) -> Status:
    """Read the status that a stage left in `folder`; DashboardError where there is no valid one."""
    path = folder / STATUS_FILE
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise DashboardError(f"{STATUS_FILE}: not a regular file.")
    if not path.exists():
        raise DashboardError(f"It wrote no {STATUS_FILE}.")
    value = _named(common.read_json, path)
    if not isinstance(value, dict):
        raise DashboardError(f"{STATUS_FILE}: $: {type(value).__name__} is not an object with success and message.")
    for name in ("success", "message"):
        if name not in value:
            raise DashboardError(f"{STATUS_FILE}: $.{name}: required field is missing. {_format_remedy(name, value)}")
    success, message = value["success"], value["message"]
    if not isinstance(success, bool):
        raise DashboardError(f"{STATUS_FILE}: $.success: {success!r:.80} is not true or false.")
    if not isinstance(message, str):
        raise DashboardError(f"{STATUS_FILE}: $.message: {message!r:.80} is not a string.")
    blocked, in_log = _flag(value, "blocked"), _flag(value, "in_log")
    if blocked and success:
        raise DashboardError(f"{STATUS_FILE}: $.blocked: $.blocked and $.success are both true. Set only one of them.")
    return Status(success, redact(message)[:MAX_MESSAGE_CHARS], blocked, in_log)


def _flag(value: Mapping[str, Any], name: str) -> bool:
    given = value.get(name, False)
    if not isinstance(given, bool):
        raise DashboardError(f"{STATUS_FILE}: $.{name}: {given!r:.80} is not true or false.")
    return given


def _format_remedy(name: str, value: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, [key for key in value if key not in _FIELDS], n=1)
    return f"Did you misspell it as {near[0]!r}?" if near else 'Write {"success": true or false, "message": "..."}.'


def _named(read: Callable[..., common.Json], path: Path) -> common.Json:
    """Call `read` with errors that name the file alone: its folder is a temporary one."""
    try:
        return read(path, max_bytes=MAX_STATUS_BYTES)
    except DashboardError as error:
        raise error.at(path.name) from error


def write_status(
    folder: Path,
    success: bool,  # noqa: FBT001 - the protocol's own two fields
    message: str,
    *,
    blocked: bool = False,
    in_log: bool = False,
) -> None:
    """Write status.json into `folder`."""
    status: dict[str, bool | str] = {"success": success, "message": redact(message)[:MAX_MESSAGE_CHARS]}
    status |= {name: True for name, holds in (("blocked", blocked), ("in_log", in_log)) if holds}
    # not durable: the night that reads it would not survive a power cut either
    common.write_json(folder / STATUS_FILE, status, durable=False)


def run_stage(work: Callable[[], str], destination: Path) -> int:
    """The script half of the protocol: do `work`, leave its message or its failure as the status.

    Returns the exit status for the script: 0, or 1 after a failure or where `work` raised Blocked. What it raises is
    caught here, all of it, because a stage that dies without a status tells nobody why.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    try:
        write_status(destination, True, work())
    except DashboardError as error:
        logging.getLogger("stage").error("%s", error)
        write_status(destination, False, str(error), blocked=isinstance(error, Blocked), in_log=True)
        return 1
    except Exception as error:  # noqa: BLE001 - said above
        traceback.print_exc()
        message = f"{type(error).__name__}: {error} (see the log for the traceback)"
        write_status(destination, False, f"{_place_of(error)}{message}", in_log=True)
        return 1
    return 0


def _place_of(error: Exception) -> str:
    """Return "FILE:LINE: ", the innermost in the stage's own folder, else the innermost of all."""
    here = Path.cwd()
    frames = [(here / frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(path.relative_to(here), line) for path, line in frames if path.is_relative_to(here) and path.is_file()]
    path, line = own[-1] if own else (Path(frames[-1][0].name), frames[-1][1])
    return f"{path}:{line}: "
