"""The alerts subsystem: what moved beyond its noise, as incidents in a ledger, in words, and for the website."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from in_slack import ThreadsConfig, post_threads
from judging import false_positive_rate, sensitivity
from judging.judge import Options
from judging.table import Table, read_table
from nights import Tonight, judge_pending
from report import report as telling
from report import verdict as concluding
from report.expected import find_retired
from report.report import ReportLine

from tvmdash import common
from tvmdash.common import structured
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents import annotations as known
from tvmdash.incidents.ledger import Incidents, Ledger
from tvmdash.judge.history.rules import StddevSettings, stddev
from tvmdash.judge.history.series import Settings
from tvmdash.measure import within_night
from tvmdash.notify.channel import find_slack_faults
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.text import elide, format_list
from tvmdash.verdict import Controls, write_verdict
from tvmdash.verdict.page import PAGE_FILE, SCHEMA_VERSION, StddevPage, StddevSeries

VIEW_FILE = "incidents.json"


@dataclass(frozen=True, kw_only=True)
class StatAlertsConfig(ThreadsConfig, JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    rule: str
    least_effect: float
    window: int
    deviations: float
    controls: tuple[str, ...]
    confirm_nights: int
    confirm_seconds: int
    creep_percent: float
    honesty_series: int


class StatAlerts(Subsystem[StatAlertsConfig]):
    """Judges all series of the home's store, each night once."""

    def faults(self, config: StatAlertsConfig, shown: str, home: Home) -> Sequence[str]:
        return find_slack_faults(config, home, shown) if config.channel else ()

    def work(self, config: StatAlertsConfig, output: Path, home: Home, tonight: Night) -> Report:
        if config.rule == "stddev":
            return _stddev(config, output, home, tonight.stamp)
        options = _options(config, home, tonight)
        done = judge_pending(home, output, tonight.stamp, options)
        _write_view(output, done.ledger)
        # where nothing is measured here, what was imported since the last night is tonight's
        if done.judged is None or (tonight.experiments and done.table.stamps[-1] != tonight.stamp):
            write_verdict(home, concluding.nothing_measured(tonight))
            report = _without_data(done, tonight.stamp)
            return post_threads(report, config, output, home, tonight, done.ledger, [ReportLine(report.value)])
        rates = false_positive_rate.measured(output, done.table, done.judged, options, config.honesty_series)
        seen = sensitivity.measured(output, done.table, done.judged)
        verdict, stands = concluding.conclude(home, tonight, done.table, done.judged, done.ledger, options, seen)
        write_verdict(home, verdict)
        page = telling.page(done.table, done.judged, done.ledger, rates, options, stands)
        page = replace(page, partial=_partial(home, page.stamps))
        common.write_json(output / PAGE_FILE, telling.page_to_json(page, done.ledger))
        retired = find_retired(done.table, done.judged.night, options.annotations)
        lines = telling.report_lines(done.table, done.judged, done.ledger, done.events, rates, verdict, retired)
        report = telling.report(verdict, lines)
        return post_threads(report, config, output, home, tonight, done.ledger, lines)


def _options(config: StatAlertsConfig, home: Home, tonight: Night) -> Options:
    wanted_s, off = config.confirm_seconds, (0.0, "confirm_seconds is 0")
    return Options(
        Settings(least_effect=config.least_effect),
        Controls(frozenset(config.controls)),
        config.confirm_nights,
        config.creep_percent / 100,
        tuple(known.read(home.root)),
        *(within_night.allowed_s(wanted_s, config, home, tonight) if wanted_s else off),
    )


def _partial(home: Home, stamps: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Find by night the experiments with partial data: what such a night lacks was not measured, it has not ended."""
    partial_of: dict[str, tuple[str, ...]] = {}
    for stamp in stamps:
        with contextlib.suppress(DashboardError):  # an imported night has no record
            partial_of[stamp] = tuple(partial.experiment for partial in home.read_night(stamp).partial)
    return {stamp: names for stamp, names in partial_of.items() if names}


def _write_view(output: Path, ledger: Ledger) -> None:
    """Write the incidents as they are now, for readers only: the ledger holds them."""
    view = Incidents(tuple(ledger.incidents.values()))
    common.write_json(output / VIEW_FILE, {"schema_version": 1, **structured.to_json(view)})


def _without_data(done: Tonight, stamp: str) -> Report:
    last = f" The last night with data is {done.table.stamps[-1]}." if done.table.stamps else ""
    still = done.ledger.open()
    more = f" {len(still)} incident{'s are' if len(still) > 1 else ' is'} open." if still else ""
    return Report("No data tonight: nothing was judged", f"No experiment left data in the night {stamp}.{last}{more}")


def _stddev(config: StatAlertsConfig, output: Path, home: Home, stamp: str) -> Report:
    """Report tonight's series further from their mean than the allowed deviations: the ancestor's rule."""
    settings = StddevSettings(config.window, config.deviations)
    table = read_table(home, stamp, config.window + 1)
    beyond = []
    series_on_page = []
    for row, series in enumerate(table.rows):
        decision = stddev(_up_to(table, row, stamp), settings)
        series_on_page.append(StddevSeries(series.key, series.name, decision.alert, decision.reason))
        if decision.alert:
            beyond.append(series.name)
    page = StddevPage(stamp, tuple(series_on_page))
    common.write_json(output / PAGE_FILE, {"schema_version": SCHEMA_VERSION, **structured.to_json(page)})
    if not beyond:
        text = f"No series of {len(table.rows)} is beyond {settings.deviations:g} standard deviations of its mean."
        return Report("Nothing stands out", text)
    names = format_list([elide(name, 80) for name in beyond], 20)
    text = f"Beyond {settings.deviations:g} standard deviations of the last {settings.window} nights: {names}."
    return Report(f"{len(beyond)} of {len(table.rows)} series stand out", text)


def _up_to(table: Table, row: int, stamp: str) -> Any:
    values = table.values[row]
    return values if table.stamps and table.stamps[-1] == stamp else [*values, float("nan")]


if __name__ == "__main__":
    sys.exit(StatAlerts().main())
