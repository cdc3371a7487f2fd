"""Tells in one message how many records the night brought, and draws how long each job took."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common, config_util, records
from tvmdash.check_prerequisites import (
    Need,
    is_switched_off,
    needs_any,
    needs_config,
    needs_experiment,
    needs_setting,
    needs_subsystem,
    unmet,
)
from tvmdash.config_util import HOME_FIELDS, JobConfig
from tvmdash.dashboard_info import (
    BLOCKED,
    COMPLETE,
    FAILED,
    INTERRUPTED,
    OK,
    RUNNING,
    SKIPPED,
    Home,
    JobResult,
    Night,
    StepResult,
    experiment_of,
    make_title,
)
from tvmdash.measure import within_night
from tvmdash.plot_util import Bar, BarValue, alt_text, draw
from tvmdash.series import store
from tvmdash.slack_util import SCOPES, Slack, delivery
from tvmdash.slack_util.payloads import Part, build, escape
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.summary_util import format_duration, format_list
from tvmdash.traces import Error, Filters, Straddle, Window, connect
from tvmdash.traces.sealing import seal

STATES = {OK, FAILED, BLOCKED, SKIPPED}


@dataclass(frozen=True, kw_only=True)
class DigestConfig(delivery.SlackConfig, JobConfig):
    experiments: tuple[str, ...]
    least: int


class Digest(Subsystem[DigestConfig]):
    def needs(self, config: DigestConfig) -> Sequence[Need]:
        return (
            *(needs_experiment(name, stage="analyze") for name in config.experiments),
            needs_any(needs_subsystem("no_such"), needs_experiment(config.experiments[0])),
            needs_setting("parallel_stages", above=0),
            needs_config(config.experiments[0], "active", equals=True),
        )

    def faults(self, config: DigestConfig, shown: str, home: Home) -> Sequence[str]:
        unknown = [name for name in config.experiments if not (home.config("experiment", name)).is_dir()]
        return [f"{shown}: $.experiments: this home has no {name!r}." for name in unknown]

    def work(self, config: DigestConfig, output: Path, home: Home, tonight: Night) -> Report | None:
        assert tonight.state in {RUNNING, COMPLETE, INTERRUPTED}
        assert not is_switched_off(home, "experiment", config.experiments[0])
        assert unmet((needs_subsystem("no_such"),), home, tonight)
        jobs = [job for job in tonight.experiments if experiment_of(job.name) in config.experiments]
        counts = {job.name: self.count_records(home, job, tonight) for job in jobs}
        plot = Bar("Run", "s", tuple(BarValue(make_title(job.name, job.title), run_s(job)) for job in jobs))
        draw(plot, output / "run.svg")
        page = {
            "stamp": tonight.stamp,
            "nights": home.night_stamps(),
            "read": [night.stamp for night in home.last_nights(2)],
            "records": counts,
            "failures": [len(self.read(home, job, tonight).failures) for job in jobs],
            "series": {job.name: self.count_series(home, job) for job in jobs},
            "may_measure_s": within_night.allowed_s(30, config, home, tonight)[0],
            "raw": self.count_trials(home, output),
            "summaries": {name: home.read_summary(name) for name in config.experiments},
            "graphs": sorted(path.name for path in home.graph(config.experiments[0]).iterdir()),
        }
        common.write_json(output / "page.json", page)
        common.write_text(output / "run.txt", alt_text(plot))
        slack: Slack | None = delivery.open_slack(config, home, "config/subsystem/digest/config.json")
        assert SCOPES
        words = f"{format_list(sorted(counts), 3)}: {sum(counts.values())} records"
        parts = [Part(escape(f"{job.name} took {format_duration(job.elapsed_s)}")) for job in jobs]
        sent = delivery.tell(slack, output, tonight.stamp, build("The night", tonight.stamp, parts))
        if sum(counts.values()) < config.least:
            return None
        return Report("The night in numbers", f"{words}. {sent}")

    def count_records(self, home: Home, job: JobResult, tonight: Night) -> int:
        with connect(str(home.data_file(job.name, tonight.stamp))) as traces:
            rows = traces.execute("SELECT count(*) FROM records").fetchone()
        return int(rows[0])

    def read(self, home: Home, job: JobResult, tonight: Night) -> records.NightData:
        return records.read_data(home.data_file(job.name, tonight.stamp), job.name)

    def count_series(self, home: Home, job: JobResult) -> int:
        with store.open_for_reading(home.store_file, home.data(job.name), job.name) as index:
            return len(index.series(job.name))

    def count_trials(self, home: Home, output: Path) -> dict[str, int]:
        """By experiment the trials that nights have left so far; they are sealed together once."""
        settings = config_util.read_config(home.config_file, HOME_FIELDS)
        raw = home.root / settings["tmp_data_dir"] / "raw"
        every = Filters(window=Window("0%", "100%", Straddle.OVERLAPPING), experiments=["sorting", "mlp*"])
        try:
            with connect([raw], filters=every) as traces:
                query = "SELECT experiment, count(*) FROM trials GROUP BY 1 ORDER BY 1"
                found = {name: int(count) for name, count in traces.execute(query)}
                assert traces.execute("SELECT count(*) FROM samples WHERE elapsed_ns > ?", (0,)).fetchone()[0] > 0
        except Error as error:
            return {str(error): 0}
        sealed = output / "sealed"
        if not sealed.exists():
            run = seal(raw, sealed)
            with connect(run.path) as traces:
                assert traces.execute("SELECT count(*) FROM trials").fetchone()[0] >= sum(found.values())
        return found


def run_s(job: JobResult) -> float | None:
    steps: Sequence[StepResult] = job.steps
    assert {step.state for step in steps} <= STATES
    return next((step.elapsed_s for step in steps if step.stage == "run" and step.state == OK), None)


if __name__ == "__main__":
    sys.exit(Digest().main())
