"""Everything of a home but its measurements, taken into its index: nights, verdicts, incidents, trials, messages.

All in one transaction: who reads meanwhile sees what was there before. A file is read again once it is another one.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tvmdash import common, verdict
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import OK, SKIPPED, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as incidents
from tvmdash.incidents.headline import format_headline
from tvmdash.notify import slack_history
from tvmdash.notify.message import OUTBOX_FILE, Kept
from tvmdash.notify.state import ROUTES_FILE, SUBSYSTEM
from tvmdash.records.metrics import RATIOS
from tvmdash.series import naming
from tvmdash.series.store import Outline, Store
from tvmdash.trials import files as trial_files
from tvmdash.verdict import ledger, remeasured

_MOST_WORDS = 500
_SETTLED = ("sent", "refused", "given_up")
"""The states of what is not tried again."""
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
        _once(opened, incident_file.file_of(home), _take_incidents)
        for folder in trial_files.FOLDERS:  # before they are listed: what comes meanwhile is seen later
            opened.mark_taken(home.root / "results" / folder)
        for path in (*trial_files.list_old_files(home), *trial_files.list_files(home)):
            _once(opened, path, _take_trial)
        for path in sorted((home.output(verdict.SUBSYSTEM) / remeasured.FOLDER).glob("*.json")):
            _once(opened, path, _take_remeasured)
        for path in _list_message_files(home):
            _once(opened, path, functools.partial(_take_messages, home))


def is_behind(home: Home, opened: Store) -> bool:
    """Return True where people or commands did something since the index was brought up to date."""
    folders = (home.root / "results" / folder for folder in trial_files.FOLDERS)
    changeable = (*ledger.list_files(home)[-1:], incident_file.file_of(home), *folders)
    return any(path.exists() and not opened.is_taken(path) for path in changeable)


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
        (each.number, key, name, naming.workload_of(each), naming.machine_of(each.labels), None)
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


def _set_night(connection: sqlite3.Connection, night: str, columns: str, values: tuple[Any, ...]) -> None:
    """Say something of a night, of which other files say the rest."""
    connection.execute("INSERT OR IGNORE INTO nights (night) VALUES (?)", (night,))
    places = ", ".join("?" * len(values))
    connection.execute(f"UPDATE nights SET ({columns}) = ({places}) WHERE night = ?", (*values, night))  # noqa: S608


def _take_night(connection: sqlite3.Connection, path: Path) -> None:
    night = Night.from_json(common.read_json(path), path)
    failed = [job for job in night.jobs if not job.well]
    points = sum(job.failed_points for job in night.jobs)
    machine = night.machine.name if night.machine else None
    columns = "state, ended, elapsed_s, machine, jobs, failed_jobs, failed_points"
    facts = (night.state, night.ended, night.elapsed_s, machine, len(night.jobs), len(failed), points)
    _set_night(connection, night.stamp, columns, facts)
    connection.execute("DELETE FROM failures WHERE night = ?", (night.stamp,))
    for job in failed:
        for step in job.steps:
            if step.state not in {OK, SKIPPED} or step.failed_points:
                message = step.message[:_MOST_WORDS]
                row = (night.stamp, job.name, step.stage, step.state, message, step.failed_points)
                connection.execute("INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("DELETE FROM _artifacts WHERE night = ?", (night.stamp,))
    of_night = (
        (night.stamp, *(_text(artifact.get(name)) for name in ("key", "provider", "version", "commit")),
         _text(common.object_in(artifact, "facts").get("committed_utc")))
        for artifact in night.artifacts
    )  # fmt: skip
    _insert(connection, "_artifacts", of_night)


def _text(value: common.Json) -> str | None:
    return value if isinstance(value, str) else None


def _take_decisions(connection: sqlite3.Connection, path: Path) -> None:
    """Take in a month of the ledger; of several verdicts and pages of one night the last one counts."""
    read = list(ledger.read_file(path))
    last = {(line.night, line.kind): line for line in read if line.kind != ledger.MESSAGES}
    numbers = dict(connection.execute("SELECT key, number FROM _names"))
    for line in (*last.values(), *(line for line in read if line.kind == ledger.MESSAGES)):
        night, data = line.night, line.data
        try:
            if line.kind == ledger.VERDICT:
                _put_verdict(connection, numbers, verdict.KeptVerdict.from_json(data, path), night)
            elif line.kind == ledger.PAGE:
                _put_page(connection, data, night)
            elif line.kind == ledger.MESSAGES:
                _put_messages(connection, _read_settled(path, line))
        except DashboardError as error:  # it costs its own night, not the month
            _log.warning("%s What was decided on %s is missing in the index.", error, night)


def _put_verdict(
    connection: sqlite3.Connection, numbers: Mapping[str, int], kept: verdict.KeptVerdict, night: str
) -> None:
    told = (kept.level, kept.headline, kept.expected, kept.seen, kept.blind)
    _set_night(connection, night, "level, headline, expected, seen, blind", told)
    connection.execute("INSERT OR IGNORE INTO _judged (night) VALUES (?)", (night,))
    (judged,) = connection.execute("SELECT number FROM _judged WHERE night = ?", (night,)).fetchone()
    connection.execute("DELETE FROM _verdicts WHERE judged = ?", (judged,))
    rows = (
        (judged, numbers[each.series], _STANDINGS.index(each.standing),
         each.evidence and _EVIDENCES.index(each.evidence),
         *(part and round(part * 1e7) for part in (each.effect, each.low, each.high, each.visible)), each.incident)
        for each in kept.series if each.series in numbers
    )  # fmt: skip
    _insert(connection, "_verdicts", rows)


def _put_page(connection: sqlite3.Connection, data: Mapping[str, Any], night: str) -> None:
    connection.execute("INSERT OR REPLACE INTO _pages VALUES (?, ?)", (night, json.dumps(data)))
    sentence = data.get("sentence")
    words = _text(sentence[-1]) if isinstance(sentence, list) and sentence else None
    _set_night(connection, night, "sentence", (words,))


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


_Trial = tuple[str, str | None, str, tuple[str, str], float | None, Iterable[tuple[Any, ...]]]
"""Its kind, night, state and two sides, the seconds it measured, and its series' rows."""


def _take_trial(connection: sqlite3.Connection, path: Path) -> None:
    done = trial_files.load(path)
    sides = (done.base.exact_name, done.candidate.exact_name)
    rows = (
        (each.id, each.name, each.change.effect, each.change.low, each.change.high, each.change.pairs)
        for each in done.series
        if each.change
    )
    _put_trial(connection, path, (done.kind, done.stamp or None, done.outcome, sides, done.measured_s, rows))


def _take_remeasured(connection: sqlite3.Connection, path: Path) -> None:
    """Take in a trial for each artifact that stat_alerts measured again, beside another one or alone."""
    done = structured.from_json(remeasured.Remeasured, common.read_json(path), path)
    runs_of: dict[tuple[str, str], list[remeasured.Run]] = {}
    for run in done.runs:
        runs_of.setdefault((run.beside, run.artifact), []).append(run)
    for number, (sides, runs) in enumerate(runs_of.items()):
        names = sorted({series for run in runs for series in run.ratios})
        rows = ((series, "", *_pool([run.ratios[series] for run in runs if series in run.ratios])) for series in names)
        seconds = sum(run.seconds for run in runs)
        _put_trial(connection, path, ("remeasure", done.night, done.ended, sides, seconds, rows), f" {number}")


def _pool(ratios: Iterable[remeasured.RatioRun]) -> tuple[float, None, None, int]:
    """The effect over all pairs, and how many there are; what it is sure of is the judge's to say."""
    logs = [(ratio.log * ratio.pairs, ratio.pairs) for ratio in ratios]
    pairs = sum(count for _, count in logs)
    return math.expm1(sum(log for log, _ in logs) / pairs) if pairs else 0.0, None, None, pairs


def _put_trial(connection: sqlite3.Connection, path: Path, done: _Trial, part: str = "") -> None:
    kind, stamp, state, sides, measured_s, rows = done
    trial = f"{kind} {path.stem}{part}"
    file = path.as_posix()[path.as_posix().rindex("/results/") + 1 :]
    _insert(connection, "trials", [(trial, kind, stamp, state, *sides, measured_s, file)])
    connection.execute("DELETE FROM trial_series WHERE trial = ?", (trial,))
    _insert(connection, "trial_series", ((trial, *row) for row in rows if row[0]))


def _take_messages(home: Home, connection: sqlite3.Connection, path: Path) -> None:
    """Take in those of a file of today; what it has forgotten is in the ledger, unless it was never settled."""
    read = _read_messages(path, home)
    marks = ", ".join("?" * len(_SETTLED))
    unsettled = f"DELETE FROM messages WHERE route = ? AND state NOT IN ({marks})"  # noqa: S608 - question marks
    connection.execute(unsettled, (_route_of(home, path), *_SETTLED))
    _put_messages(connection, read)


def _put_messages(connection: sqlite3.Connection, messages: Iterable[_Message]) -> None:
    _insert(connection, "messages", map(astuple, messages))


@dataclass(frozen=True)
class _Message:
    """A message of a route, or in Slack (`slack FOLDER`), and its state; `at` is when it was sent or tried last."""

    route: str
    key: str
    night: Stamp
    state: str
    attempts: int | None = None
    at: str = ""
    why: str = ""


@dataclass(frozen=True)
class _Settled:
    """A line of the ledger: what was settled since the line before."""

    messages: tuple[_Message, ...]


def _list_message_files(home: Home) -> list[Path]:
    """The files that know of messages; routes.json and report.json, which lie beside some, do not."""
    routes, outputs = home.output(SUBSYSTEM), home.output(SUBSYSTEM).parent
    files = [path for path in routes.glob("*.json") if path.name not in {ROUTES_FILE, "report.json"}]
    files += [*routes.glob("channels/*.json"), *outputs.glob(f"*/{OUTBOX_FILE}"), *outputs.glob(f"*/*/*/{OUTBOX_FILE}")]
    return sorted([*files, *outputs.glob(f"*/{slack_history.FILE}"), *outputs.glob(f"*/*/*/{slack_history.FILE}")])


def _route_of(home: Home, path: Path) -> str:
    """Name the route of such a file as the table does."""
    if path.name in (OUTBOX_FILE, slack_history.FILE):
        return f"slack {path.parent.relative_to(home.output(SUBSYSTEM).parent)}"
    return f"slack {path.stem}" if path.parent.name == "channels" else path.stem


def _read_messages(path: Path, home: Home) -> list[_Message]:
    """The messages in one of these files; DashboardError where it is damaged.

    An old file of Slack's stays beside the outbox that carries on what it knows: it tells what was settled by then.
    """
    route, old = _route_of(home, path), path.name == slack_history.FILE  # nobody counted its tries
    if old:
        entries = [entry for entry in slack_history.read_messages(path.parent) if entry.state in _SETTLED]
    else:
        kept = structured.from_json(Kept, common.read_json(path), path)
        entries = [entry for entry in kept.entries if entry.why != slack_history.CARRIED]
    return [
        _Message(
            route, entry.key, entry.night, entry.state, None if old else entry.tries, entry.at, entry.why[:_MOST_WORDS]
        )
        for entry in entries
    ]


def keep_messages(home: Home, night: str) -> None:
    """Put into the ledger, on closing that night, what is settled and not in it; what is damaged is logged."""
    files = _list_message_files(home)
    settled = [each for path in files for each in _read_or_log(path, _read_messages, home) if each.state in _SETTLED]
    first = min((message.night for message in settled), default="")
    known = {
        message
        for path in ledger.list_files(home)
        if path.stem >= f"{first[:4]}-{first[4:6]}"
        for line in ledger.read_file(path, ledger.MESSAGES)
        for message in _read_or_log(path, _read_settled, line)
    }
    if new := tuple(message for message in settled if message not in known):
        ledger.append(home, night, ledger.MESSAGES, structured.to_json(_Settled(new)))


def _read_settled(path: Path, line: ledger.LedgerLine) -> Sequence[_Message]:
    return structured.from_json(_Settled, line.data, path, at="$.data").messages


def _read_or_log(
    path: Path, read: Callable[..., Sequence[_Message]], of: Home | ledger.LedgerLine
) -> Sequence[_Message]:
    try:
        return read(path, of)
    except DashboardError as error:
        _log.warning("%s Its messages are missing in the ledger.", error)
        return ()
