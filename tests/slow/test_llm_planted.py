"""A worse TVM is told in the phase that it is worse in: unfused kernels in both, slow attention in deep decoding."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.experiments.trying import Tried, modules
from tests.slow.nightly_page import Edit, call, make_lab, pack, replace
from tvmdash import common, records
from tvmdash.experiment.paired.pairs import is_of_reference
from tvmdash.measure.capture import read_trials

OWN = modules("llm")
DEPTH, PROMPT = 512, 24
CONFIG = {
    "variants": ["recipe"],
    "prompts": [PROMPT],
    "depths": [DEPTH],
    "batches": [1],
    "pairs": 5,
    "max_seconds": 0.3,
}
KERNEL = """                        for d in T.serial(D):
                            S_val[0] += Q_local[d] * K_local[d]
"""
SLOWER_KERNEL = """                        for again in T.serial(8):
                            for d in T.serial(D):
                                S_val[0] += Q_local[d] * K_local[d] * T.float32(0.125)
"""
PLANTED: Mapping[str, Mapping[str, Edit]] = {
    "no FuseOps": {"tvm/relax/pipeline.py": replace("                transform.FuseOps(),\n", "")},
    "slower attention": {"tvm/relax/frontend/nn/llm/_decode_kernels.py": replace(KERNEL, SLOWER_KERNEL)},
}


def plant(artifact: Artifact, folder: Path, edits: Mapping[str, Edit]) -> list[str]:
    """The artifact's Python folders, the first one with the files edited."""
    site = next(Path(path) for path in artifact.pythonpath if (Path(path) / "tvm").is_dir())
    shutil.copytree(site, folder, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
    for place, edit in edits.items():
        text = (folder / place).read_text()
        (folder / place).unlink()
        (folder / place).write_text(edit(text))
    return [str(folder), *(str(path) for path in artifact.pythonpath if Path(path) != site)]


def measure(tmp_path: Path, artifact: Artifact, pythonpath: list[str]) -> Tried:
    """A run beside the artifact as it is."""
    tried = Tried(tmp_path, "llm", {**CONFIG, "max_pairs": 5})
    inputs = tried.code / "setup" / "inputs"
    inputs.mkdir(parents=True)
    made = OWN.answers.make(OWN.network.NETWORKS["tiny"], "float32", [PROMPT], [DEPTH], 1, 0)
    np.savez(OWN.answers.file_of(inputs, "tiny", "float32"), **made)
    reference = tmp_path / "reference.json"
    named = {"schema_version": 1, "key": "as it is", "version": "0", "commit": None, "library_path": []}
    reference.write_text(json.dumps({**named, "pythonpath": [str(path) for path in artifact.pythonpath]}))
    path = os.pathsep.join([*pythonpath, *filter(None, sys.path)])
    data = tried.analyzed(tried.stage("run", "raw", TVMDASH_REFERENCE=str(reference), PYTHONPATH=path))
    assert not data.failures
    return tried


def find_kernels(tried: Tried, *, of_reference: bool) -> dict[str, int]:
    """How many kernels a call of each phase launches."""
    return {
        trial.point["values"]["phase"]: trial.facts["kernels"]
        for trial in read_trials(tried.root / "raw")
        if is_of_reference(trial) == of_reference
    }


@pytest.mark.slow
def test_operators_that_are_not_fused_are_counted_in_both_phases(tmp_path: Path, tvm_artifact: Artifact) -> None:
    tried = measure(tmp_path, tvm_artifact, plant(tvm_artifact, tmp_path / "site", PLANTED["no FuseOps"]))
    planted, before = (find_kernels(tried, of_reference=of_reference) for of_reference in (False, True))
    assert planted.keys() == before.keys() == {"prefill", "decode"}
    assert all(planted[phase] > before[phase] for phase in before)


@pytest.mark.slow
def test_a_slower_attention_is_seen_in_deep_decoding_alone(tmp_path: Path, tvm_artifact: Artifact) -> None:
    tried = measure(tmp_path, tvm_artifact, plant(tvm_artifact, tmp_path / "site", PLANTED["slower attention"]))
    (data,) = (tried.root / "data").iterdir()
    found = {
        record.workload_args["phase"]: record.additional_info["paired"]["ratios"]["run_time"]
        for record in records.read_data(data, "llm").records
    }
    assert found["decode"]["low"] > 1.2
    assert found["prefill"]["low"] < 1.05
    assert find_kernels(tried, of_reference=False) == find_kernels(tried, of_reference=True)


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_the_first_night_tells_the_phase_that_a_worse_tvm_is_worse_in(
    tmp_path: Path, tvm_artifact: Artifact, planted: str
) -> None:
    page = tmp_path / "page"
    home = make_lab(tmp_path / "lab", page)
    homes.write(home.home.config("experiment", "llm") / "config.json", {"active": True, "size": "smoke", **CONFIG})
    homes.write(home.home.config("subsystem", "stat_alerts") / "config.json", {"active": True, "confirm_seconds": 90})
    told = []
    for number, commit, edits in ((201, "aaaa11111", {}), (202, "bbbb22222", {}), (203, "cccc33333", PLANTED[planted])):
        pack(tvm_artifact, page, number, commit=commit, edits=edits)
        call(home, "run")
        told.append(list_moved(home))
    assert told[:2] == [{}, {}], "the second night's TVM is the first one's under another commit"
    if planted == "no FuseOps":
        assert told[2]["kernels", "prefill"]["effect"] > 0
        assert told[2]["kernels", "decode"]["effect"] > 0
        assert all(moved["worse"] for (metric, _), moved in told[2].items() if metric == "run_time")
    else:
        assert told[2]["run_time", "decode"]["low"] > 0.2
        assert ("run_time", "prefill") not in told[2]
        assert "kernels" not in {metric for metric, _ in told[2]}


def list_moved(home: HomeForTests) -> dict[tuple[str, str], dict[str, Any]]:
    """What the home's incidents say has moved, by metric and phase."""
    incidents = common.read_json(home.home.output("stat_alerts") / "page.json")["incidents"]
    assert all(incident["blame"] == "compiler" for incident in incidents)
    return {
        (moved["metric"], next((phase for phase in ("prefill", "decode") if phase in moved["name"]), "")): moved
        for incident in incidents
        for moved in incident["moved"]
    }
