"""The samples of a run that lie far from their trial's others, with when that was, from the kept raw measurements."""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tvmdash import config_util
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.experiment.paired.pairs import is_of_reference
from tvmdash.measure.capture import Trial, read_trials
from tvmdash.series.naming import label_of

MAX_TOLD = 12
_FEWEST_SAMPLES = 6
_DEVIATIONS = 5.0
_LEAST_EXCESS = 1.10
_MAX_BYTES = 2 << 30
_MAD_TO_STD = 1.4826


@dataclass(frozen=True)
class Outlier:
    """A trial with samples far above its median; raw data tells no closer when they were than that trial's span."""

    label: str
    begin_s: float
    end_s: float
    count: int
    worst_ms: float
    median_ms: float

    @property
    def times(self) -> float:
        """The worst sample over the median."""
        return self.worst_ms / self.median_ms


def find(home: Home, experiment: str, stamp: str, begun_unix_s: float) -> tuple[Outlier, ...]:
    """The trials with outlying samples, the worst first; DashboardError says why that cannot be known."""
    file = _raw_folder(home) / experiment / f"raw_{stamp}.zip"
    if not file.is_file():
        raise DashboardError(f"The raw measurements of {experiment} are not kept ({file}).")
    try:
        with zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory() as folder:
            wanted = [item for item in archive.infolist() if Path(item.filename).match("raw_*.db*")]
            if sum(item.file_size for item in wanted) > _MAX_BYTES:
                raise DashboardError(f"{file}: too large to inspect.")
            archive.extractall(folder, wanted)
            trials = [trial for trial in read_trials(Path(folder)) if not is_of_reference(trial)]
            return outliers(trials, begun_unix_s)
    except (zipfile.BadZipFile, OSError, sqlite3.Error) as error:
        raise DashboardError(f"{file}: cannot be read: {error}.") from error


def _raw_folder(home: Home) -> Path:
    config = config_util.read_config(home.config_file, config_util.HOME_FIELDS)
    return Path(os.path.normpath(home.root / os.path.expanduser(config["tmp_data_dir"]))) / "raw"


def outliers(trials: Iterable[Trial], begun_unix_s: float) -> tuple[Outlier, ...]:
    """The trials with samples more than 5 (robust) standard deviations and 10 % above their median, the worst first."""
    slow = [outlier for trial in trials if (outlier := _outlier(trial, begun_unix_s)) is not None]
    return tuple(sorted(slow, key=lambda outlier: -outlier.times))


def _outlier(trial: Trial, begun_unix_s: float) -> Outlier | None:
    samples = [sample.ms for sample in trial.samples]
    if len(samples) < _FEWEST_SAMPLES:
        return None
    median = statistics.median(samples)
    spread = statistics.median([abs(sample - median) for sample in samples]) * _MAD_TO_STD
    limit = max(median + _DEVIATIONS * spread, median * _LEAST_EXCESS)
    far = [sample for sample in samples if sample > limit]
    if not far:
        return None
    begin, end = (moment / 1e9 - begun_unix_s for moment in (trial.started_ns, trial.ended_ns))
    label = label_of(trial.point["workload"], trial.point["values"])
    return Outlier(label, max(0.0, begin), max(0.0, end), len(far), max(far), median)
