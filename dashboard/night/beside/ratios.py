"""What pairs of runs say of each declared time and rate of a foreign experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboard.night.context import Workspace
from tvmdash import common, records
from tvmdash.measure.turns import combine_pairs
from tvmdash.records.metrics import COMPARABLE, Declarations

Numbers = Mapping[str, float]


def compare_pairs(pairs: Sequence[tuple[Numbers, Numbers]], declared: Mapping[str, Any]) -> dict[str, Any]:
    """By path, what `pairs` of tonight's numbers and the reference's say of it; only of times and rates above 0."""
    declarations = Declarations(declared)
    paths = dict.fromkeys(path for tonight, _ in pairs for path in tonight)
    found = {}
    for path in paths:
        both = [(new.get(path, 0.0), old.get(path, 0.0)) for new, old in pairs]
        logs = [math.log(new / old) for new, old in both if new > 0 and old > 0]
        if logs and declarations.of(path).kind in COMPARABLE:
            ratio = combine_pairs(logs)
            found[path] = {
                "clock": "wall",
                "log_ratios": logs,
                "ratio": ratio.ratio,
                "low": ratio.low,
                "high": ratio.high,
            }
    return found


def read_numbers(path: Path) -> Numbers:
    """The numbers that an analyze stage left in the file; none where it left records."""
    value = common.read_json(path)
    records.check_data(value)
    return {} if "records" in value else dict(records.numeric_leaves(value))


def write_ratios(workspace: Workspace, ratios: Mapping[str, Any]) -> None:
    """Leave them for the data file."""
    common.write_json(workspace.ratios, {"ratios": ratios})


def read_ratios(workspace: Workspace) -> dict[str, Any]:
    """What `write_ratios` left; empty where the experiment was measured alone."""
    is_beside = workspace.reference.is_file() and workspace.ratios.is_file()
    return dict(common.read_json(workspace.ratios)) if is_beside else {}
