"""Kept raw data are of the experiments as they are; else each run of the tests measures them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.trying import KEPT, code_state, state_of


@pytest.mark.parametrize("kept", sorted(KEPT.iterdir()), ids=lambda path: path.name.partition(".")[0])
def test_kept_raw_data_are_of_the_experiments_code(kept: Path) -> None:
    code = state_of(kept).partition("-")[0]
    remedy = f"{kept.name} is of other code: run TVMDASH_KEEP_RAW=1 tests/run.sh tests/experiments and commit it"
    assert code == code_state(kept.name.partition(".")[0]), remedy
