"""Importing it does one small night in this process, so that what is forked later has done once what all nights do.

Most of that is making functions of dataclasses, compiling schemas, and asking git what the code is of.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import logging
import os
import signal
import tempfile
from pathlib import Path

from dashboard.cli.main import main
from dashboard.night import repository
from dashboard.night.lock import NODE, node
from tests.dashboard.remeasure_homes import make_lab, put_artifact

_PR_SET_CHILD_SUBREAPER = 36


def _rehearse(root: Path) -> None:
    lab = make_lab(root / "lab")
    put_artifact(lab.home.root / "shelf", "0.27.0")
    lab.home.subsystem()
    os.environ[NODE] = f"{node()}-rehearsal"  # the test that needs this process may have a night of its own that runs
    for verb in ("run", "check"):
        words = lab.home.command(verb, "--no-rebuild-tvm")[3:]
        assert main(words) == 0, words
    del os.environ[NODE]


repository.describe = functools.cache(repository.describe)
with (
    tempfile.TemporaryDirectory() as _folder,
    contextlib.redirect_stdout(io.StringIO()),
    contextlib.redirect_stderr(io.StringIO()),
):
    _rehearse(Path(_folder))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
logging.root.handlers.clear()
