"""docs/how-to/questions.md: its commands answer the same questions about a small real night, which is run here."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace_processor import ask
from tests.tvmtraces.test_commands import run

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "how-to" / "questions.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
EXAMPLES = [found for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for found in COMMAND.findall(block)]
NIGHT = {
    "active": True, "size": "smoke", "networks": ["mlp"], "variants": ["zero"], "opt_levels": [0, 3],
    "profile_repeats": 3, "min_repeat_ms": 100,
}  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO), str(REPO / "shared" / "python")])}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> Path:
    """A folder with `home`, in which one night of relax_opt on mlp was run."""
    folder = tmp_path_factory.mktemp("questions")
    config = folder / "home" / "config" / "experiments" / "relax_opt"
    config.mkdir(parents=True)
    (config / "config.json").write_text(json.dumps(NIGHT))
    top = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup", "telemetry_rate": 10.0}
    top = {**top, "artifact_dir": str(tvm_artifact_folder), "tvm_remote": "pypi"}
    (folder / "home" / "config" / "config.json").write_text(json.dumps(top))
    argv = [sys.executable, "-m", "dashboard", "run", "home", "--no-rebuild-tvm"]
    done = subprocess.run(argv, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def of_this_night(command: str, place: Path) -> str:
    """The command for the night in `place`, which stands for both nights of the page, and its network."""
    (night,) = (path.stem for path in (place / "home" / "results" / "nights").glob("*.json"))
    command = re.sub(r"\d{8}T\d{6}Z", night, command.replace("\\\n", " ")).replace("network.squeezenet", "network.mlp")
    return command.replace("python3", shlex.quote(sys.executable), 1)


def shown(command: str, place: Path) -> list[str]:
    """What the command prints, line by line, blanks as one."""
    command = of_this_night(command, place)
    words = shlex.split(command)
    assert words[1:4] == ["-m", "dashboard", "traces"]
    if "|" in words:
        argv = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(argv, cwd=place, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said = done.stdout
    else:
        said = run(place, *words[4:])
    return [" ".join(line.split()) for line in said.splitlines()]


def test_the_page_asks_six_questions_with_one_statement_each() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    asked = [section for section in sections if section.partition("\n")[0].endswith("?")]
    consoles = ["".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL)) for section in asked]
    assert [len(COMMAND.findall(console)) for console in consoles] == [1] * 6
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize(("command", "printed"), EXAMPLES[:-1], ids=range(1, len(EXAMPLES)))
def test_a_question_has_an_answer_of_the_same_columns(place: Path, command: str, printed: str) -> None:
    found = shown(command, place)
    assert found[0].split() == printed.splitlines()[0].split()
    assert len(found) > 2, "there are rows"


def test_the_night_went_where_the_stages_say(place: Path) -> None:
    rows = [line.split() for line in shown(EXAMPLES[0][0], place)[2:]]
    assert [row[:3] for row in rows] == [["relax_opt", s, "ok"] for s in ("run", "analyze", "visualize", "summarize")]
    assert 0 < sum(float(row[4]) for row in rows) <= 100
    phases = {tuple(line.split()[:2]) for line in shown(EXAMPLES[1][0], place)[2:]}
    assert phases == {("network.mlp", name) for name in ("prepare", "link", "hash", "check", "time", "profile")}


def test_its_picture_leads_from_the_night_to_the_operators(place: Path) -> None:
    shown(EXAMPLES[-1][0], place)
    flows = """SELECT o.category, i.category, count(*) FROM flow f JOIN slice o ON o.id = f.slice_out
        JOIN slice i ON i.id = f.slice_in GROUP BY 1, 2 ORDER BY 1, 2"""
    outside = """SELECT count(*) FROM slice k WHERE category = 'operator' AND NOT EXISTS (SELECT * FROM slice p
        WHERE p.name = 'profile' AND p.ts <= k.ts AND k.ts + k.dur <= p.ts + p.dur)"""
    found, stray = ask(place / "night.pftrace", flows, outside)
    assert found == [["night", "stage", 4], ["stage", "trial", 2], ["trial", "operator", 6]]
    assert stray == [[0]], "an operator lies outside of the phase that it was profiled in"
