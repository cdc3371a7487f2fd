"""Why an incident came, in one line, from the receipts of its two nights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tvmdash.incidents.test_incidents import moved
from tests.tvmdash.incidents.test_messages import incident
from tvmdash import common
from tvmdash.common import structured
from tvmdash.incidents.differences import describe_why
from tvmdash.series import naming
from tvmdash.trials.receipt import Receipt, ReceiptRecord, place_of

KNOWN = incident(moved(experiment="exp"))


def leave(site: Path, stamp: str, passes: str, operators: dict[str, float]) -> None:
    """A receipt of the one series, as the website writes it."""
    series = {"run_time": naming.file_name_of(KNOWN.moved[0].series)}
    record = ReceiptRecord(
        series, {}, passes=tuple((name, 1000) for name in passes.split()),
        operator_ms={name: (ms,) * 3 for name, ms in operators.items()},
    )  # fmt: skip
    path = site / f"{place_of('exp', stamp)}.json"
    path.parent.mkdir(parents=True)
    common.write_json(path, structured.to_json(Receipt(stamp, "exp", {}, "", (record,))))


@pytest.mark.parametrize(
    ("passes", "operators", "why"),
    [
        ("Fold FuseOps", {"fused_matmul_add_relu": 1.0, "softmax": 0.5}, ""),
        ("Fold", {"fused_matmul_add_relu": 1.0, "softmax": 0.5}, "FuseOps no longer runs"),
        (
            "Fold Inline", {"matmul": 0.7, "add_relu": 0.5, "softmax": 0.5},
            "FuseOps no longer runs; Inline now runs too; fused_matmul_add_relu became matmul and add_relu",
        ),
        (
            "Fold FuseOps", {"conv2d_3": 1.2, "pad": 0.2, "softmax": 0.5},
            "fused_matmul_add_relu is gone; conv2d_3 and pad are new",
        ),
        (
            "Fold FuseOps", {"fused_matmul_add_relu": 1.0, "softmax": 0.5, "layout": 0.1},
            "layout is new",
        ),
    ],
)  # fmt: skip
def test_passes_and_operators_of_one_side_are_named(
    tmp_path: Path, passes: str, operators: dict[str, float], why: str
) -> None:
    leave(tmp_path, KNOWN.after, "Fold FuseOps", {"fused_matmul_add_relu": 1.0, "softmax": 0.5})
    assert describe_why(tmp_path, KNOWN) == "", "there is no receipt of the first bad night"
    leave(tmp_path, KNOWN.begin, passes, operators)
    assert describe_why(tmp_path, KNOWN) == why
