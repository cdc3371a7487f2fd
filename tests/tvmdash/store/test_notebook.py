"""The notebook of docs/how-to runs as it is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tvmdash.store.small_home import NIGHTS, make_small_home
from tests.tvmtraces.traces_for_tests import write_raw

NOTEBOOK = Path(__file__).parents[3] / "docs" / "how-to" / "history.ipynb"


def test_every_cell_of_the_notebook_gives_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small_home(tmp_path / "home")
    monkeypatch.setenv("TVMDASH_JOB", "nets")
    monkeypatch.setenv("TVMDASH_NIGHT", NIGHTS[-1])
    write_raw(tmp_path / "home" / "tmp" / "raw" / "nets" / f"raw_{NIGHTS[-1]}", sample_ns=(2_000_000, 4_000_000))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    frames = 0
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            *body, last = "".join(cell["source"]).split("\n")
            exec("\n".join(body), names)
            frame = eval(last, names)
            assert len(frame), last
            frames += 1
    assert frames == 7
    assert names["worst"]["ratio"].tolist() == [1.06, 1.0]
    assert names["passes"].to_dict("list") == {"name": ["FoldConstant", "FuseOps"], "runs": [1, 1], "ms": [5e-4, 3e-4]}
    assert names["samples"]["ms"].tolist() == [1.0, 2.0]
    assert names["samples"]["night"].tolist() == [NIGHTS[-1]] * 2
    assert names["since"]["since"].tolist() == ["20261124T031500Z"]
    assert set(names["tables"]["name"]) >= {"series", "measurements", "ratios", "levels", "verdicts", "incidents"}
