"""No program of a night reads another's sentences: with an identifier for each of them it comes to the same."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import identifiers
from tests.dashboard import homes
from tests.subsystem.stat_alerts.alert_homes import EXPERIMENT, AlertHome, Truth, stamp_of
from tvmdash import summary_util
from tvmdash.summary_util import Failure, Measured

NIGHTS, STEP = 40, 34
SUBSYSTEMS: dict[str, dict[str, Any]] = {
    "stat_alerts": {"honesty_series": 0, "priority": 50},
    "score": {
        "priority": 40,
        "scores": [
            {
                "title": "Level 3",
                "experiment": EXPERIMENT,
                "kind": "speedup",
                "baseline": {"build_config.opt_level": 0},
                "contender": {"build_config.opt_level": 3},
            }
        ],
    },
    "deadline": {"priority": 30, "deadlines": {"day": {"title": "Day", "date": "2999-01-01"}}},
    "exp_reports": {"priority": 20},
    "website": {"priority": 10},
    "subsys_reporter": {"priority": -10},
}
LOG = 'Traceback (most recent call last):\\n  File \\"a.py\\", line 1, in f\\nValueError: broken'


_NOT_COMPARED = {"website", "data", "drawn.json"}
"""The site's files are made of texts (their elements are compared), data are a night's input, the last are digests."""


class Elements(html.parser.HTMLParser):
    """The elements of a page, in order, with their classes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(" ".join(filter(None, (tag, dict(attrs).get("class")))))


@dataclass(frozen=True)
class Ran:
    """A night that has ended, and what `status` says of it; log_ends: for how many failures it shows the log's end."""

    home: homes.HomeForTests
    code: int
    status_code: int
    lines: int
    log_ends: int

    @property
    def marks(self) -> dict[str, str]:
        """What is another in each run, with a name for it."""
        return {str(self.home.root): "ROOT", self.home.stamps()[-1]: "TONIGHT"}

    def files(self) -> list[str]:
        """The paths of everything in results, but for names that are a digest."""
        root = self.home.path / "results"
        paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        return sorted({identifiers.facts(path, self.marks) for path in paths})

    def pages(self) -> dict[str, list[str]]:
        """By path, the elements of the site's pages."""
        root = self.home.home.output("website")
        pages = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.html")}
        return {identifiers.facts(name, self.marks): Elements(page).found for name, page in pages.items()}

    def values(self) -> Iterator[tuple[str, Any]]:
        """By path, what the JSON files that a program reads hold."""
        root = self.home.path / "results"
        for path in sorted(root.rglob("*.json")):
            if not _NOT_COMPARED & {*path.parts}:
                name = identifiers.facts(path.relative_to(root).as_posix(), self.marks)
                yield name, identifiers.facts(json.loads(path.read_text()), self.marks)


def truth() -> Truth:
    made = Truth(nights=NIGHTS + 1, workloads=("mlp", "dqn"), sigma=0.004)
    return made.step("mlp", 3, "run", STEP, 1.2).step("dqn", 0, "compile", STEP + 2, 1.3)


def analysis() -> dict[str, Any]:
    """What the experiment measures in the night itself."""
    one = truth()
    pairs = [(workload, level) for workload in one.workloads for level in (0, 3)]
    records = [one.record(*pair, NIGHTS, np.ones(2)) for pair in [*pairs, ("young", 0)]]
    failed = [{"workload": "network.gru", "values": {"opt_level": 3}, "error": "it died of SIGSEGV"}]
    night = {"timestamp": stamp_of(NIGHTS), "tvm_hash": one.versions[NIGHTS]}
    return {"schema_version": 1, **night, "records": records, "failures": failed}


def summary() -> dict[str, Any]:
    points = [Measured("mlp", 2.0, 1.0, "ms"), Measured("dqn", 1.0, 1.0, "ms")]
    made: dict[str, Any] = summary_util.default_summary("t", points, [Failure("gru", "it died")]).to_json()
    return made


def make(root: Path, artifacts: Path, *, switched: bool) -> homes.HomeForTests:
    home = homes.make_home(root, artifacts, seed=7)
    AlertHome(root).fill(truth(), stop=NIGHTS)
    folder = home.experiment(
        EXPERIMENT,
        analyze=f'{homes.BEGIN}cp data.json "$3/data.json"\n{homes.says("analyze")}\n',
        summarize=f'{homes.BEGIN}cp summary.json "$3/summary.json"\n{homes.says("summarize")}\n',
    )
    homes.write(folder / "data.json", analysis())
    homes.write(folder / "summary.json", summary())
    home.experiment("broken", run=f'{homes.BEGIN}printf "{LOG}\\n" >&2\n{homes.says("run", "broken", success=False)}\n')
    home.experiment("torn", analyze=f'{homes.BEGIN}echo "{{" > "$3/data.json"\n{homes.says("analyze")}\n')
    for name in ("lost", "missing"):
        home.experiment(name, config={"tvm_branch": "0.0.1"})
    for name, config in SUBSYSTEMS.items():
        place = home.code / "subsystem" / name
        shutil.copytree(homes.REPO / "subsystem" / name, place, ignore=shutil.ignore_patterns("__pycache__"))
        homes.write(home.home.config("subsystem", name) / "config.json", {"active": True, **config})
        if switched:
            identifiers.switch_program(place / f"{name}.py")
    return home


def run(home: homes.HomeForTests, *, switched: bool) -> Ran:
    """The night; `status` is the same program, so that it reads what the switched night wrote."""
    with pytest.MonkeyPatch.context() as patch:
        if switched:  # in a Python of its own: sentences are switched as modules are imported
            patch.setattr(homes.HomeForTests, "command", _switched)
            done, status = (home.run_cold({}, verb=verb) for verb in ("run", "status"))
        else:
            done, status = (dataclasses.replace(home, warm_stages=True).run(verb=verb) for verb in ("run", "status"))
    assert "this is a bug in the dashboard" not in done.output + status.output, done.output
    lines, log_ends = len(status.output.splitlines()), status.output.count("Last line of output")
    return Ran(home, done.code, status.code, lines, log_ends)


def _switched(self: homes.HomeForTests, verb: str, *options: str) -> list[str]:
    folders = ["--experiments-dir", f"{self.code}/experiments", "--subsystem-dir", f"{self.code}/subsystem"]
    argv = [sys.executable, "-m", "tests.identifiers", verb, str(self.path)]
    return [*argv, *([] if verb == "status" else folders), *options]


def states(job: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(step["stage"], step["state"], step["reason"]) for step in job["steps"]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> tuple[Ran, Ran]:
    """The same night twice: as it is, and with identifiers."""
    roots = {switched: tmp_path_factory.mktemp("night") for switched in (False, True)}
    plain, named = (
        run(make(root, tvm_artifact_folder, switched=switched), switched=switched) for switched, root in roots.items()
    )
    return plain, named


def test_with_identifiers_for_sentences_states_and_exit_codes_are_the_same(both: tuple[Ran, Ran]) -> None:
    plain, named = both
    assert (plain.code, plain.status_code) == (named.code, named.status_code) == (1, 1)
    jobs, others = ({job["name"]: job for job in one.home.last()["jobs"]} for one in both)
    assert jobs.keys() == others.keys()
    for name, job in jobs.items():
        assert states(job) == states(others[name]), f"{name}: {others[name]}"
    assert (plain.lines, plain.log_ends) == (named.lines, named.log_ends)
    assert any("#" in step["message"] for job in others.values() for step in job["steps"]), "the switch was off"


def test_with_identifiers_for_sentences_the_files_are_the_same(both: tuple[Ran, Ran]) -> None:
    plain, named = both
    assert plain.files() == named.files()
    pages = named.pages()
    assert [name for name, elements in plain.pages().items() if elements != pages[name]] == []


def test_with_identifiers_for_sentences_levels_and_decisions_are_the_same(both: tuple[Ran, Ran]) -> None:
    plain, named = both
    values = dict(named.values())
    pairs = ((value, values[name], name) for name, value in plain.values())
    assert [difference for pair in pairs for difference in identifiers.differences(*pair)] == []
    (verdict,) = (value for name, value in values.items() if name.endswith("stat_alerts/verdict.json"))
    assert verdict["level"] == "regression"
    assert "#" in verdict["headline"], "the switch was off"
