"""What `results --history` prints: which steps between TVMs are told, and what could not be judged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main as cli
from dashboard.cli.arguments import USAGE
from dashboard.report import history_page
from tests.dashboard.result_homes import backfilled, data, record
from tvmdash import common
from tvmdash.backfill import calls as backfill_calls
from tvmdash.backfill import history as version_history
from tvmdash.dashboard_info import Home

VERSIONS = ("0.9.0", "0.10.0", "0.10.0.post1")


def history(made: Home) -> str:
    return history_page.format_page(version_history.read(made))


def nights(
    rounds: int, factors: dict[str, float], sizes: dict[str, int] | None = None, only: Sequence[str] = VERSIONS
) -> list[tuple[str, str, Any]]:
    """Each round measures all versions; a round has a speed of its own, as a busy machine has."""
    rng = random.Random(3)
    found: list[tuple[str, str, Any]] = []
    for number in range(rounds):
        speed = rng.uniform(0.5, 2.0)
        for version in only:
            ms = 10 * speed * factors[version] * rng.gauss(1, 0.01)
            size = (sizes or {}).get(version, 5000)
            found.append((version, f"round{number}", [record("network.mlp", ms, code_size=size)]))
    return found


def named(course: version_history.BackfillCourse) -> list[bool]:
    """Which steps are called real."""
    return [step is not None and step.is_told for step in course.steps]


def account(made: Home, stamp: str, **told: Any) -> None:
    """What a call of backfill left."""
    made.backfills.mkdir(exist_ok=True)
    common.write_json(made.backfills / f"{stamp}.json", told)


def test_a_step_is_told_though_the_rounds_differ_by_more(tmp_path: Path) -> None:
    factors = {"0.9.0": 1.0, "0.10.0": 1.2, "0.10.0.post1": 1.2}
    made = backfilled(tmp_path, "relax_opt", nights(6, factors))
    found = version_history.read(made)
    assert found.versions == VERSIONS  # 0.10 is newer than 0.9
    times, size = found.courses
    assert named(times) == [True, False]
    assert [step.effect if step else None for step in size.steps] == [0.0, 0.0]
    text = history(made)
    assert "1 of 4 steps are told" in text
    assert "| 0.9.0 | 0.10.0 |" in text
    assert "the same |" in text


@pytest.mark.parametrize(
    ("experiment", "rounds", "said"),
    [
        ("relax_opt", 6, ["No step is told, of 4.", "| flat (", "a smaller change would not be seen here"]),
        ("relax_opt", 1, ["No conclusion: none of the 4 steps was measured in 5 rounds or more.", "not judged"]),
        ("canary", 6, ["## The control", "Of 4 steps there none are told"]),
    ],
    ids=["flat", "one round", "the control"],
)
def test_tvms_that_do_not_differ_are_called_so(tmp_path: Path, experiment: str, rounds: int, said: list[str]) -> None:
    text = history(backfilled(tmp_path, experiment, nights(rounds, dict.fromkeys(VERSIONS, 1.0))))
    assert [words for words in said if words not in text] == []


def test_what_the_rounds_cannot_tell_is_not_called_flat(tmp_path: Path) -> None:
    rng = random.Random(5)
    disturbed = [
        (version, f"round{number}", [record("network.mlp", 10 * rng.uniform(0.2, 5.0))])
        for number in range(6)
        for version in VERSIONS
    ]
    text = history(backfilled(tmp_path, "relax_opt", disturbed))
    assert "| not judged |" in text
    assert "| flat" not in text


def test_of_three_rounds_a_size_that_changed_is_named_and_a_time_is_not(tmp_path: Path) -> None:
    twice_as_slow = dict(zip(VERSIONS, (1.0, 2.0, 2.0), strict=True))
    larger = dict(zip(VERSIONS, (5000, 5000, 5500), strict=True))
    found = version_history.read(backfilled(tmp_path, "relax_opt", nights(3, twice_as_slow, larger)))
    assert [named(course) for course in found.courses] == [[False, False], [False, True]]


def test_a_round_that_lacks_a_tvm_does_not_shift_the_others(tmp_path: Path) -> None:
    kept = nights(6, dict.fromkeys(VERSIONS, 1.0))
    found = version_history.read(backfilled(tmp_path, "relax_opt", [*kept[:1], *kept[2:]]))
    times = found.courses[0]
    assert [step.pairs if step else 0 for step in times.steps] == [5, 5]
    assert named(times) == [False, False]


def test_a_home_without_backfill_is_a_usage_error_and_a_broken_night_is_told(tmp_path: Path) -> None:
    assert cli.main(["results", str(tmp_path), "--history"]) == USAGE
    made = backfilled(tmp_path / "h", "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    (made.backfill("relax_opt") / "data_20261121T050000Z.json").write_text("{", encoding="utf-8")
    assert "data\\_20261121" in history(made) or "data_20261121T050000Z.json" in history(made)
    assert cli.main(["results", str(made.root), "20261121T040000Z", "--history"]) == USAGE


def test_what_could_not_be_had_or_measured_is_told_until_it_was(tmp_path: Path) -> None:
    made = backfilled(tmp_path, "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    first, later = "20261121T000000Z", "20261122T000000Z"  # before these nights, and after them
    for stamp in (first, later):
        unbuilt = {"0.9.0" if stamp == first else "c" * 40: "cmake\n failed"}
        failed = {f"relax_opt on {stamp[:8]}": "it crashed", "relax_opt on 0.10.0": f"in {stamp}", "0.8.0": "not here"}
        account(made, stamp, unbuilt=unbuilt, failed=failed)
    assert history(made).partition("## Failed\n\n")[2].splitlines() == [
        "- relax_opt on 20261121: it crashed",
        f"- every experiment on {'c' * 12}: could not be built: cmake failed",
        "- relax_opt on 20261122: it crashed",
        f"- relax_opt on 0.10.0: in {later}",
    ]


def test_what_was_had_later_is_not_told(tmp_path: Path) -> None:
    made = backfilled(tmp_path, "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    account(made, "20261122T000000Z", unbuilt={"0.8.0": "no network", "0.7.0": "no wheel"})
    account(made, "20261123T000000Z", had=["0.8.0"])
    assert backfill_calls.read(made).unbuilt == {"0.7.0": "no wheel"}
    assert "0.8.0" not in history(made)


def test_a_failure_after_a_success_in_the_same_call_is_told(tmp_path: Path) -> None:
    made = backfilled(tmp_path, "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    first = made.backfill("relax_opt").glob("data_*.json")
    begin = min(path.stem.removeprefix("data_") for path in first)
    account(made, begin, failed={"relax_opt on 0.9.0": "it crashed in round 2"}, elapsed_s=3600.0)
    assert "it crashed in round 2" in history(made)


def test_a_damaged_account_of_a_call_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    made = backfilled(tmp_path, "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    texts = ("{", "[]", '{"unbuilt": [], "failed": null, "had": 3, "elapsed_s": "long"}', '{"elapsed_s": 1e300}')
    made.backfills.mkdir()
    for number, text in enumerate(texts):
        (made.backfills / f"2026112{number}T000000Z.json").write_text(text, encoding="utf-8")
    account(made, "yesterday", unbuilt={"0.0.0": "no wheel"})
    account(made, "20261129T000000Z", unbuilt={"0.1.0": "no wheel"})
    calls = backfill_calls.read(made)
    assert [Path(fault.split(": ")[0]).stem[:8] for fault in calls.broken[:-1]] == ["20261120", "20261121", "20261122"]
    assert "yesterday" in calls.broken[-1]
    assert "$.measured_s: 'long'" in calls.broken[2]
    assert calls.unbuilt == {"0.1.0": "no wheel"}
    assert "20261120T000000Z.json" in history(made)


def test_where_no_night_can_be_read_the_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Home(tmp_path).backfill("relax_opt")
    folder.mkdir(parents=True)
    (folder / "data_20261121T050000Z.json").write_text("{", encoding="utf-8")
    assert cli.main(["results", str(tmp_path), "--history"]) == USAGE
    assert "data_20261121T050000Z.json" in capsys.readouterr().err
    account(Home(tmp_path), "20261122T000000Z", unbuilt={"0.9.0": "no wheel"})
    assert cli.main(["results", str(tmp_path), "--history"]) == USAGE
    assert "no wheel" in capsys.readouterr().err


def test_what_an_old_tvm_could_not_do_is_told(tmp_path: Path) -> None:
    made = backfilled(tmp_path, "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    failures = [{"workload": "network.x", "values": {}, "error": "no such pass"}]
    artifact = {"key": "k", "version": "0.9.0", "commit": ""}
    value = data([record("network.mlp", 1.0)], failures, fingerprint="r", artifact=artifact, committed=None)
    common.write_json(made.backfill("relax_opt") / "data_20261121T050000Z.json", value)
    assert "1 point: no such pass" in history(made)


def commit(sha: str, committed: str, number: int, ms: float = 1.0) -> Any:
    artifact = {"key": sha, "version": "0.27.dev0", "commit": sha}
    records = [record("network.mlp", ms, load_before={"load_1_min": "high"})]
    return data(records, fingerprint=f"round{number}", artifact=artifact, committed=committed)


def test_commits_are_in_the_order_of_their_moments_wherever_they_were_made(tmp_path: Path) -> None:
    made = Home(tmp_path)
    folder = made.backfill("relax_opt")
    folder.mkdir(parents=True)
    told = {
        "b" * 40: "2026-11-01T20:00:00-08:00",  # already the next day in UTC
        "a" * 40: "2026-11-01T23:00:00+00:00",
        "c" * 40: "2026-11-02T05:00:00Z",
        "d" * 40: "yesterday",
    }
    for at, (sha, committed) in enumerate(told.items()):
        common.write_json(folder / f"data_20261121T04000{at}Z.json", commit(sha, committed, 0), durable=False)
    found = version_history.read(made)
    assert found.versions == ("a" * 12, "b" * 12, "c" * 12)
    assert found.committed["b" * 12].isoformat() == "2026-11-02T04:00:00+00:00"
    assert [fault.split(": ")[1] for fault in found.broken] == ["$.night.committed"]
    assert found.loads == []


def test_one_tvm_is_compared_with_none(tmp_path: Path) -> None:
    found = version_history.read(backfilled(tmp_path, "relax_opt", nights(4, {"0.9.0": 1.0}, only=["0.9.0"])))
    assert [course.whole for course in found.courses] == [None, None]


def test_nights_of_two_days_say_both(tmp_path: Path) -> None:
    made = backfilled(tmp_path, "relax_opt", nights(1, dict.fromkeys(VERSIONS, 1.0)))
    folder = made.backfill("relax_opt")
    (folder / "data_20261121T040000Z.json").rename(folder / "data_20261119T230000Z.json")
    assert "| measured | 2026-11-19 23:00 to 2026-11-21 04:02 UTC |" in history(made)
