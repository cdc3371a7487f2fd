"""A worse TVM is seen in the phase that it is worse in: unfused kernels in both, slow attention in deep decoding."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from dashboard.artifacts.artifact import Artifact
from tests.experiments.trying import Tried, modules
from tvmdash import records
from tvmdash.experiment.paired.pairs import is_of_reference
from tvmdash.measure.capture import read_trials

OWN = modules("llm")
DEPTH, PROMPT = 512, 24
KERNEL = """                        for d in T.serial(D):
                            S_val[0] += Q_local[d] * K_local[d]
"""
SLOWER_KERNEL = """                        for again in T.serial(8):
                            for d in T.serial(D):
                                S_val[0] += Q_local[d] * K_local[d] * T.float32(0.125)
"""
PLANTED = {
    "no FuseOps": ("pipeline.py", "                transform.FuseOps(),\n", ""),
    "slower attention": ("frontend/nn/llm/_decode_kernels.py", KERNEL, SLOWER_KERNEL),
}


def plant(artifact: Artifact, folder: Path, file: str, old: str, new: str) -> list[str]:
    """The artifact's Python folders, the first one with another line in a file of tvm.relax."""
    site = next(Path(path) for path in artifact.pythonpath if (Path(path) / "tvm").is_dir())
    shutil.copytree(site, folder, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
    changed = folder / "tvm" / "relax" / file
    text = changed.read_text()
    assert old in text
    changed.unlink()
    changed.write_text(text.replace(old, new, 1))
    return [str(folder), *(str(path) for path in artifact.pythonpath if Path(path) != site)]


def measure(tmp_path: Path, artifact: Artifact, pythonpath: list[str]) -> Tried:
    """A run beside the artifact as it is."""
    config = {
        "variants": ["recipe"],
        "prompts": [PROMPT],
        "depths": [DEPTH],
        "batches": [1],
        "pairs": 5,
        "max_pairs": 5,
        "max_seconds": 0.3,
    }
    tried = Tried(tmp_path, "llm", config)
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
    tried = measure(tmp_path, tvm_artifact, plant(tvm_artifact, tmp_path / "site", *PLANTED["no FuseOps"]))
    planted, before = (find_kernels(tried, of_reference=of_reference) for of_reference in (False, True))
    assert planted.keys() == before.keys() == {"prefill", "decode"}
    assert all(planted[phase] > before[phase] for phase in before)


@pytest.mark.slow
def test_a_slower_attention_is_seen_in_deep_decoding_alone(tmp_path: Path, tvm_artifact: Artifact) -> None:
    tried = measure(tmp_path, tvm_artifact, plant(tvm_artifact, tmp_path / "site", *PLANTED["slower attention"]))
    (data,) = (tried.root / "data").iterdir()
    found = {
        record.workload_args["phase"]: record.additional_info["paired"]["ratios"]["run_time"]
        for record in records.read_data(data, "llm").records
    }
    assert found["decode"]["low"] > 1.2
    assert found["prefill"]["low"] < 1.05
    assert find_kernels(tried, of_reference=False) == find_kernels(tried, of_reference=True)
