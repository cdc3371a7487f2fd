"""The night's journal hides secrets in everything that it writes."""

from __future__ import annotations

from pathlib import Path

from dashboard.night.journal import Journal
from dashboard.plan.job import Job
from dashboard.process.process import BoundedLog
from tvmdash import common
from tvmdash.dashboard_info import FAILED, RUNNING, Home, Night, StepResult

STAMP = "20261121T031500Z"
TOKEN = "xoxb-123456789012-abcdefABCDEF"
NAMED = "correct-horse"


def test_statuses_notes_and_logs_hold_no_secret(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config("experiment", "cnn").mkdir(parents=True)
    common.write_json(home.config("experiment", "cnn") / "config.json", {"active": True, "hub_token": NAMED})
    journal = Journal(home, Night(STAMP, RUNNING))
    text = f"{TOKEN} and {NAMED} of https://me:hunter2@host/x, commit 7b5acb32b"
    (tmp_path / "run.log").write_text(f"{text}\n" * 1000)
    config = {"title": text, "description": text}
    job = Job("experiment", "cnn", tmp_path, home.config("experiment", "cnn"), config, None)
    journal.record(job, StepResult("run", FAILED, text, STAMP, log_tail=text), tmp_path / "run.log")
    journal.note(text)
    journal.close("complete")
    written = [path for path in (tmp_path / "results").rglob("*") if path.suffix in {".json", ".log"}]
    assert len(written) == 3
    for path in written:
        shown = path.read_text()
        assert not [secret for secret in (TOKEN, NAMED, "hunter2") if secret in shown], path
        assert "commit 7b5acb32b" in shown
    assert NAMED not in repr(journal.night.jobs[0].steps)


def test_the_tail_of_a_log_holds_no_half_of_a_secret(tmp_path: Path) -> None:
    for length in range(7, 40):
        with BoundedLog(tmp_path / "x.log") as log:
            log.write(f"{TOKEN} ".encode() * 400 + b"y" * length)
            assert "123456789012" not in log.tail()
            assert not log.tail().startswith("bcdef")
