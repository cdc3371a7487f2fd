"""Shared by all commands: exit codes, common arguments, signals, and errors that end a command."""

from __future__ import annotations

import argparse
import contextlib
import errno
import getpass
import os
import re
import signal
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from dashboard.plan.home_config import code_folders
from dashboard.plan.job import REPOSITORY, CodeFolders
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, Home, Night
from tvmdash.errors import DashboardError

OK_CODE, SOME_FAILED, USAGE, BUG, CANNOT_TELL, TVM_WORSE, HELD, REFUSED, STOPPED = 0, 1, 2, 3, 4, 5, 75, 77, 130

Verbs = argparse._SubParsersAction  # noqa: SLF001 - argparse gives its type no public name
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)?", re.ASCII)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_home_verb(
    verbs: Verbs[argparse.ArgumentParser],
    name: str,
    verb: Callable[[argparse.Namespace], int],
    help_text: str,
    *,
    code: bool = True,
) -> argparse.ArgumentParser:
    """Add a command that takes a home; `code` adds the options for script folders and the seed."""
    parser = verbs.add_parser(name, help=help_text)
    parser.add_argument("home", type=make_absolute, metavar="HOME")
    if code:
        add_code_options(parser)
    parser.set_defaults(verb=verb)
    return parser


def add_code_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--experiments-dir", type=make_absolute, metavar="DIR", help="folder that contains the experiments"
    )
    parser.add_argument(
        "--subsystem-dir", type=make_absolute, metavar="DIR", help="folder that contains the subsystems"
    )
    parser.add_argument("--seed", type=int, help="seed for the random order of the experiments")


def find_code(arguments: argparse.Namespace) -> CodeFolders:
    return CodeFolders(arguments.experiments_dir, arguments.subsystem_dir, code_folders(Home(arguments.home)))


def find_home(arguments: argparse.Namespace) -> Home:
    """Return the home on the command line; DashboardError if the folder does not exist or is not a home."""
    home = Home(arguments.home)
    if not home.root.is_dir():
        raise DashboardError(f"{home.root}: no such folder. Give the path of a dashboard home.")
    if not home.config_file.is_file() and not home.nights.is_dir() and home.page() is None:
        raise DashboardError(
            f"{home.root}: not a dashboard home: {home.config_file.relative_to(home.root)} is missing. Give the path "
            f"of a home, or create one: cp -r {REPOSITORY / 'sample-dashboard-home'} NEW_HOME"
        )
    return home


def choose_exit_code(night: Night) -> int:
    if night.state == INTERRUPTED:
        return STOPPED
    return OK_CODE if night.state == COMPLETE and night.well else SOME_FAILED


def make_absolute(text: str) -> Path:
    """Make a typed path absolute; reject a path that is not UTF-8, because JSON files could not contain it."""
    path = Path(text).expanduser().absolute().resolve()
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", errors="backslashreplace")
        raise argparse.ArgumentTypeError(
            f"{shown}: the path is not valid UTF-8. Use a folder with a UTF-8 path."
        ) from None
    return path


def add_passed_on_verb(
    verbs: Verbs[argparse.ArgumentParser], name: str, verb: Callable[[Sequence[str]], int], help_text: str
) -> None:
    """Add a command that parses all its arguments and options itself."""
    # With a prefix that nobody types, argparse takes no option of the command for its own.
    parser = verbs.add_parser(name, help=help_text, add_help=False, prefix_chars="\0")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    parser.set_defaults(verb=lambda arguments: verb(arguments.rest))


def parse_duration_s(text: str) -> float:
    """Parse a duration like `90`, `90s`, `10m`, `1.5h` or `2d` to seconds."""
    match = _DURATION.fullmatch(text)
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"invalid duration {text!r} (use e.g. 90s, 10m, 3h)")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def count(text: str) -> int:
    """Parse an option's whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0.")
    return int(text)


def parse_percent(text: str) -> float:
    """Parse a percentage like `1%`, `0.5 %` or `1` to a fraction."""
    number = text.removesuffix("%").strip()
    try:
        percent = float(number)
    except ValueError:
        percent = 0.0
    if not 0 < percent < 1000:
        raise argparse.ArgumentTypeError(f"invalid percentage {text!r} (use a value above 0, e.g. 1% or 0.5%)")
    return percent / 100


def interrupt(number: int, frame: object) -> NoReturn:
    """Handle SIGTERM like ^C."""
    signal.signal(number, signal.SIG_IGN)  # systemd and dashboard_job.sh may both send it; the first one is obeyed
    raise KeyboardInterrupt


_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EISDIR, errno.ENOTDIR}
"""Errors of the files, not of the program."""


class KeptBugError(Exception):
    """A bug that is kept already, in `log`."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


def describe_disk_error(error: Exception) -> str:
    """Describe what is wrong with a file; empty for any other error, which is a bug."""
    if isinstance(error, PermissionError):
        return f"{error.filename}: {error.strerror} for {getpass.getuser()}. Change its owner or mode."
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        return f"{error.filename or 'A file could not be read or written'}: {error.strerror}."
    return ""


def keep_bug(error: Exception) -> str:
    """Print the traceback of what is being handled and keep it in a file; the file's path, or that there is none."""
    if isinstance(error, KeptBugError):
        return error.log
    traceback.print_exc()
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile(
            "w", prefix="dashboard-bug-", suffix=".log", delete=False, encoding="utf-8"
        ) as file,
    ):
        file.write(traceback.format_exc())
        return file.name
    return "the traceback above (it could not be saved to a file)"
