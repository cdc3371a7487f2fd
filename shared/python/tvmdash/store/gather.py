"""Everything of a home but its measurements, taken into its index: nights, verdicts, incidents, trials, messages.

All in one transaction: who reads meanwhile sees what was there before. A file is read again once it is another one.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tvmdash import common, ledger, structured, verdict
from tvmdash.backfill.calls import Call
from tvmdash.contracts.bisection import Bisection
from tvmdash.contracts.comparisons import ComparisonFile
from tvmdash.contracts.reproduction import ReproductionResult
from tvmdash.contracts.tries import Try
from tvmdash.dashboard_info import OK, SKIPPED, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as incidents
from tvmdash.incidents.headline import format_headline
from tvmdash.records.metrics import RATIOS
from tvmdash.routes.record import Kept
from tvmdash.series import across, naming
from tvmdash.series.store import Outline, Store

_MOST_WORDS = 500
_STANDINGS, _EVIDENCES = list(verdict.Standing), list(verdict.Evidence)
"""A verdict's words by the numbers that stand for them in the index."""
_log = logging.getLogger("store")


def take_in(home: Home, opened: Store) -> None:
    """Bring the index up to date with the home's files; what cannot be read is logged and left out."""
    with opened.connection:
        for table, words in (("_standings", _STANDINGS), ("_evidences", _EVIDENCES)):
            _insert(opened.connection, table, ((number, str(word)) for number, word in enumerate(words)))
        _name_series(home, opened)
        for stamp in home.night_stamps():
            _once(opened, home.night_file(stamp), _take_night)
        for path in ledger.list_files(home):
            _once(opened, path, _take_decisions)
        _once(opened, home.output(verdict.SUBSYSTEM) / incidents.LEDGER_FILE, _take_incidents)
        for folder, take in _TRIALS.items():
            for path in sorted((home.root / "results" / folder).glob("*.json")):
                _once(opened, path, take)
        for path in sorted(home.output("routes").glob("*.json")):
            _once(opened, path, _take_messages)


def _once(opened: Store, path: Path, take: Callable[[sqlite3.Connection, Path], None]) -> None:
    """Call `take` for a file that is not in yet, or another than when it was."""
    if not path.is_file() or opened.is_taken(path):
        return
    try:
        take(opened.connection, path)
    except DashboardError as error:
        _log.warning("%s It is missing in the index.", error)
    opened.mark_taken(path)


def _name_series(home: Home, opened: Store) -> None:
    """The keys and names of all series, which depend on one another; ratios point at what they are ratios of."""
    outlines = [outline for name in home.experiments_with_data() for outline in opened.outlines(name)]
    measured = [outline for outline in outlines if outline.metric not in RATIOS]
    keys, names = naming.keys(measured), naming.names(measured)
    number_of = {(*_point(outline), outline.metric): outline.number for outline in measured}
    rows: list[tuple[Any, ...]] = [
        (each.number, key, name, naming.workload_of(each), across.machine_of(each.labels), None)
        for each, key, name in zip(measured, keys, names, strict=True)
    ]
    for each in outlines:
        if each.metric in RATIOS:
            of = number_of.get((*_point(each), RATIOS[each.metric]), 0)
            rows.append((each.number, f"ratio {each.number}", "", "", "", of))
    if set(rows) != set(opened.connection.execute("SELECT * FROM _names")):
        opened.connection.execute("DELETE FROM _names")
        _insert(opened.connection, "_names", rows)


def _point(outline: Outline) -> tuple[str, str]:
    return outline.experiment, json.dumps(outline.labels, sort_keys=True)


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    for row in rows:
        places = ", ".join("?" * len(row))
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", row)  # noqa: S608 - our own words


def _take_night(connection: sqlite3.Connection, path: Path) -> None:
    night = Night.from_json(common.read_json(path), path)
    failed = [job for job in night.jobs if not job.well]
    points = sum(job.failed_points for job in night.jobs)
    machine = night.machine.name if night.machine else None
    facts = (night.state, night.ended, night.elapsed_s, machine, len(night.jobs), len(failed), points)
    connection.execute(
        "INSERT INTO nights (night, state, ended, elapsed_s, machine, jobs, failed_jobs, failed_points)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (night) DO UPDATE SET (state, ended, elapsed_s, machine, jobs,"
        " failed_jobs, failed_points) = (excluded.state, excluded.ended, excluded.elapsed_s, excluded.machine,"
        " excluded.jobs, excluded.failed_jobs, excluded.failed_points)",
        (night.stamp, *facts),
    )
    connection.execute("DELETE FROM failures WHERE night = ?", (night.stamp,))
    for job in failed:
        for step in job.steps:
            if step.state not in {OK, SKIPPED} or step.failed_points:
                message = step.message[:_MOST_WORDS]
                row = (night.stamp, job.name, step.stage, step.state, message, step.failed_points)
                connection.execute("INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("DELETE FROM _artifacts WHERE night = ?", (night.stamp,))
    of_night = (
        (night.stamp, *(_text(artifact.get(name)) for name in ("key", "provider", "version", "commit", "commit_time")))
        for artifact in night.artifacts
    )
    _insert(connection, "_artifacts", of_night)


def _text(value: common.Json) -> str | None:
    return value if isinstance(value, str) else None


def _take_decisions(connection: sqlite3.Connection, path: Path) -> None:
    """A month of the ledger; of several lines about one night the last one counts."""
    last = {(line.night, line.kind): line.data for line in ledger.read_file(path)}
    numbers = dict(connection.execute("SELECT key, number FROM _names"))
    for (night, kind), data in last.items():
        try:
            if kind == ledger.VERDICT:
                _put_verdict(connection, numbers, verdict.KeptVerdict.from_json(data, path), night)
            elif kind == ledger.PAGE:
                _put_page(connection, data, night)
        except DashboardError as error:  # it costs its own night, not the month
            _log.warning("%s What was decided on %s is missing in the index.", error, night)


def _put_verdict(
    connection: sqlite3.Connection, numbers: Mapping[str, int], kept: verdict.KeptVerdict, night: str
) -> None:
    told = (kept.level, kept.headline, kept.expected, kept.seen, kept.blind)
    connection.execute(
        "INSERT INTO nights (night, level, headline, expected, seen, blind) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (night) DO UPDATE SET (level, headline, expected, seen, blind) ="
        " (excluded.level, excluded.headline, excluded.expected, excluded.seen, excluded.blind)",
        (night, *told),
    )
    connection.execute("DELETE FROM _verdicts WHERE night = ?", (night,))
    rows = (
        (night, numbers[each.series], _STANDINGS.index(each.standing),
         each.evidence and _EVIDENCES.index(each.evidence), each.effect,
         each.low, each.high, each.visible, each.incident)
        for each in kept.series if each.series in numbers
    )  # fmt: skip
    _insert(connection, "_verdicts", rows)


def _put_page(connection: sqlite3.Connection, data: Mapping[str, Any], night: str) -> None:
    connection.execute("INSERT OR REPLACE INTO _pages VALUES (?, ?)", (night, json.dumps(data)))
    sentence = data.get("sentence")
    words = _text(sentence[-1]) if isinstance(sentence, list) and sentence else None
    connection.execute(
        "INSERT INTO nights (night, sentence) VALUES (?, ?)"
        " ON CONFLICT (night) DO UPDATE SET sentence = excluded.sentence",
        (night, words),
    )


def _take_incidents(connection: sqlite3.Connection, path: Path) -> None:
    events = incident_file.read(path)
    for table in ("incidents", "_moved", "decisions"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own words
    for incident in incidents.fold(events).incidents.values():
        _insert(connection, "incidents", [_row_of(incident)])
        rows = (
            (incident.id, each.series, each.way, each.before, each.after, each.effect, each.low, each.high,
             int(each.relative), each.joined, each.recovered)
            for each in incident.moved
        )  # fmt: skip
        _insert(connection, "_moved", rows)
    for event in events:
        state, words = (_text(event.data.get(name)) for name in ("state", "words"))
        connection.execute(
            "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)",
            (event.at, event.who, event.incident, event.event, state, words),
        )


def _row_of(incident: incidents.Incident) -> tuple[Any, ...]:
    worst = max((each.effect for each in incident.moved if each.relative), key=abs, default=incident.size)
    whose = incident.cause.whose if incident.cause else incident.blame
    times = (incident.begin, incident.after, incident.found, incident.end)
    tvms = (*incident.versions, *incident.artifacts)
    what = (incident.kind, incident.state, int(incident.is_open), incident.way)
    return incident.id, *what, *times, *tvms, whose, len(incident.moved), worst, format_headline(incident)


def _take_try(connection: sqlite3.Connection, path: Path) -> None:
    done = structured.from_json(Try, common.read_json(path), path)
    rows = (
        (each.id, each.name, each.change.effect, each.change.low, each.change.high, each.change.pairs)
        for each in done.series
        if each.change
    )
    sides = (done.base.exact_name, done.candidate.exact_name)
    _put_trial(connection, path, "try", done.stamp, done.state, sides, done.measured_s, rows)


def _take_comparison(connection: sqlite3.Connection, path: Path) -> None:
    done = structured.from_json(ComparisonFile, common.read_json(path), path)
    rows = (
        (each.id, each.name, found.effect, found.low, found.high, found.rounds)
        for each in done.series
        if (found := each.difference)
    )
    _put_trial(connection, path, "compare", path.stem, "done", (done.a.asked, done.b.asked), done.elapsed_s, rows)


def _take_bisection(connection: sqlite3.Connection, path: Path) -> None:
    done = structured.from_json(Bisection, common.read_json(path), path)
    rows = [(done.series, done.name, done.effect, done.low, done.high, done.measurements // 2)]
    sides = (done.good.id, done.bad.id)
    _put_trial(connection, path, "bisect", None, done.state, sides, done.elapsed_s, rows)


def _take_reproduction(connection: sqlite3.Connection, path: Path) -> None:
    done = structured.from_json(ReproductionResult, common.read_json(path), path)
    rows = ((each.id, each.name, each.found.effect, None, None, len(each.new)) for each in done.lines if each.found)
    tvm = str(done.artifact.get("version", ""))
    _put_trial(connection, path, "reproduce", done.stamp, done.verdict, (tvm, tvm), done.elapsed_s, rows)


def _take_backfill(connection: sqlite3.Connection, path: Path) -> None:
    done = structured.from_json(Call, common.read_json(path), path)
    state = "done" if not done.left else "budget"
    _put_trial(connection, path, "backfill", done.stamp, state, (done.artifacts, ""), done.elapsed_s, ())


def _put_trial(
    connection: sqlite3.Connection,
    path: Path,
    kind: str,
    stamp: str | None,
    state: str,
    sides: tuple[str, ...],
    measured_s: Any,
    rows: Iterable[tuple[Any, ...]],
) -> None:
    trial = f"{kind} {path.stem}"
    file = f"results/{path.parent.name}/{path.name}"
    _insert(connection, "trials", [(trial, kind, stamp, state, *sides, measured_s, file)])
    connection.execute("DELETE FROM trial_series WHERE trial = ?", (trial,))
    _insert(connection, "trial_series", ((trial, *row) for row in rows if row[0]))


_TRIALS: Mapping[str, Callable[[sqlite3.Connection, Path], None]] = {
    "tries": _take_try,
    "comparisons": _take_comparison,
    "bisections": _take_bisection,
    "reproductions": _take_reproduction,
    "backfills": _take_backfill,
}
"""By their folder in `results`."""


def _take_messages(connection: sqlite3.Connection, path: Path) -> None:
    value = common.read_json(path)
    if not (isinstance(value, dict) and "entries" in value):
        return  # routes.json and report.json lie beside the records
    kept = structured.from_json(Kept, value, path)
    rows = (
        (path.stem, entry.key, entry.night, str(entry.state), entry.tries, entry.at, entry.why)
        for entry in kept.entries
    )
    connection.execute("DELETE FROM messages WHERE route = ?", (path.stem,))
    _insert(connection, "messages", rows)
