"""The home's sources on its TVMs: the nights' records and data, and trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tvmdash import records
from tvmdash.dashboard_info import Home, variant_of
from tvmdash.errors import DashboardError
from tvmdash.incidents import annotations as annotation_file
from tvmdash.records import Build, NightData
from tvmdash.series import store
from tvmdash.series.store import Series
from tvmdash.signoff.tvms import ArtifactFacts, HomeTvms, group_facts
from tvmdash.trials import files as trial_files
from tvmdash.trials.trial import Trial, TrialKind


@dataclass
class ExperimentNights:
    """An experiment in the index: series with their points, and by stamp the TVMs and builds measured."""

    name: str
    series: list[Series]
    versions: dict[str, str]
    builds: dict[str, Build]


@dataclass
class Sources:
    """All of it, read once. tvms: what these files speak of. faults: what cannot be read of them."""

    home: Home
    experiments: list[ExperimentNights] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    tvms: HomeTvms = field(default_factory=lambda: HomeTvms({}, {}))

    def read_data(self, experiment: str, stamp: str) -> NightData:
        """The data file of a night; one without values where it is damaged."""
        try:
            return records.read_data(self.home.data_file(experiment, stamp), experiment)
        except DashboardError as error:
            self.faults.append(f"Left out: {error}")
            return NightData(experiment, stamp, "", (), (), {})


class _Facts(dict[str, ArtifactFacts]):
    """Facts of each artifact as far as they are read."""

    def __missing__(self, key: str) -> ArtifactFacts:
        return self.setdefault(key, ArtifactFacts(key))


def read_sources(home: Home) -> Sources:
    """Read everything that the home holds; a damaged file costs itself only, and is a fault."""
    found, facts = Sources(home), _Facts()
    found.experiments = [_read_experiment(found, name) for name in home.experiments_with_data()]
    found.trials = list(_read_trials(found))
    _learn_nights(found, facts)
    for done in found.trials:
        for tvm in (done.candidate, done.base):
            facts[tvm.key].add(tvm.version, tvm.commit, names=[tvm.asked, tvm.exact_name])
    found.tvms = _find_tvms(found, facts)
    return found


def _read_experiment(found: Sources, name: str) -> ExperimentNights:
    folder = found.home.data(name)
    with store.open_for_reading(found.home.store_file, folder, name) as index:
        is_whole = set(found.home.data_stamps(name)) == set(index.stamps(name)) | set(index.faults(name))
        nights = _read_index(found, index, name) if is_whole else None
    if nights is None:  # a night was killed before the index had it, or somebody added or removed a file
        with store.open_for_reading(None, folder, name) as index:
            nights = _read_index(found, index, name)
    return nights


def _read_index(found: Sources, index: store.Store, name: str) -> ExperimentNights:
    faults = list(index.faults(name).values())
    if faults:
        more = f" And {len(faults) - 1} more nights of {name} are damaged." if len(faults) > 1 else ""
        found.faults.append(f"Left out: {faults[0]}{more}")
    return ExperimentNights(name, index.series(name), index.versions(name), index.builds(name))


def _read_trials(found: Sources) -> Iterator[Trial]:
    """Yield the trials that say something of two TVMs."""
    for item in trial_files.read_all(found.home):
        if item.result is None:
            found.faults.append(f"Left out: {item.fault} Restore it from the backup, or delete it.")
        elif item.result.kind not in {TrialKind.REPRODUCE, TrialKind.BACKFILL}:
            yield item.result


def _learn_nights(found: Sources, facts: _Facts) -> None:
    for stamp in found.home.night_stamps():
        try:
            night = found.home.read_night(stamp)
        except DashboardError as error:
            found.faults.append(f"Left out: {error}")
            continue
        for entry in night.artifacts:
            fact, asked = facts[str(entry.get("key"))], entry.get("asked") or ()
            names = [str(each.get("branch") or "") for each in asked if isinstance(each, dict)]
            fact.source = fact.source or str((entry.get("facts") or {}).get("source") or "")
            version, commit, provider = (str(entry.get(name) or "") for name in ("version", "commit", "provider"))
            fact.add(version, commit, provider, names)
        for each in night.references:
            facts[each.key].add(each.version, each.commit, each.provider)


def _find_tvms(found: Sources, facts: _Facts) -> HomeTvms:
    at_night: dict[str, set[str]] = {}
    for experiment in found.experiments:
        for stamp, version in experiment.versions.items():
            build = experiment.builds[stamp]
            if not (key := build.artifact or version):
                continue
            # What the running TVM said of itself is a name of it, but may differ from its artifact's version.
            facts[key].add("", names=[version])
            facts[key].said = version
            facts[key].own.add(stamp)
            if not variant_of(experiment.name):
                at_night.setdefault(stamp, set()).add(key)
            if build.reference and build.reference != key:
                facts[build.reference].add(build.reference_version or "")
                facts[build.reference].beside.add(stamp)
    tvms = group_facts(facts.values())
    ids = {key: tvm.id for tvm in tvms.values() for key in tvm.artifacts}
    nights = {stamp: frozenset(ids[key] for key in keys) for stamp, keys in at_night.items()}
    return HomeTvms(tvms, nights, annotation_file.read(found.home.root))
