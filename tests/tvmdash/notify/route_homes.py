"""Homes whose incidents and nights are told on routes, without series and statistics."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common, verdict
from tvmdash.dashboard_info import COMPLETE, Home, JobResult, Night
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Joined, Moved, Opened, Silenced
from tvmdash.incidents.ledger import Event, iso_of
from tvmdash.notify.service import Told, tell_routes
from tvmdash.verdict import Level, NightVerdict

FIRST = datetime.datetime(2026, 5, 1, 3, 15, tzinfo=datetime.UTC)
NIGHTS = [common.stamp_of(FIRST + datetime.timedelta(days=at)) for at in range(60)]
FOLDERS = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
SITE = "https://bench.example.org/tvm"
BEFORE, AFTER = "599895c" + "0" * 33, "5a36cd4" + "0" * 33
ONE = "i20260501-00aa"


def moved(workload: str, experiment: str = "cnn_comp", **changes: Any) -> Moved:
    facts = {
        "series": f"id-{experiment}-{workload}", "name": f"{experiment} cnn.{workload} run time", "metric": "run_time",
        "unit": "ms", "worse": True, "before": 31.0, "after": 33.5, "effect": 0.081, "low": 0.076, "high": 0.086,
        "z": 29.5, "nights": 1, "kind": "time", "experiment": experiment, "workload": workload, "machine": "bench",
    }  # fmt: skip
    return Moved(**{**facts, **changes})


@dataclass
class RouteHome:
    """A home below `root`, outside which its secrets lie."""

    root: Path
    routes: dict[str, Any] = field(default_factory=dict)
    owners: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[JobResult] = field(default_factory=list)

    @property
    def home(self) -> Home:
        return Home(self.root / "home")

    def secret(self, name: str, *lines: str) -> str:
        path = self.root / "secrets" / name
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o600)
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    def add(self, *events: Event) -> None:
        incident_file.append(self.home.output(ledgers.SUBSYSTEM) / ledgers.LEDGER_FILE, events)

    def opens(self, at: int, name: str = ONE, *series: Moved, **facts: Any) -> None:
        """An incident opens in a night."""
        opened = {
            "kind": "change", "begin": NIGHTS[at], "after": NIGHTS[at - 1], "found": NIGHTS[at],
            "versions": (BEFORE, AFTER), "blame": "compiler", "moved": series or (moved("resnet18"),),
        }  # fmt: skip
        self.add(Event.of(iso_of(NIGHTS[at]), "detector", ledgers.OPENED, name, Opened(**{**opened, **facts})))

    def grows(self, at: int, *series: Moved, name: str = ONE) -> None:
        self.add(Event.of(iso_of(NIGHTS[at]), "detector", ledgers.JOINED, name, Joined(series)))

    def changes(self, at: int, state: str, name: str = ONE, *, who: str = "detector", words: str = "") -> None:
        self.add(ledgers.changed(name, state, at=iso_of(NIGHTS[at]), who=who, words=words))

    def silences(self, at: int, until: int, pattern: str = "*") -> None:
        told = Silenced(pattern, iso_of(NIGHTS[until]), "")
        self.add(Event.of(iso_of(NIGHTS[at]), "ann", ledgers.SILENCED, "", told))

    def judged(self, at: int, level: Level, headline: str, lead: str = "") -> None:
        verdict.write_verdict(self.home, NightVerdict(NIGHTS[at], level, headline, lead=lead))

    def configure(self) -> None:
        self.home.config_file.parent.mkdir(parents=True, exist_ok=True)
        value: Mapping[str, Any] = {**FOLDERS, "website_url": SITE, "routes": self.routes, "owners": self.owners}
        common.write_json(self.home.config_file, value)

    def leave_night(self, at: int) -> None:
        self.home.nights.mkdir(parents=True, exist_ok=True)
        night = Night(NIGHTS[at], COMPLETE, jobs=tuple(self.jobs))
        common.write_json(self.home.night_file(NIGHTS[at]), night.to_json())

    def tell(self, at: int, clock: str = "") -> Told:
        """What the one route was told after a night, at a time of that day (UTC)."""
        (told,) = self.tell_all(at, clock)
        return told

    def tell_all(self, at: int, clock: str = "") -> list[Told]:
        self.configure()
        self.leave_night(at)
        moment = common.parse_stamp(NIGHTS[at])
        if clock:
            hour, minute = map(int, clock.split(":"))
            moment = moment.replace(hour=hour, minute=minute)
        return tell_routes(self.home, NIGHTS[at], moment)
