"""The tables of a home's index, results/store.sqlite, and what may be asked of it in SQL.

Names without an underscore are for everybody: they stay, and a column is only ever added. Names with one are how it is
kept, and change with VERSION.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

VERSION = 19

SQL = """
CREATE TABLE _born (name TEXT);
INSERT INTO _born VALUES (hex(randomblob(8)));
CREATE TABLE _taken (source TEXT PRIMARY KEY, mark TEXT) WITHOUT ROWID;

CREATE TABLE runs (night TEXT, experiment TEXT, tvm TEXT, artifact TEXT, fingerprint TEXT, reference TEXT,
    reference_version TEXT, machine TEXT, failures INTEGER, error TEXT, facts INTEGER, PRIMARY KEY (experiment, night))
    WITHOUT ROWID;
CREATE TABLE machines (facts INTEGER PRIMARY KEY, json TEXT);
CREATE TABLE _series (number INTEGER PRIMARY KEY, id TEXT, experiment TEXT, metric TEXT, unit TEXT,
    direction TEXT, labels TEXT, kind TEXT, title TEXT, tolerance REAL, UNIQUE (id, unit));
CREATE INDEX _series_of ON _series (experiment, metric);
CREATE TABLE _names (number INTEGER PRIMARY KEY, key TEXT UNIQUE, name TEXT, workload TEXT, machine TEXT,
    ratio_of INTEGER);
CREATE TABLE _packed (experiment TEXT, stamp TEXT, points BLOB, PRIMARY KEY (experiment, stamp));
CREATE TABLE _points (series INTEGER, stamp TEXT, value REAL, std REAL, low REAL, high REAL, samples INTEGER,
    code INTEGER, alike INTEGER, content INTEGER, PRIMARY KEY (series, stamp)) WITHOUT ROWID;

CREATE TABLE _counts (series INTEGER, year TEXT, points INTEGER, first TEXT, last TEXT, PRIMARY KEY (series, year))
    WITHOUT ROWID;

CREATE VIEW series AS SELECT key AS series, name, experiment, workload, metric, unit, direction, kind, machine, labels,
    (SELECT min(first) FROM _counts WHERE series = number) AS first_night,
    (SELECT max(last) FROM _counts WHERE series = number) AS last_night,
    (SELECT sum(points) FROM _counts WHERE series = number) AS nights
    FROM _series JOIN _names USING (number) WHERE ratio_of IS NULL;
CREATE VIEW measurements AS SELECT key AS series, stamp AS night, value, unit, low, high, std, samples, tvm, artifact,
    code, content FROM _points JOIN _names ON number = series JOIN _series USING (number)
    LEFT JOIN runs ON runs.experiment = _series.experiment AND night = stamp WHERE ratio_of IS NULL;
CREATE VIEW ratios AS SELECT measured.key AS series, stamp AS night, value AS ratio, low, high, std, samples AS pairs,
    tvm, artifact, reference, reference_version FROM _names AS own JOIN _points ON series = own.number
    JOIN _series USING (number) JOIN _names AS measured ON measured.number = own.ratio_of
    LEFT JOIN runs ON runs.experiment = _series.experiment AND night = stamp;

CREATE TABLE nights (night TEXT PRIMARY KEY, state TEXT, ended TEXT, elapsed_s REAL, machine TEXT, jobs INTEGER,
    failed_jobs INTEGER, failed_points INTEGER, level TEXT, headline TEXT, expected INTEGER, seen INTEGER,
    blind INTEGER, sentence TEXT) WITHOUT ROWID;
CREATE TABLE _pages (night TEXT PRIMARY KEY, page TEXT) WITHOUT ROWID;
CREATE TABLE failures (night TEXT, job TEXT, stage TEXT, state TEXT, message TEXT, failed_points INTEGER);
CREATE INDEX _failures_of ON failures (night);
CREATE TABLE _artifacts (night TEXT, artifact TEXT, provider TEXT, version TEXT, commit_id TEXT, commit_time TEXT,
    PRIMARY KEY (night, artifact)) WITHOUT ROWID;
CREATE INDEX _nights_of_artifact ON _artifacts (artifact);
CREATE VIEW tvms AS SELECT artifact, provider, version, commit_id AS "commit", commit_time, min(night) AS first_night,
    max(night) AS last_night, count(*) AS nights FROM _artifacts GROUP BY artifact;

CREATE TABLE _judged (number INTEGER PRIMARY KEY, night TEXT UNIQUE);
-- Half of what a night adds were verdicts: their night is a number, and their fractions are ten-millionths.
CREATE TABLE _verdicts (judged INTEGER, series INTEGER, standing INTEGER, evidence INTEGER, effect INTEGER, low INTEGER,
    high INTEGER, visible INTEGER, incident TEXT, PRIMARY KEY (judged, series)) WITHOUT ROWID;
CREATE INDEX _standing_of ON _verdicts (series, judged);
CREATE TABLE _standings (number INTEGER PRIMARY KEY, word TEXT);
CREATE TABLE _evidences (number INTEGER PRIMARY KEY, word TEXT);
-- A word that is not asked for is not looked up: joined, the newest night of ten years' verdicts took six seconds.
CREATE VIEW verdicts AS SELECT night, key AS series, (SELECT word FROM _standings WHERE number = standing) AS standing,
    (SELECT word FROM _evidences WHERE number = evidence) AS evidence, effect / 1e7 AS effect, low / 1e7 AS low,
    high / 1e7 AS high, visible / 1e7 AS visible, incident FROM _verdicts
    JOIN _judged ON _judged.number = judged JOIN _names ON _names.number = series;

CREATE TABLE incidents (incident TEXT PRIMARY KEY, kind TEXT, state TEXT, is_open INTEGER, way TEXT, begin TEXT,
    after TEXT, found TEXT, ended TEXT, version_before TEXT, version_since TEXT, artifact_before TEXT,
    artifact_since TEXT, whose TEXT, series INTEGER, effect REAL, words TEXT) WITHOUT ROWID;
CREATE TABLE _moved (incident TEXT, series TEXT, way TEXT, before REAL, after REAL, effect REAL, low REAL, high REAL,
    relative INTEGER, joined TEXT, recovered TEXT, PRIMARY KEY (incident, series)) WITHOUT ROWID;
CREATE INDEX _moved_of ON _moved (series);
CREATE VIEW incident_series AS SELECT * FROM _moved;
CREATE TABLE decisions (at TEXT, who TEXT, incident TEXT, event TEXT, state TEXT, words TEXT);
CREATE VIEW levels AS
    SELECT _moved.series, begin AS since, recovered AS until, _moved.before AS level_before, _moved.after AS level,
    _moved.effect, _moved.incident FROM _moved JOIN incidents ON incidents.incident = _moved.incident;

CREATE TABLE trials (trial TEXT PRIMARY KEY, kind TEXT, night TEXT, state TEXT, a TEXT, b TEXT, measured_s REAL,
    file TEXT) WITHOUT ROWID;
CREATE TABLE trial_series (trial TEXT, series TEXT, name TEXT, effect REAL, low REAL, high REAL, pairs INTEGER,
    PRIMARY KEY (trial, series)) WITHOUT ROWID;
CREATE TABLE messages (route TEXT, "key" TEXT, night TEXT, state TEXT, attempts INTEGER, at TEXT, why TEXT,
    PRIMARY KEY (route, "key")) WITHOUT ROWID;
"""

PUBLIC: Mapping[str, str] = MappingProxyType(
    {
        "series": "a number that is followed from night to night. `series` is its key in all tables",
        "measurements": "a series' value of a night, its 95 % interval, and the TVM",
        "ratios": "tonight's TVM divided by the reference, measured in turn: 1.05 takes 5 % longer",
        "levels": "a step that was told: from which night on, until when, from what to what",
        "verdicts": "how a series stood on a night. `effect`, `low`, `high` are fractions",
        "incidents": "an incident as it is now",
        "incident_series": "a series of an incident",
        "decisions": "what people and the detector said of incidents, line by line",
        "nights": "a night: how it went, the message's headline, the first page's sentence",
        "runs": "an experiment of a night: which TVM beside which reference; `error` where its data cannot be read",
        "machines": "what runs said of their machine: `json_extract(json, '$.governor')`. `facts` is the key in `runs`",
        "failures": "a stage that did not go well, or left failed points",
        "tvms": "a build of TVM that nights had",
        "trials": "a `try`, `compare`, `bisect`, `reproduce`, `backfill`; `remeasure`: what a night measured again",
        "trial_series": "what one said of a series: `b` against `a`, as a fraction",
        "messages": "a message of a route, or in Slack (`slack FOLDER`), and how far it came",
    }
)
"""The tables for everybody, and what a row is."""
