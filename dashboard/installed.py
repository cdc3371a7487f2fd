"""The `dashboard` command of an installed package; it runs the copy of this repository inside the package.

pyproject.toml installs this file as `tvm_dashboard/__init__.py`, and beside it what a night needs, laid out as here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Become `python3 -m dashboard`."""
    copy = Path(__file__).resolve().parent
    os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "shared" / "python")])
    # -P: a folder named dashboard where the user happens to be is not ours
    os.execv(sys.executable, [sys.executable, "-P", "-m", "dashboard", *sys.argv[1:]])  # noqa: S606
