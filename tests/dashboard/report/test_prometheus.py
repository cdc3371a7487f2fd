"""The text file for node_exporter, read back by the grammar of the format."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.report.prometheus import write_metrics
from tests.dashboard import homes
from tvmdash.dashboard_info import COMPLETE, FAILED, OK, JobResult, Night, StepResult
from tvmdash.verdict import Level, NightVerdict

STAMP = "20261121T031500Z"
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (-?[0-9.e+]+)")


def job(name: str, *states: str) -> JobResult:
    steps = tuple(StepResult("run", state, "", STAMP, 2.5) for state in states)
    return JobResult("experiment", name, name, "", steps)


def read(path: Path) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples by name and labels; each name has its HELP and TYPE before its first sample, once."""
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    declared: dict[str, list[str]] = {}
    samples = {}
    for line in text.splitlines():
        if line.startswith("#"):
            _, kind, name, *_ = line.split(" ", 3)
            declared.setdefault(name, []).append(kind)
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        name, inside, value = found.groups()
        labels = LABEL.findall(inside or "")
        assert ",".join(f'{key}="{text}"' for key, text in labels) == (inside or ""), line
        assert declared[name] == ["HELP", "TYPE"]
        key = (name, tuple(sorted(labels)))
        assert key not in samples, "told twice"
        samples[key] = float(value)
    return samples


def value(samples: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str, **labels: str) -> float:
    (found,) = [
        number for (own, known), number in samples.items()
        if own == f"tvm_dashboard_{name}" and labels.items() <= dict(known).items()
    ]  # fmt: skip
    return found


def test_a_night_with_its_verdict_is_told(tmp_path: Path) -> None:
    night = Night(STAMP, COMPLETE, elapsed_s=321.5, jobs=(job("cnn", OK, OK), job('o"dd\\na\nme', FAILED)))
    verdict = NightVerdict(STAMP, Level.REGRESSION, "x", expected=10, seen=8, blind=1, new=("a",), open=("a", "b"))
    path = tmp_path / "dashboard.prom"
    write_metrics(path, Path("/srv/bench"), night, verdict)
    samples = read(path)
    assert value(samples, "night_start_seconds", home="bench") == 1795230900
    assert value(samples, "night_duration_seconds") == 321.5
    assert value(samples, "night_complete") == 1
    assert value(samples, "jobs", state="failed") == 1
    assert value(samples, "job_duration_seconds", job="cnn") == 5
    assert value(samples, "job_duration_seconds", job=r"o\"dd\\na\nme") == 2.5
    assert {level: value(samples, "level", level=level) for level in Level} == {
        level: float(level is Level.REGRESSION) for level in Level
    }
    assert [value(samples, "series", kind=kind) for kind in ("expected", "seen", "missing", "blind")] == [10, 8, 2, 1]
    assert [value(samples, "incidents", kind=kind) for kind in ("new", "open", "improved")] == [1, 2, 0]


def test_a_night_that_was_not_judged_has_no_level(tmp_path: Path) -> None:
    write_metrics(tmp_path / "x.prom", tmp_path, Night(STAMP, "interrupted"), None)
    samples = read(tmp_path / "x.prom")
    assert value(samples, "night_complete") == 0
    assert not [name for name, _ in samples if name.endswith("_level")]


def test_a_night_leaves_the_file_and_one_that_cannot_be_written_costs_nothing(
    tmp_path: Path, tvm_artifact_folder: Path
) -> None:
    home = homes.make_home(tmp_path, tvm_artifact_folder, prometheus_file="out/dashboard.prom")
    home.experiment("cnn")
    refused = home.run()
    assert "prometheus_file" in refused.output
    assert home.last()["state"] == COMPLETE
    (home.path / "out").mkdir()
    home.run()
    samples = read(home.path / "out" / "dashboard.prom")
    assert value(samples, "night_complete", home="home") == 1
    assert value(samples, "job_duration_seconds", job="cnn") > 0
