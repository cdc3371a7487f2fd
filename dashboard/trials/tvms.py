"""The TVMs of a trial: as they are named, what suits a candidate as its base, and those of a range."""

from __future__ import annotations

import bisect
import datetime
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.artifacts.artifact import MANIFEST, Artifact, ArtifactSpec
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import git_provider
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import Provided, list_here
from dashboard.artifacts.spec import GIT, LATEST, WHEEL, provider_of
from dashboard.artifacts.wheel import wheel_provider
from dashboard.artifacts.wheel.source import PYPI
from dashboard.plan.artifact_names import ArtifactFinder, spec_of
from dashboard.plan.reference import NIGHTS_BACK
from dashboard.trials.rounds import BuildCandidate
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials.suspect import Suspect
from tvmdash.trials.trial import TrialTvm

_NAME_IT = "Use --against to give the TVM to compare with."


@dataclass(frozen=True)
class Found:
    """A TVM that was got, and how it is told. Nobody removes it until its lease is released."""

    provided: Provided
    tvm: TrialTvm

    @property
    def artifact(self) -> Artifact:
        return self.provided.artifact


def name_again(tvm: TrialTvm, store: Path) -> str:
    """Name the same build or, where the store has it no more, one of the same commit or version."""
    return tvm.key if (store / tvm.key / MANIFEST).is_file() else tvm.exact_name


def find_named(name: str, finder: ArtifactFinder) -> Found:
    """The TVM of that name; DashboardError where it cannot be had."""
    return _describe(finder.find(name), name)


def find_base(home: Home, candidate: Artifact, finder: ArtifactFinder) -> Found:
    """Choose a base for the candidate where nobody names one; DashboardError where there is none."""
    if candidate.provider == GIT and provider_of(finder.config.tvm) == GIT:
        commit, why = find_base_commit(candidate.facts["remote"], str(candidate.commit), finder)
        provided = finder.provide(replace(finder.config.tvm, branch=commit))
        return _describe(provided, f"git:{commit}", why)
    return _find_last_night(home, finder)


def find_base_commit(remote: str, commit: str, finder: ArtifactFinder) -> tuple[str, str]:
    """The commit at which that commit of the remote left the home's branch, or, of one on it, the commit before.

    And why it was taken, in words. DashboardError where there is none.
    """
    own = finder.config.tvm
    main = finder.resolve(own).branch
    mirror, theirs = (Mirror.of(finder.config.artifacts, address) for address in (own.remote, remote))
    base = mirror.find_merge_base(main, commit, theirs)
    if base is None:
        text = f"{commit[:12]} of {theirs.remote} and {own.branch} of {own.remote} have no common ancestor."
        raise DashboardError(f"{text} {_NAME_IT}")
    note = f"its merge base with {own.branch}"
    if base == commit:
        base, note = mirror.commit_of(f"{commit}^"), "the commit before it"
    if base is None:
        raise DashboardError(f"{commit[:12]}: this commit has no parent. {_NAME_IT}")
    return base, note


def _find_last_night(home: Home, finder: ArtifactFinder) -> Found:
    own = finder.config.tvm
    for night in home.last_nights(NIGHTS_BACK):
        for entry in night.list_taken(own.shown, own.branch):
            return _describe(_take(str(entry.get("key")), finder), str(entry.get("key")), f"the TVM of {night.stamp}")
    raise DashboardError(f"{home.root}: no night has measured {own.branch} from {own.shown} yet. {_NAME_IT}")


def _take(key: str, finder: ArtifactFinder) -> Provided:
    try:
        return finder.take(key)
    except DashboardError as error:
        raise DashboardError(f"The TVM of the last night, {key}, no longer exists: {error} {_NAME_IT}") from error


def _describe(provided: Provided, asked: str, why: str = "") -> Found:
    artifact = provided.artifact
    note = ". ".join(filter(None, (why, provided.note)))
    return Found(provided, TrialTvm(asked, artifact.key, artifact.version, artifact.commit, note))


_INDEX_TIMEOUT_S = 300.0
_MOST = 100_000


def list_between(good: Artifact, bad: Artifact, finder: ArtifactFinder) -> list[BuildCandidate]:
    """List the TVMs from `good` to `bad`, both included; DashboardError where no way leads from one to the other."""
    if good.provider != bad.provider:
        raise DashboardError(
            f"{good.key} is a {good.provider} but {bad.key} is a {bad.provider}. Give two TVMs of the same kind."
        )
    if good.provider == GIT:
        for fact in ("remote", "options"):
            if good.facts[fact] != bad.facts[fact]:
                raise DashboardError(f"--good and --bad differ in their {fact}: {good.facts[fact]}, {bad.facts[fact]}.")
        remote, options = good.facts["remote"], git_provider.read_options(good)
        ends = [ArtifactSpec.of(remote, str(artifact.commit), options) for artifact in (good, bad)]
        candidates = _list_commits(ends[0], ends[1], finder)
    else:
        sources = [str(artifact.facts.get("source", "")) for artifact in (good, bad)]
        if sources[0] != sources[1]:
            raise DashboardError(
                f"--good is from {sources[0] or PYPI} but --bad from {sources[1] or PYPI}. Give two of one source."
            )
        ends = [finder.spec_of_wheel(artifact.version, sources[0]) for artifact in (good, bad)]
        candidates = _list_versions(ends[0], ends[1], finder)
    if len(candidates) < 2:
        raise DashboardError(f"There is nothing between {good.version} and {bad.version}; they are the same build.")
    return candidates


def list_range(text: str, finder: ArtifactFinder) -> list[BuildCandidate]:
    """List the TVMs of `pypi:0.25.0..0.27.0`, `git:A..B` or `REMOTE@A..B`, both ends included, oldest first."""
    left, dots, right = text.rpartition("..")
    if not dots or not left or not right:
        raise DashboardError(
            f"--artifacts {text}: not a range (use e.g. pypi:0.25.0..0.27.0, wheel:0.26.dev201..0.26.dev207 or "
            "git:v0.26.0..main)."
        )
    at = max(left.rfind(":"), left.rfind("@")) + 1
    ends = [spec_of(name, finder.config) for name in (left, left[:at] + right)]
    if ends[0] is None or ends[1] is None:
        raise DashboardError(f"--artifacts {text}: a range takes two versions or two revisions, not artifact keys.")
    first, last = (finder.resolve(end) for end in ends if end)
    return _list_versions(first, last, finder) if provider_of(first) == WHEEL else _list_commits(first, last, finder)


def _list_commits(first: ArtifactSpec, last: ArtifactSpec, finder: ArtifactFinder) -> list[BuildCandidate]:
    """List the first parents of `last`: a merge is one commit, as it was when it came."""
    mirror, old, new = Mirror.of(finder.config.artifacts, first.remote), first.branch, last.branch
    if not mirror.contains(new, old):
        swapped = " Are they in the wrong order?" if mirror.contains(old, new) else ""
        raise DashboardError(f"{old[:12]} is not an ancestor of {new[:12]} in {first.remote}.{swapped}")
    commits = [mirror.commit(old), *reversed(mirror.commits(old, new, most=_MOST))]
    return [
        BuildCandidate(
            replace(first, branch=commit.sha), Suspect(commit.sha, commit.title, commit.author, commit.committed)
        )
        for commit in commits
    ]


def _list_versions(first: ArtifactSpec, last: ArtifactSpec, finder: ArtifactFinder) -> list[BuildCandidate]:
    from packaging.version import Version

    low, high = Version(first.branch), Version(last.branch)
    if low > high:
        raise DashboardError(f"{first.branch} is newer than {last.branch}. Are they in the wrong order?")
    inside = {Version(text): text for text in _known(first, finder) if low < Version(text) < high}
    ordered = [first.branch, *(inside[version] for version in sorted(inside)), last.branch]
    return [BuildCandidate(replace(first, branch=text), Suspect(text)) for text in dict.fromkeys(ordered)]


def _known(spec: ArtifactSpec, finder: ArtifactFinder) -> list[str]:
    """List the versions that the source of `spec` offers, where something may be built, and those at hand."""
    any_version = replace(spec, branch=LATEST)
    # A page of nightly wheels drops the old ones, of which some are at hand.
    versions = [artifact.version for artifact in list_here(any_version, finder.config.artifacts)]
    if finder.rebuild:
        finder.logs.mkdir(parents=True, exist_ok=True)
        context = BuildContext(finder.config.artifacts, finder.logs, LockDeadline(_INDEX_TIMEOUT_S))
        versions += wheel_provider.list_offered(any_version, context)
    return versions


@dataclass(frozen=True)
class Choice:
    """All of them, oldest first, unless one of these says less.

    step: each Nth. days: the last one of so many days. gaps: the middle of the longest stretch without a measurement
    first, then that of the next.
    """

    step: int = 1
    days: int | None = None
    gaps: bool = False


def choose(candidates: Sequence[BuildCandidate], choice: Choice) -> list[BuildCandidate]:
    """Choose those of `candidates` (oldest first) that the choice leaves, and always the first and the last."""
    if choice.days is not None:
        return _choose_by_days(candidates, choice.days)
    kept = list(candidates[:: choice.step])
    return kept if kept[-1] == candidates[-1] else [*kept, candidates[-1]]


def _choose_by_days(candidates: Sequence[BuildCandidate], days: int) -> list[BuildCandidate]:
    if not all(candidate.suspect.date for candidate in candidates):
        raise DashboardError("--dates works only with commits, not with releases. Use --step or --gaps.")
    moments = [datetime.datetime.fromisoformat(candidate.suspect.date) for candidate in candidates]
    numbers = [moment.astimezone(datetime.UTC).toordinal() // days for moment in moments]
    last = dict(zip(numbers, candidates, strict=True))  # of commits of one stretch of days, the last one stays
    return list(dict.fromkeys([candidates[0], *last.values(), candidates[-1]]))


def order_by_gaps(candidates: Sequence[BuildCandidate], measured: Collection[str]) -> Iterator[BuildCandidate]:
    """Yield those without a measurement, each halving the longest stretch that has none; the ends come first."""
    places = sorted(at for at, candidate in enumerate(candidates) if candidate.id in measured)
    for at in (0, len(candidates) - 1):
        if at not in places:
            bisect.insort(places, at)
            yield candidates[at]
    while True:
        # Of equally long gaps the earliest comes first.
        gaps = [(after - before, -before) for before, after in itertools.pairwise(places)]
        length, start = max(gaps, default=(0, 0))
        if length < 2:
            return
        middle = -start + length // 2
        bisect.insort(places, middle)
        yield candidates[middle]
