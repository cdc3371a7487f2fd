"""The examples of docs/how-to/exchange.md do what the page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tvmdash.measure.capture import Capture, OperatorSpan, Sample
from tvmdash.records.exchange import find_format, records_in, write_records

REPOSITORY = Path(__file__).resolve().parents[4]
PAGE = (REPOSITORY / "docs" / "how-to" / "exchange.md").read_text(encoding="utf-8")
STAMP = "20261121T031500Z"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a reader of the page may stand: a home, a folder of raw databases, a file of pyperf."""
    data = tmp_path / "home" / "results" / "experiments" / "data" / "relax_opt"
    data.mkdir(parents=True)
    (tmp_path / "home" / "config").mkdir()
    shutil.copy(REPOSITORY / "tests" / "golden" / "data_v1.json", data / f"data_{STAMP}.json")
    shutil.copy(REPOSITORY / "tests" / "golden" / "import" / "pyperf.json", tmp_path)
    (tmp_path / "raw").mkdir()
    with Capture(tmp_path / "raw", {}) as capture:
        trial = capture.begin({"workload": "network.mlp", "values": {}})
        capture.end(trial, samples=[Sample(10, 1)], operators=[OperatorSpan(0, "dense", 0, 5)], run_starts_ns=[10**18])
    return tmp_path


def examples(page: str) -> list[list[tuple[str, str]]]:
    """The blocks of the page: each command with what it prints."""
    blocks = re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)
    found = []
    for block in blocks:
        text = re.sub(r"^    ", "", block, flags=re.MULTILINE)
        commands = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
        found.append([(command, printed) for command, _, printed in (one.partition("\n") for one in commands)])
    return [block for block in found if block]


@pytest.mark.parametrize("block", examples(PAGE), ids=lambda block: block[0][0][:40])
def test_the_commands_of_the_page_print_what_it_says(block: list[tuple[str, str]], place: Path) -> None:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "shared" / "python")])
    for command, printed in block:
        words = [sys.executable, *shlex.split(command)[1:]]
        done = subprocess.run(
            words, cwd=place, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        pattern = ".*".join(map(re.escape, printed.split("...")))
        assert re.fullmatch(pattern, done.stdout, re.DOTALL), done.stdout


BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[1])
def test_the_python_of_the_page_runs(block: str, place: Path) -> None:
    imported = re.match(r"import (\w+)$", block, re.MULTILINE)
    if imported:
        pytest.importorskip(imported[1], reason=f"{imported[1]} is not installed")
    rows = list(records_in(place / "home"))
    for name in ("records.parquet", "records.jsonl"):
        write_records(place / name, rows, find_format(place / name))
    exec(compile(block, "docs/how-to/exchange.md", "exec"), {"folder": place})


def test_the_page_names_every_format_and_no_other() -> None:
    from dashboard.importing.ingest import FORMATS as IMPORTED
    from tvmdash.records.exchange import FORMATS
    from tvmtraces.export.converters import CONVERTERS

    assert not [name for name in (*CONVERTERS, *FORMATS) if f"`{name}`" not in PAGE]
    assert len(IMPORTED) == len(re.findall(r"^\| (?:relay-bench|records|asv|pyperf|Google)", PAGE, re.MULTILINE))
    assert json.loads((REPOSITORY / "tests" / "golden" / "data_v1.json").read_text())["schema_version"] == 1
