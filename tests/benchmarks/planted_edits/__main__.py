"""`python3 tests/benchmarks/planted_edits`: edits planted in TVM's passes."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "shared" / "python")]

from tests.benchmarks.planted_edits import running  # noqa: E402 - the repository is found from here on

if __name__ == "__main__":
    sys.exit(running.main())
