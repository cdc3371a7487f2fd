"""What of a home speaks of its TVMs: the nights' records and data, trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash import records
from tvmdash.dashboard_info import Home, variant_of
from tvmdash.errors import DashboardError
from tvmdash.incidents import annotations as annotation_file
from tvmdash.records import Build, NightData, PointValue
from tvmdash.series import store
from tvmdash.series.store import Series
from tvmdash.signoff.tvms import ArtifactFacts, HomeTvms, group_facts
from tvmdash.trials import files as trial_files
from tvmdash.trials.trial import Trial, TrialKind


@dataclass
class ExperimentNights:
    """What the index holds of an experiment: series with their points, and by stamp what was measured."""

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
    facts: dict[str, ArtifactFacts] = field(default_factory=dict)
    tvms: HomeTvms = field(default_factory=lambda: HomeTvms({}, {}))

    def fact(self, key: str) -> ArtifactFacts:
        """What is known of the artifact up to now."""
        return self.facts.setdefault(key, ArtifactFacts(key))

    def read_points(self, experiment: str, stamp: str) -> list[PointValue]:
        """All that the data file of a night holds; nothing where it is damaged."""
        return list(self.read_data(experiment, stamp).values())

    def read_data(self, experiment: str, stamp: str) -> NightData:
        """The data file of a night; one without values where it is damaged."""
        path = self.home.data_file(experiment, stamp)
        try:
            return records.read_data(path, experiment)
        except DashboardError as error:
            self.faults.append(f"Left out: {error}")
            return NightData(experiment, stamp, "", (), (), {})


def read_sources(home: Home) -> Sources:
    """Everything that the home holds; a damaged file costs itself only, and is a fault."""
    found = Sources(home)
    found.experiments = [_read_experiment(found, name) for name in home.experiments_with_data()]
    found.trials = list(_read_trials(found))
    _learn_nights(found)
    for done in found.trials:
        for tvm in (done.candidate, done.base):
            found.fact(tvm.key).add(version=tvm.version, commit=tvm.commit, names=[tvm.asked, tvm.exact_name])
    found.tvms = _find_tvms(found)
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
    """Those that say something of two TVMs."""
    for item in trial_files.read_all(found.home):
        if item.result is None:
            found.faults.append(f"Left out: {item.fault} Restore it from the backup, or delete it.")
        elif item.result.kind not in {TrialKind.REPRODUCE, TrialKind.BACKFILL}:
            yield item.result


def _learn_nights(found: Sources) -> None:
    for stamp in found.home.night_stamps():
        try:
            night = found.home.read_night(stamp)
        except DashboardError as error:
            found.faults.append(f"Left out: {error}")
            continue
        for entry in night.artifacts:
            asked = entry.get("asked") or ()
            names = [str(each["branch"]) for each in asked if isinstance(each, dict) and each.get("branch")]
            found.fact(str(entry.get("key"))).add(**_read_facts(entry), names=names)
        for each in night.references:
            found.fact(each.key).add(provider=each.provider, version=each.version, commit=each.commit)


def _read_facts(artifact: Mapping[str, Any]) -> dict[str, str]:
    facts = {name: str(artifact.get(name) or "") for name in ("provider", "version", "commit")}
    return {**facts, "source": str((artifact.get("facts") or {}).get("source") or "")}


def _find_tvms(found: Sources) -> HomeTvms:
    own, beside, at_night = (
        defaultdict[str, set[str]](set),
        defaultdict[str, set[str]](set),
        defaultdict[str, set[str]](set),
    )
    for experiment in found.experiments:
        for stamp, version in experiment.versions.items():
            build = experiment.builds.get(stamp, Build())
            key = build.artifact or version
            if not key:
                continue
            found.fact(key).add(names=[version])
            found.fact(key).said = version
            own[key].add(stamp)
            if not variant_of(experiment.name):
                at_night[stamp].add(key)
            if build.reference and build.reference != key:
                found.fact(build.reference).add(version=build.reference_version or "")
                beside[build.reference].add(stamp)
    tvms = group_facts(found.facts.values(), own, beside)
    ids = {key: tvm.id for tvm in tvms.values() for key in tvm.artifacts}
    nights = {stamp: frozenset(ids[key] for key in keys) for stamp, keys in at_night.items()}
    return HomeTvms(tvms, nights, annotation_file.read(found.home.root))
