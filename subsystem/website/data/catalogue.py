"""All series of the home: what the store holds of each, joined with what the alerts say of it."""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from files.incremental import fingerprint, mark
from views.alerts import Alerts
from views.context import SiteContext
from views.series import SeriesView
from views.tonight import find_measured_elsewhere

from tvmdash import common, config_util
from tvmdash.dashboard_info import Home, Night, experiment_of, make_title
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import MachineIdentity
from tvmdash.series import naming, store
from tvmdash.series.store import Count, Outline, Series, Store
from tvmdash.text import elide

ENDED = "ended"
"""The state of a series without a value for so many nights that no table shows it."""
_PACKED = 8
"""Series of an experiment in one file: the explorer shows neighbours, and nights are written once for all of them."""
_NAME_CHARS = 300
_FASTER = 4
"""Speed of reading all series of an experiment at once over one by one: worth it for a quarter of them."""
_MOST_AT_ONCE = 2_000_000
"""More points are read one by one: at once they take 180 bytes each."""


@dataclass(frozen=True)
class MeasuredNights:
    """The nights of one experiment in one index: their TVM and machine by stamp.

    `born` changes where the index was made anew, for then anything may be different. `upto` maps each stamp to a text
    that changes when a night up to it does.
    """

    born: str
    versions: Mapping[str, str]
    machines: Mapping[str, str]
    upto: Mapping[str, str]

    @classmethod
    def read(cls, opened: Store, experiment: str, born: str) -> MeasuredNights:
        versions, machines = opened.versions(experiment), opened.machines(experiment)
        return cls(born, versions, machines, dict(_running(born, versions, machines)))

    @functools.cached_property
    def stamps(self) -> tuple[str, ...]:
        return tuple(self.upto)

    def last(self, before: str = "~") -> str:
        """Return the last stamp before `before`, "" where there is none."""
        index = bisect.bisect_left(self.stamps, before)
        return self.stamps[index - 1] if index else ""


def _running(born: str, versions: Mapping[str, str], machines: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    digest = hashlib.sha256(born.encode())
    for stamp, version in versions.items():
        digest.update(f"{stamp}\0{version}\0{machines.get(stamp)}\0".encode("utf-8", errors="surrogatepass"))
        yield stamp, digest.hexdigest()[:20]


NO_NIGHTS = MeasuredNights("", {}, {}, {})


@dataclass(frozen=True)
class CatalogueEntry:
    """One series. `id` names it; `pack`: the file that holds its points; `key` is what the alerts call it.

    `view` is None where it has ended.
    """

    id: str
    pack: str
    key: str
    name: str
    outline: Outline
    count: Count
    labels: Mapping[str, str]
    fleet: str
    last: float
    low: float | None
    high: float | None
    view: SeriesView | None

    @property
    def state(self) -> str:
        """In the words of `series_views`, or ended."""
        return self.view.state if self.view else ENDED


@dataclass(frozen=True)
class CatalogueExperiment:
    """An experiment that this home knows or once measured."""

    name: str
    title: str
    active: bool
    nights: MeasuredNights
    failures: int
    """Points that failed tonight."""

    @property
    def page(self) -> str:
        return f"experiments/{common.safe_name(self.name)}.html"


class Stores:
    """The index of the home, or, where it is missing or damaged, one of each experiment's data files; read only."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._stack = ExitStack()
        self._open: dict[str, Store] = {}
        self._whole: Store | None = None
        """The home's index, open once for all experiments: each connection to it takes 0.25 MB."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, experiment: str) -> Store:
        """Open the index that holds an experiment's points."""
        if self._whole is not None:
            return self._whole
        if experiment not in self._open:
            reading = store.open_for_reading(self._home.store_file, self._home.data(experiment), experiment)
            opened = self._open[experiment] = self._stack.enter_context(reading)
            if not opened.in_memory:
                self._whole = opened
        return self._open[experiment]

    def nights(self, experiment: str) -> MeasuredNights:
        """Read the nights on which the experiment has readable data."""
        folder = self._home.data(experiment)
        if self.of(experiment).in_memory:  # made anew each time; the files tell whether it is the same
            born = fingerprint(*(f"{path.name} {mark(path)}" for path in sorted(folder.glob("data_*.json"))))
        else:
            born = self.of(experiment).born
        return MeasuredNights.read(self.of(experiment), experiment, born)

    def points(
        self, experiment: str, outlines: Sequence[Outline], since: str, until: str, *, many: bool
    ) -> Iterator[Series]:
        """Yield series of an experiment in their order, with the points from the stamp `since` on and before `until`.

        many: whether so much is read that it is worth loading numpy.
        """
        opened = self.of(experiment)
        faster = many and _FASTER * len(outlines) >= opened.size(experiment)
        if faster and opened.points_between(experiment, since, until) <= _MOST_AT_ONCE:
            by_id = {(series.id, series.unit): series for series in opened.series(experiment, since=since, until=until)}
            # each is forgotten once it is written
            yield from (by_id.pop((outline.id, outline.unit)) for outline in outlines)
        else:
            yield from (opened.points_of(outline, since=since, until=until) for outline in outlines)


@dataclass(frozen=True)
class SiteCatalogue:
    """The series, what needs attention first. `boundary`: the stamp that parts recent points from past ones."""

    entries: tuple[CatalogueEntry, ...]
    experiments: Mapping[str, CatalogueExperiment]
    alerts: Alerts
    boundary: str


def boundary_of(tonight: str) -> str:
    return f"{int(tonight[:4]) - 1:04}0101T000000Z"


def read_catalogue(site: SiteContext, stores: Stores) -> SiteCatalogue:
    """Read every series that ever had a value, whether or not it still has."""
    boundary = boundary_of(site.tonight.stamp)
    views = {view.id: view for view in site.series}
    entries: list[CatalogueEntry] = []
    experiments: dict[str, CatalogueExperiment] = {}
    titles, machine = _titles(site.home, site.tonight), site.home.machine()
    measured = site.home.experiments_with_data()
    for name in dict.fromkeys([*sorted(titles), *measured]):
        title, active = titles.get(name) or (_title_elsewhere(name, titles), False)
        nights, failures = NO_NIGHTS, 0
        if name in measured:
            opened, nights = stores.of(name), stores.nights(name)
            entries += _entries(opened, name, opened.counts(name, year=boundary[:4]), views, machine)
            failures = opened.failures(name).get(site.tonight.stamp, 0)
        experiments[name] = CatalogueExperiment(name, elide(title, _NAME_CHARS), active, nights, failures)
    position = {key: at for at, key in enumerate(views)}
    entries.sort(key=lambda entry: position.get(entry.key, len(position)))
    return SiteCatalogue(tuple(entries), experiments, site.alerts, boundary)


def _title_elsewhere(name: str, titles: Mapping[str, tuple[str, bool]]) -> str:
    """Find the title of an experiment that took no part tonight on this host or TVM, by its config."""
    known = titles.get(experiment_of(name))
    return make_title(name, known[0]) if known else name


def _titles(home: Home, tonight: Night) -> dict[str, tuple[str, bool]]:
    """Read the titles of the experiments that the config knows or that took part tonight, and whether active."""
    titles = {}
    elsewhere = find_measured_elsewhere(home, tonight)
    folder = home.configs("experiment")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name in elsewhere:
            continue
        with contextlib.suppress(DashboardError):  # the precheck tells what is wrong with a config
            config = common.read_json(path / config_util.CONFIG_FILE, max_bytes=4 << 20)
            if isinstance(config, dict):
                title = config.get("title")
                titles[path.name] = (title if isinstance(title, str) and title else path.name, False)
    titles.update({job.name: (job.title, True) for job in tonight.experiments})
    return titles


def _entries(
    opened: Store,
    experiment: str,
    counts: Mapping[int, Count],
    views: Mapping[str, SeriesView],
    machine: MachineIdentity | None,
) -> Iterator[CatalogueEntry]:
    outlines = opened.outlines(experiment)
    keys, names = naming.keys(outlines), naming.names(outlines)
    for at, (outline, key, name) in enumerate(zip(outlines, keys, names, strict=True)):
        count, view = counts.get(outline.number), views.get(key)
        if count is None:
            continue
        last, low, high = (view.last, view.low, view.high) if view else _last(opened, outline, count.last_stamp)
        yield CatalogueEntry(
            id=naming.file_name_of(key),
            pack=f"{common.safe_name(experiment)}-{at // _PACKED}",
            key=key,
            name=elide(view.name if view else name, _NAME_CHARS),
            outline=outline,
            count=count,
            labels=dict(flat_labels(outline.labels)),
            fleet=naming.fleet(outline, machine),
            last=last,
            low=low,
            high=high,
            view=view,
        )


def _last(opened: Store, outline: Outline, stamp: str) -> tuple[float, float | None, float | None]:
    point = opened.points_of(outline, since=stamp)
    return point.values[-1], point.low[-1], point.high[-1]


def flat_labels(labels: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Flatten labels to text, as in ("workload", "network.mlp"), ("opt_level", "3").

    What lies in a column of parameters stands by its own name; behind its column's name where another column has it.
    """
    seen: set[str] = {key for key, value in labels.items() if not isinstance(value, Mapping)}
    for column, value in sorted(labels.items(), key=lambda item: item[0] != "workload"):
        if not isinstance(value, Mapping):
            yield column, _text(value)
            continue
        for name, item in value.items():
            yield (str(name) if name not in seen else f"{column}.{name}"), _text(item)
            seen.add(name)


def _text(value: object) -> str:
    return elide(value if isinstance(value, str) else str(value), _NAME_CHARS)
