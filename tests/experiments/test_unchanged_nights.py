"""Two nights on one real TVM: what it compiles to, and what it runs that with, is byte for byte the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from tests.experiments.trying import Tried

CONFIG = {"variants": ["zero"], "repeat": 2, "pairs": 1, "max_pairs": 1}


def measure_night(root: Path, artifact: Artifact, measured: dict[str, int]) -> dict[str, Any]:
    """What the record of the one point says, measured beside the same TVM."""
    root.mkdir()
    folders = {name: [str(folder) for folder in getattr(artifact, name)] for name in ("pythonpath", "library_path")}
    reference = {"schema_version": 1, "key": artifact.key, "version": artifact.version, "commit": None, **folders}
    file = root / "reference.json"
    file.write_text(json.dumps({**reference, "measured": measured}))
    (record,) = Tried(root, "relax_opt", CONFIG).measured(TVMDASH_REFERENCE=str(file), TVMDASH_JOB="relax_opt").records
    return dict(record.additional_info)


def test_a_night_on_the_same_tvm_runs_what_the_night_before_ran(tmp_path: Path, tvm_artifact: Artifact) -> None:
    first = measure_night(tmp_path / "first", tvm_artifact, {})
    content = first["content"]
    assert (content["pairs"], first["ended_by"]) == (1, "max_processes")
    second = measure_night(tmp_path / "second", tvm_artifact, {content["hash"]: content["pairs"]})
    assert second["content"] == {"hash": content["hash"], "pairs": 2}
    assert second["ended_by"] == "unchanged"
