"""Text of strangers: what of it reaches a terminal, a message, a page."""

from __future__ import annotations

import ast
import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tvmtraces.traces_for_tests import write_raw
from tvmdash.notify.payloads import Part, build, code, escape, format_bold
from tvmdash.text import (
    clean,
    clean_lines,
    clean_message,
    elide,
    escape_markdown,
    exact_output,
    is_commit,
    plain_output,
)
from tvmtraces import __main__ as traces

REPOSITORY = Path(__file__).resolve().parents[2]
STEERING = ["\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "\r", "\x08", "\x00", "\x7f"]
TURNING = [
    "\u202e",
    "\u202d",
    "\u2066",
    "\u2067",
    "\u2069",
    "\u200e",
    "\u200f",
    "\u061c",
    "\u2028",
    "\ufeff",
    "\U000e0041",
]


@pytest.mark.parametrize("text", [*STEERING, *TURNING])
def test_nothing_that_steers_a_terminal_or_turns_what_stands_around_it_is_left(text: str) -> None:
    harmful = set(text) - set("[2J]0;owned31m")
    shown = [
        clean(f"a{text}b"), clean_lines(f"a{text}b"), elide(f"a{text}b", 80), escape_markdown(f"a{text}b"),
        escape(f"a{text}b"), code(f"a{text}b"), format_bold(f"a{text}b"),
        str(clean_message({f"a{text}b": [f"a{text}b"]})),
        json.dumps(build(f"a{text}b", escape(f"a{text}b"), [Part(escape(f"a{text}b"))]).to_json(), ensure_ascii=False),
    ]  # fmt: skip
    assert not [line for line in shown if harmful & set(line)]


@pytest.mark.parametrize("text", ["日本語", "שלום", "क्\u200dष", "👩\u200d🔬", "naïve ± 3 µs", "a\u00a0b", "e\u0301"])
def test_what_people_write_stays(text: str) -> None:
    assert clean(text) == text


def test_lines_and_tabs_stay_where_a_text_has_lines() -> None:
    assert clean_lines("a\n\tb\r\nc") == "a\n\tb\ufffd\nc"
    assert clean("a\n\tb") == "a\ufffd\ufffdb"


def test_a_message_tells_no_secret_of_the_home_either() -> None:
    assert clean_message({"text": ["it was hunter22\u202e"]}, ("hunter22",)) == {"text": ["it was [hidden]\ufffd"]}


def test_whatever_a_command_writes_is_plain_and_progress_of_our_own_is_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with plain_output(), plain_output():
        print("host \x1b[31mred\u202e", "\n\ttwo")
        sys.stdout.writelines(["\x9b", "three\n"])
        logging.StreamHandler(sys.stderr).emit(logging.makeLogRecord({"msg": "from \x1b]0;title\x07"}))
        exact_output(sys.stderr).write("\r1 of 2")
    assert out.getvalue() == "host \ufffd[31mred\ufffd \n\ttwo\n\ufffdthree\n"
    assert err.getvalue() == "from \ufffd]0;title\ufffd\n\r1 of 2"
    assert sys.stdout is out


@pytest.fixture
def traces_folder(tmp_path: Path) -> Path:
    write_raw(tmp_path / "raw")
    return tmp_path / "raw"


@pytest.mark.parametrize("style", ["console", "csv", "json", "markdown", "html"])
def test_traces_steer_no_terminal(style: str, traces_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    sql = "SELECT chr(27) || '[2J' AS \"a\x1b[31m\", chr(8238) AS b, chr(155) AS c"
    assert traces.main(["query", sql, str(traces_folder), "--format", style]) == 0
    assert not set("\x1b\u202e\x9b") & set(shown.getvalue())


def test_a_program_reads_rows_as_they_were_recorded(traces_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert traces.main(["query", "SELECT chr(8238) AS a", str(traces_folder), "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a\n\u202e\n"
    assert traces.main(["query", "SELECT chr(8238) AS a", str(traces_folder)]) == 0
    assert "\u202e" not in capsys.readouterr().out


def find_mains() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Each `main` of the application and the library that writes to a terminal, with its file."""
    for folder in ("dashboard", "shared/python/tvmdash"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "def main(" not in text:
                continue
            tree = ast.parse(text)
            writes = any(
                (isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout.write", "sys.stderr.write"))
                or (isinstance(node, ast.Name) and node.id == "print")
                for node in ast.walk(tree)
            )  # fmt: skip
            for node in tree.body:
                if writes and isinstance(node, ast.FunctionDef) and node.name == "main":
                    yield str(path.relative_to(REPOSITORY)), node


FOR_PROGRAMS = {
    "dashboard/process/escape.py", "dashboard/artifacts/health.py", "dashboard/artifacts/runtimes/health.py",
}  # fmt: skip
"""Their output is read by the dashboard."""


def test_every_command_has_the_edge() -> None:
    bare = {
        path
        for path, main in find_mains()
        if "plain_output()" not in [ast.unparse(item) for item in main.decorator_list]
    }
    assert bare <= FOR_PROGRAMS, bare - FOR_PROGRAMS


@pytest.mark.parametrize(
    ("written", "whole"),
    [("0a" * 20, True), ("0A" * 20, False), ("0a" * 19, False), ("0a" * 20 + "0", False), ("", False)],
)
def test_forty_digits_are_a_whole_commit(written: str, *, whole: bool) -> None:
    assert is_commit(written) is whole
