"""What a running stage says of its points."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.night import progress
from dashboard.plan.job import Job
from tvmdash.dashboard_info import Home, stages

STAMP = "20261121T030000Z"
RUN = next(stage for stage in stages.EXPERIMENT.stages if stage.name == "run")


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ('{"measured": 2, "points": 3}', {"experiment cnn, run": (2, 3)}),
        ('{"measured": 0, "points": 3, "more": null}', {"experiment cnn, run": (0, 3)}),
        ('{"measured": 4, "points": 3}', {}),
        ('{"measured": -1, "points": 3}', {}),
        ('{"measured": true, "points": 3}', {}),
        ('{"measured": 1e9, "points": 3}', {}),
        ('{"measured": 2}', {}),
        ("[]", {}),
        ("", {}),
        (f"[{'9' * 100_000}", {}),
    ],
)
def test_points_are_known_where_the_stage_says_them_well(
    tmp_path: Path, said: str, known: dict[str, tuple[int, int]]
) -> None:
    home = Home(tmp_path)
    home.nights.mkdir(parents=True)
    (tmp_path / stages.POINTS_FILE).write_text(said)
    job = Job("experiment", "cnn", tmp_path, tmp_path, {}, None)
    with progress.Progress(5, home, STAMP) as night:
        night.begin(job, RUN, tmp_path)
        now = progress.read_now(home, STAMP)
    assert now is not None
    assert (now.points, now.done, now.total) == (known, 0, 5)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.nights.mkdir(parents=True)
    (tmp_path / "secret").write_text('{"measured": 2, "points": 3}')
    (tmp_path / stages.POINTS_FILE).symlink_to(tmp_path / "secret")
    with progress.Progress(5, home, STAMP) as night:
        night.begin(Job("experiment", "cnn", tmp_path, tmp_path, {}, None), RUN, tmp_path)
        now = progress.read_now(home, STAMP)
    assert now is not None
    assert now.points == {}
