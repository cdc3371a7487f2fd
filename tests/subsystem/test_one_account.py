"""A night is called the same by everything that tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import status
from tests.subsystem import slack_homes
from tests.subsystem.slack_homes import BLOCKED, FAILED, STAMP, job
from tests.subsystem.website.sites import Site
from tvmdash.dashboard_info import JobResult, MissingBackup, Night
from tvmdash.notify import text
from tvmdash.notify.night import SEVERITY_ICONS
from tvmdash.verdict import MOST_TITLE, Level, NightVerdict, account, write_verdict
from tvmdash.verdict.account import NightSeverity

JUDGED = job("stat_alerts", kind="subsystem")
GREEN = "TVM did not get slower: nothing moved beyond its noise"
LONG = "relax_opt a_network_with_a_very_long_name run time (opt_level 3) +9.7 %"


def verdict(level: Level, headline: str = GREEN, **more: Any) -> NightVerdict:
    return NightVerdict(STAMP, level, headline, **{"title": headline[:MOST_TITLE], "reasons": (), **more})


@dataclass(frozen=True)
class Situation:
    """A night as it was left, and what has to be said first of it."""

    severity: NightSeverity
    headline: str
    jobs: tuple[JobResult, ...]
    verdict: NightVerdict | None = None
    state: str = "complete"
    backups: tuple[MissingBackup, ...] = ()


BAD, WARN, UNKNOWN, GOOD = NightSeverity
SITUATIONS = {
    "quiet": Situation(GOOD, GREEN, (job("cnn"), JUDGED), verdict(Level.STEADY)),
    "a new regression": Situation(
        BAD, "TVM got slower: mlp +8 %", (job("cnn"), JUDGED),
        verdict(Level.REGRESSION, "TVM got slower: mlp +8 %", new=("i1",), reasons=("2 of 9 series have no value",)),
    ),
    "a regression in a night that failed": Situation(
        BAD, "TVM got slower: mlp +8 %", (job("cnn"), job("rnn", FAILED), JUDGED),
        verdict(Level.REGRESSION, "TVM got slower: mlp +8 %", new=("i1",)),
    ),
    "one that is open": Situation(
        WARN, "1 open regression: mlp +8 %", (job("cnn"), JUDGED),
        verdict(Level.REGRESSION, "1 open regression: mlp +8 %", open=("i1",)),
    ),
    "suspected": Situation(
        WARN, "Possibly worse: mlp +2 %", (job("cnn"), JUDGED), verdict(Level.SUSPECT, "Possibly worse: mlp +2 %")
    ),
    "noisy": Situation(UNKNOWN, "Too noisy to tell", (job("cnn"), JUDGED), verdict(Level.BLIND, "Too noisy to tell")),
    "one failed": Situation(WARN, "rnn failed", (job("cnn"), job("rnn", FAILED), JUDGED), verdict(Level.STEADY)),
    "all failed": Situation(
        BAD, "cnn and rnn failed", (job("cnn", FAILED), job("rnn", FAILED), JUDGED),
        verdict(Level.NO_DATA, "Nothing was measured tonight"),
    ),
    "a subsystem did not run": Situation(
        WARN, "Subsystem score did not run", (job("cnn"), job("score", BLOCKED, kind="subsystem"), JUDGED),
        verdict(Level.STEADY),
    ),
    "not judged": Situation(
        WARN, "Subsystem stat_alerts failed", (job("cnn"), job("stat_alerts", FAILED, kind="subsystem"))
    ),
    "nobody judges": Situation(GOOD, "All 2 experiments ok", (job("cnn"), job("rnn"))),
    "only what was imported": Situation(GOOD, GREEN, (JUDGED,), verdict(Level.STEADY)),
    "no backup": Situation(
        WARN, "The backup after the night failed", (job("cnn"), JUDGED), verdict(Level.STEADY),
        backups=(MissingBackup("after", "the disk is full."),),
    ),
    "stopped": Situation(
        BAD, "The night was stopped early", (job("cnn"), JUDGED), verdict(Level.STEADY), state="interrupted"
    ),
    "of before there were titles": Situation(
        BAD, "TVM got slower: relax_opt a_ne…run time (opt_level 3) +9.7 %", (job("cnn"), JUDGED),
        verdict(Level.REGRESSION, f"TVM got slower: {LONG}", new=("i1",), title="", lead=f"TVM got slower: {LONG}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_a_night_has_one_severity_one_headline_and_reasons_wherever_it_is_told(
    tmp_path: Path, situation: Situation
) -> None:
    slack, site = slack_homes.SlackHome(tmp_path), Site(slack_homes.SlackHome(tmp_path).home)
    site.night(*situation.jobs, state=situation.state, missing_backups=situation.backups)
    if situation.verdict is not None:
        write_verdict(slack.home, situation.verdict)
    night = slack.home.read_night(STAMP)
    given = account.read_account(slack.home, STAMP, night)
    assert (given.severity, given.headline) == (situation.severity, situation.headline)
    assert len(given.headline) <= MOST_TITLE
    assert len(given.reasons) <= 3
    page = site.publish_here()
    assert page.first("h1") == f"{ICONS[given.severity]}{given.headline}"
    own = site.page(f"nights/{STAMP}.html")
    assert own.first("h1") == f"{ICONS[given.severity]}{given.headline}."
    messages = [slack.run(name, night).text for name in ("exp_reports", "subsys_reporter")]
    for message in messages:
        assert message.splitlines()[0] == f"{SEVERITY_ICONS[given.severity]} {given.headline}"
    item = text.describe_night(given, STAMP, "", str(slack.home.root))
    told = [page.words, own.words, *messages, " ".join(item.lines)]
    if situation.state == "complete":
        told.append(status.summarize_night(slack.home, night))
        assert f"Night {STAMP}: {given.headline}." in told[-1]
    for reason in given.reasons:
        assert all(reason in words for words in told), reason


ICONS = {NightSeverity.BAD: "✖", NightSeverity.WARN: "!", NightSeverity.UNKNOWN: "?", NightSeverity.GOOD: "✓"}


def test_what_failed_is_named_even_where_tvm_got_slower() -> None:
    night = Night(STAMP, "complete", jobs=SITUATIONS["a regression in a night that failed"].jobs)
    given = account.make_account(night, SITUATIONS["a regression in a night that failed"].verdict)
    assert "rnn failed; 1 of 2" in given.reasons[0]
    assert len(given.failures) == 1


def test_a_night_whose_record_is_lost_is_told_by_its_verdict() -> None:
    given = account.make_account(None, verdict(Level.STEADY))
    assert given.severity is NightSeverity.WARN
    assert given.headline.startswith("The record of the night")
    assert GREEN in given.reasons
