"""What people know about nights and commits."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path

import pytest

from tvmdash.common.files import lines
from tvmdash.errors import DashboardError
from tvmdash.incidents import annotations

VERSIONS = {"20260701T031500Z": "aaaa11", "20260702T031500Z": "bbbb22", "20260704T031500Z": "bbbb22"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path


def run(home: Path, *arguments: str) -> int:
    return annotations.main([str(home), *arguments])


def made(kind: str, place: str, **changes: object) -> annotations.Annotation:
    return annotations.make(kind, place, "words", who="ann", at="2026-07-01T00:00:00Z", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "place", "night"),
    [
        ("night", "2026-07-02", "20260702T031500Z"),
        ("machine", "20260703", "20260704T031500Z"),
        ("release", "20260701T031500Z", "20260701T031500Z"),
        ("night", "2026-08-01", None),
        ("commit", "bbbb", "20260702T031500Z"),
        ("commit", "cccc", None),
    ],
)
def test_an_annotation_is_about_the_first_night_that_it_concerns(kind: str, place: str, night: str | None) -> None:
    assert made(kind, place).night(VERSIONS) == night


@pytest.mark.parametrize(
    ("kind", "place", "words", "fault"),
    [
        ("night", "yesterday", "w", "is not a night"),
        ("night", "2026-13-01", "w", "is not a stamp"),
        ("commit", "ab", "w", "too short"),
        ("party", "2026-07-01", "w", "unknown kind"),
        ("night", "2026-07-01", "  ", "The annotation has no text"),
    ],
)
def test_what_is_no_annotation_is_refused(kind: str, place: str, words: str, fault: str) -> None:
    with pytest.raises(DashboardError, match=fault):
        annotations.make(kind, place, words, who="a", at="x")


def test_a_scope_names_experiments_or_series() -> None:
    one = made("night", "2026-07-01", scope="relax_*")
    assert one.covers("relax_opt", "x")
    assert not one.covers("other", "other mlp")
    assert made("night", "2026-07-01", scope="*mlp*").covers("other", "other mlp run time")


def test_series_are_retired_or_expected_and_not_both(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, "add", "night", "2026-07-02", "taken out", "--retire", "--scope", "*dqn*", "--who", "ann") == 0
    (retired,) = annotations.read(home)
    assert (retired.series, retired.scope) == (annotations.RETIRED, "*dqn*")
    assert f"{retired.id}  night 20260702 [*dqn*], retired: taken out (ann)" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(home, "add", "night", "2026-07-02", "both", "--retire", "--expect")


def test_annotations_are_added_listed_and_taken_back_and_no_line_is_lost(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(home) == 0
    assert "No annotations." in capsys.readouterr().out
    assert run(home, "add", "machine", "2026-07-02", "new memory", "--break", "--who", "ann") == 0
    assert run(home, "add", "commit", "abcdef", "the change") == 0
    first, second = annotations.read(home)
    assert (first.place, first.is_break, first.who, first.scope) == ("20260702T000000Z", True, "ann", "*")
    assert (second.kind, second.place, second.is_break) == ("commit", "abcdef", False)
    capsys.readouterr()
    assert run(home, "list") == 0
    assert f"{first.id}  machine 20260702, a known break: new memory (ann)" in capsys.readouterr().out
    assert run(home, "remove", first.id) == 0
    assert annotations.read(home) == [second]
    assert len(annotations.path_of(home).read_text().splitlines()) == 3
    assert run(home, "remove", first.id) == 2


@pytest.mark.parametrize("line", ['{"id": "a1"}', "{", "3", ""])
def test_a_bad_line_is_named_with_its_place_and_costs_itself_only(
    home: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    run(home, "add", "night", "2026-07-02", "words")
    with annotations.path_of(home).open("a") as file:
        file.write(line + "\n")
    with caplog.at_level(logging.WARNING):
        assert len(annotations.read(home)) == 1
    assert "annotations.jsonl:2: invalid annotation" in caplog.text


@pytest.mark.parametrize("words", [[], ["list"], ["add", "night", "2026-07-01", "w"], ["remove", "a1"]])
def test_a_folder_that_is_no_home_is_said(tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, *words) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path}: not a dashboard home: it has neither config nor results. Give the path of a home.\n"
    )


def test_a_home_in_which_no_night_has_run_takes_no_annotation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").mkdir()
    assert run(tmp_path) == 0
    assert run(tmp_path, "add", "night", "2026-07-01", "w") == 2
    assert "Has a night run in" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ['"remove"', "5", "[]", '{"remove": ["a1"]}', '{"place": 5}', '{"scope": ["cnn"]}', '{"series": {}}']
)
def test_a_line_whose_values_are_of_another_type_costs_itself_only(home: Path, line: str) -> None:
    run(home, "add", "night", "2026-05-01", "gone", "--retire", "--scope", "cnn")
    value = json.loads(line)
    if isinstance(value, dict) and "remove" not in value:
        value = {**asdict(annotations.read(home)[0]), "id": "a2", **value}
    lines.append(annotations.path_of(home), [value])
    assert annotations.list_retired_experiments(home, "20260601T031500Z") == {"cnn"}


def test_an_annotation_of_a_newer_dashboard_is_read(home: Path) -> None:
    lines.append(annotations.path_of(home), [{**asdict(made("night", "2026-05-01")), "colour": "red"}])
    assert [each.place for each in annotations.read(home)] == ["20260501T000000Z"]


def test_a_line_that_was_cut_takes_no_other_with_it(home: Path) -> None:
    run(home, "add", "night", "2026-05-01", "first")
    with annotations.path_of(home).open("a") as file:
        file.write('{"id": "a1", "at": "2026')  # as a kill leaves it
    run(home, "add", "night", "2026-05-02", "second")
    assert [each.words for each in annotations.read(home)] == ["first", "second"]
