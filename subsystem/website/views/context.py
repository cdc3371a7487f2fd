"""The ground of all pages, read once: the home, tonight, and the output of the subsystems."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from files import code_changes
from files.files import Read, read
from files.incremental import code_version, fingerprint

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.config_util import CONFIG_FILE
from tvmdash.dashboard_info import Home, Night, host_of
from tvmdash.dashboard_info.pages import (
    DEADLINE,
    DEADLINES_FILE,
    PAGE_FILE,
    SCORE,
    SCORES_FILE,
    TELEMETRY,
    DeadlineAhead,
    DeadlinesAhead,
    ScoreHistory,
    ScorePage,
    Scores,
    TelemetryPage,
)
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import MachineIdentity
from tvmdash.trials import files
from tvmdash.verdict import Controls, JudgedSeries, NightVerdict, read_verdict
from tvmdash.verdict.account import Account, make_account
from views.alerts import Alerts, PutAside, read_alerts, read_muted, read_retired
from views.commits import Links, NewCommits, list_new
from views.series import NIGHTS, Measured, SeriesView, read_measured

TRIES, HOSTS = "tries", "hosts"
"""Pages that only some sites have."""


@dataclass(frozen=True)
class Frame:
    """The frame of a page: its name, the way to the site's root ("" or "../"), when it was written (ISO).

    A page that is kept as it is for ever has no `max_age_hours`, and never looks old. also: the pages of the navigation
    that this site has and not every site.
    """

    page: str
    root: str = ""
    written: str = ""
    max_age_hours: int | None = None
    also: frozenset[str] = frozenset()


MAX_AGE_HOURS = 36


@dataclass(frozen=True)
class SiteContext:
    """A publish: of which home, at which night, at which moment; `old` is the site that is replaced."""

    home: Home
    tonight: Night
    old: Path
    now: datetime.datetime
    max_age_hours: int = MAX_AGE_HOURS
    links: Links = Links()  # noqa: RUF009 - frozen

    @functools.cached_property
    def stamps(self) -> list[str]:
        """The nights of the home up to tonight, oldest first."""
        return sorted(
            {*(stamp for stamp in self.home.night_stamps() if stamp < self.tonight.stamp), self.tonight.stamp}
        )

    @functools.cached_property
    def last_nights(self) -> list[Night]:
        """Tonight and the readable nights before it, newest first; experiments have the names that they have now."""
        earlier = [night for night in self.home.last_nights(NIGHTS + 1) if night.stamp < self.tonight.stamp]
        return [self.tonight, *map(self._name_as_now, earlier)][:NIGHTS]

    def _name_as_now(self, night: Night) -> Night:
        kept = self._machine
        if kept is None or not kept.renames:
            return night
        jobs = tuple(
            replace(job, name=kept.experiment_now(job.name, night.stamp)) if job.kind == "experiment" else job
            for job in night.jobs
        )
        return replace(night, jobs=jobs)

    @functools.cached_property
    def _machine(self) -> MachineIdentity | None:
        try:
            return self.home.machine()
        except DashboardError:  # the night says so
            return None

    @functools.cached_property
    def alerts(self) -> Alerts:
        return read_alerts(self.home, self.now)

    @functools.cached_property
    def verdict(self) -> Read[NightVerdict]:
        try:
            return Read(read_verdict(self.home, self.tonight.stamp))
        except DashboardError as error:
            return Read(fault=str(error))

    @functools.cached_property
    def controls(self) -> Controls:
        return Controls.of(self.home)

    @functools.cached_property
    def _score_page(self) -> Read[ScorePage]:
        return read(ScorePage, self.home.output(SCORE) / PAGE_FILE)

    @functools.cached_property
    def _all_scores(self) -> Read[Scores]:
        return read(Scores, self.home.output(SCORE) / SCORES_FILE)

    @functools.cached_property
    def account(self) -> Account:
        """The account of tonight, the same here as everywhere."""
        telemetry = self.telemetry if self.telemetry.stamp == self.tonight.stamp else None
        return make_account(self.tonight, self.verdict.value, telemetry, self.verdict.fault)

    @functools.cached_property
    def _telemetry_page(self) -> Read[TelemetryPage]:
        return read(TelemetryPage, self.home.output(TELEMETRY) / PAGE_FILE)

    @functools.cached_property
    def _deadlines(self) -> Read[DeadlinesAhead]:
        return read(DeadlinesAhead, self.home.output(DEADLINE) / DEADLINES_FILE)

    @property
    def scores(self) -> ScorePage:
        """Those of the last night that was scored; its stamp is "" where there is none."""
        return self._score_page.value or ScorePage("", (), ())

    @property
    def score_histories(self) -> tuple[ScoreHistory, ...]:
        """Every score that ever was."""
        return self._all_scores.value.scores if self._all_scores.value else ()

    @property
    def telemetry(self) -> TelemetryPage:
        """The runs of the last night whose telemetry was judged; its stamp is "" where there is none."""
        return self._telemetry_page.value or TelemetryPage("", ())

    @property
    def deadlines(self) -> list[DeadlineAhead]:
        """Those that are still ahead, nearest first."""
        written = self._deadlines.value.deadlines if self._deadlines.value else ()
        return [deadline for deadline in written if deadline.utc > f"{self.now:%Y-%m-%dT%H:%M:%SZ}"]

    @functools.cached_property
    def faults(self) -> Mapping[str, list[str]]:
        """Faults of other subsystems' files, in words."""
        read_of = {
            "Scores": (self._all_scores, self._score_page),
            "Telemetry": (self._telemetry_page,),
            "Deadlines": (self._deadlines,),
        }
        faults = {name: [each.fault for each in parts if each.fault] for name, parts in read_of.items()}
        faults["Telemetry"] += self.telemetry.faults
        return {"Alerts": list(self.alerts.faults), **faults}

    @functools.cached_property
    def _measured(self) -> Measured:
        return read_measured(self.home, self.stamps, self.alerts)

    @property
    def series(self) -> list[SeriesView]:
        """The series that are alive, what needs attention first."""
        return self._measured.series

    @property
    def machines(self) -> Mapping[str, tuple[str, ...]]:
        """The machines that measured on each night, oldest night first; nights of which none is known are left out."""
        return self._measured.machines

    @property
    def own_machines(self) -> Mapping[str, tuple[str, ...]]:
        """The machines without the other hosts."""
        return self._measured.own_machines

    def read_machine(self, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Read the machine of these experiments by night, the oldest first; of several, by the first."""
        known: dict[str, Mapping[str, Any]] = {}
        for name in names:
            known = {**self._measured.facts.get(name, {}), **known}
        return dict(sorted(known.items()))

    def new_between(self, after: str, begin: str, version: str) -> tuple[NewCommits, ...]:
        """List the news of the TVM `version` of the night `begin` since the night `after`, by night, newest first.

        Of all TVMs of a night where none is that one.
        """
        found: list[NewCommits] = []
        for stamp in reversed([stamp for stamp in self.stamps if after < stamp <= begin][-NIGHTS:]):
            new = self._new_in(stamp)
            own = [each for each in new if version and each.after == version] or list(new)
            version = own[0].before if len(own) == 1 else version
            found += own
        return tuple(found)

    def _new_in(self, stamp: str) -> tuple[NewCommits, ...]:
        night = next((night for night in self.last_nights if night.stamp == stamp), None)
        if night is None:
            try:
                night = self.home.read_night(stamp)
            except DashboardError:  # the page of that night says so
                return ()
        return list_new(night, self.links)

    @functools.cached_property
    def judged(self) -> Mapping[str, JudgedSeries]:
        """Tonight's verdict on each series."""
        return {each.series: each for each in self.verdict.value.series} if self.verdict.value else {}

    @functools.cached_property
    def retired(self) -> list[PutAside]:
        """Experiments and series that people took out of what is expected."""
        return read_retired(self.home, self.tonight.stamp)

    @functools.cached_property
    def muted(self) -> list[PutAside]:
        """Experiments and series that people want nothing told of for a time."""
        return read_muted(self.home, self.tonight.stamp)

    @functools.cached_property
    def series_by_id(self) -> dict[str, SeriesView]:
        return {view.id: view for view in self.series}

    @property
    def shown_stamps(self) -> list[str]:
        """The nights that the series' values are of, oldest first."""
        return self.stamps[-NIGHTS:]

    @functools.cached_property
    def code_nights(self) -> Mapping[tuple[str, str], Path]:
        """By experiment and stamp, the file on how generated code changed that night."""
        return code_changes.list_nights(self.home, self.old, self.shown_stamps)

    @functools.cached_property
    def tries(self) -> list[Path]:
        """The files of what was tried, oldest first."""
        return files.list_files(self.home)

    @functools.cached_property
    def hosts(self) -> tuple[str, ...]:
        """The other machines that measured for the home, or should have; none where only one machine ever measured."""
        measured = {host_of(name) for name in self.home.experiments_with_data()}
        if len(measured) < 2:
            return ()
        asked = {host.name for night in self.last_nights for host in night.hosts}
        return tuple(sorted((measured | asked) - {""}, key=lambda name: (name.lower(), name)))

    @property
    def _also(self) -> frozenset[str]:
        """The pages that this site has and not every site."""
        return frozenset(name for name, has in ((TRIES, self.tries), (HOSTS, self.hosts)) if has)

    @functools.cached_property
    def made_by(self) -> str:
        """Changes with all that makes any page but its own sources: the code, the configs, the header's links.

        What the old site has by another is not carried over: a config may call something a secret that is in it.
        """
        entries = trees.walk(self.home.config_file.parent).files
        changed = max((entry.status.st_mtime_ns for entry in entries if entry.name == CONFIG_FILE), default=0)
        return fingerprint(code_version(), str(changed), repr(self.links), *sorted(self._also))

    def telemetry_file(self, name: str) -> Path:
        """Resolve a file that the telemetry subsystem names; outside of its output folder there is none."""
        folder = self.home.output(TELEMETRY).resolve()
        path = (folder / name).resolve()
        return path if folder in path.parents else folder / "outside"

    def frame(self, page: str, root: str = "") -> Frame:
        """Frame a page that is written anew by each publish."""
        return Frame(page, root, f"{self.now:%Y-%m-%dT%H:%M:%SZ}", self.max_age_hours, self._also)

    def lasting_frame(self, page: str, root: str = "") -> Frame:
        """Frame a page that is carried over until what it shows has changed."""
        return Frame(page, root, also=self._also)

    @property
    def written(self) -> str:
        return common.stamp_of(self.now)
