"""`python3 -m dashboard` in a checkout, with any Python: continues in the environment made by run_dashboard.sh."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def _enter_environment() -> None:
    """Start again, where the pinned packages are missing, with the newest complete environment that has them."""
    if importlib.util.find_spec("jsonschema_rs"):
        return
    named = os.environ.get("TVMDASH_VENV_DIR")
    roots = (
        [Path(named)] if named else [REPOSITORY / ".venv", REPOSITORY.parent / "venv"]
    )  # the second: dashboard_job.sh
    markers = [path for root in roots for path in root.glob("*/.complete")]
    complete = sorted(markers, key=lambda path: path.stat().st_mtime)
    if not complete:
        sys.exit(
            f"{roots[0]}: the virtual environment does not exist yet. Run ./run_dashboard.sh HOME once to create it."
        )
    python = complete[-1].parent / "bin" / "python"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "shared" / "python")])
    os.execv(python, [str(python), "-m", "dashboard", *sys.argv[1:]])  # noqa: S606 - this process becomes that one


sys.path.insert(0, str(REPOSITORY / "shared" / "python"))
_enter_environment()

from dashboard.cli.main import main  # noqa: E402 - the library's folder has to be on the path first

sys.exit(main())
