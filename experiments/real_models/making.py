"""What setup leaves for a model: its file as shipped, the folded one, and the calls with ONNX Runtime's answers."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from models import Model

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

FORMS = SHIPPED, FOLDED = "shipped", "folded"
CALLS_FILE, FACTS_FILE = "calls.npz", "facts.json"
PROVIDERS = ["CPUExecutionProvider"]
PACKAGE: Mapping[str, str] = {
    "silero_vad": "silero-vad",
    "magika": "magika",
    "rapidocr_onnxruntime": "rapidocr-onnxruntime",
}


def make(name: str, model: Model, folder: Path, seed: int) -> None:
    """Everything of one model in `folder`."""
    folder.mkdir(exist_ok=True)
    shipped = installed(model.file)
    shutil.copyfile(shipped, folder / f"{SHIPPED}.onnx")
    fold(model, folder)
    calls = answered(model, folder / f"{SHIPPED}.onnx", seed)
    arrays: dict[str, Any] = {
        f"{index}/{key}": array for index, call in enumerate(calls) for key, array in call.items()
    }
    np.savez(folder / CALLS_FILE, **arrays)
    labels = _labels(model, shipped)
    answers = [call["out0"] for call in calls]
    package = PACKAGE[model.file.partition("/")[0]]
    facts = {
        "model": name,
        "package": f"{package} {importlib.metadata.version(package)}",
        "file": model.file,
        "licence": model.licence,
        "calls": len(calls),
        "reads": model.read(answers, labels),
        "labels": labels,
    }
    common.write_json(folder / FACTS_FILE, facts)


def installed(file: str) -> Path:
    """Where the file lies among the installed packages; their code is not imported."""
    for folder in sys.path:
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    raise DashboardError(f"{file} is in none of the packages that setup installed.")


def fold(model: Model, folder: Path) -> None:
    """Write the folded model: input shapes fixed, then what is constant computed by ONNX Runtime."""
    import onnx
    import onnxruntime

    loaded = onnx.load(folder / f"{SHIPPED}.onnx")
    for value in loaded.graph.input:
        if value.name in model.shapes:
            sizes = value.type.tensor_type.shape
            del sizes.dim[:]
            for size in model.shapes[value.name]:
                sizes.dim.add().dim_value = size
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / f"{FOLDED}.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(loaded.SerializeToString(), options, providers=PROVIDERS)


def answered(model: Model, file: Path, seed: int) -> list[dict[str, Array]]:
    """Each call's feeds by name, what is carried among them, and its outputs as out0, out1 and so on."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=PROVIDERS)
    carried = {name: np.zeros(model.shapes[name], np.float32) for name in model.carried}
    calls = []
    for given in model.inputs(seed):
        feeds = {**given, **carried}
        outputs = session.run(None, feeds)
        calls.append({**feeds, **{f"out{index}": output for index, output in enumerate(outputs)}})
        carried = {name: outputs[index] for name, index in model.carried.items()}
    return calls


def _labels(model: Model, shipped: Path) -> list[str]:
    labels: list[str]
    if model.labels_in.endswith(".json"):
        labels = json.loads((shipped.parent / model.labels_in).read_text("utf-8"))["target_labels_space"]
        return labels
    if not model.labels_in:
        return []
    import onnx

    properties = {item.key: item.value for item in onnx.load(shipped).metadata_props}
    labels = properties[model.labels_in].splitlines()
    return labels
