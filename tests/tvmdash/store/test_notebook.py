"""The notebook of docs/how-to runs as it is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tvmdash.store.small_home import make_small_home

NOTEBOOK = Path(__file__).parents[3] / "docs" / "how-to" / "history.ipynb"


def test_every_cell_of_the_notebook_gives_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small_home(tmp_path / "home")
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
    assert frames == 5
    assert names["worst"]["ratio"].tolist() == [1.06, 1.0]
    assert names["since"]["since"].tolist() == ["20261124T031500Z"]
    assert set(names["tables"]["name"]) >= {"series", "measurements", "ratios", "levels", "verdicts", "incidents"}
