"""Puts the TVM that the tests use into a folder: `python tests/artifact_for_tests.py FOLDER`.

It is the dashboard's own wheel provider; a version is pinned, so that a second run needs no network.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dashboard.artifacts import artifact_store, provide
from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.spec import provider_of
from tvmdash.errors import DashboardError

SPEC = ArtifactSpec(remote="pypi", branch=os.environ.get("TVMDASH_TEST_TVM", "0.27.0.post1"))
TIMEOUT_S = 900.0
REPO = Path(__file__).resolve().parent.parent


def shelf_folder() -> Path:
    """The folder of artifacts that `tests/run.sh` filled."""
    cache = os.environ.get("TVMDASH_TEST_CACHE") or REPO / ".test-cache"
    return Path(os.environ.get("TVMDASH_TEST_ARTIFACTS") or Path(cache) / "artifacts").absolute()


def find() -> Artifact | None:
    """The tests' TVM where it is at hand."""
    provider = provide.PROVIDERS[provider_of(SPEC)]
    found = [artifact for artifact in artifact_store.artifacts_in(shelf_folder()) if provider.satisfies(artifact, SPEC)]
    return max(found, key=provider.rank, default=None)


def main() -> int:
    folder = Path(sys.argv[1])
    try:
        with provide.provide(SPEC, folder, rebuild=True, log_folder=folder.parent / "logs", timeout_s=TIMEOUT_S) as got:
            print(f"TVM {got.artifact.version} in {got.artifact.path}")
    except DashboardError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
