"""The TVMs that a home has measured, found by what people call them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tvmdash import common
from tvmdash.dashboard_info import name_wheel
from tvmdash.errors import DashboardError
from tvmdash.incidents.annotations import Annotation
from tvmdash.text import format_list

_COMMIT = re.compile("[0-9a-f]{4,40}")
_DATE = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_RELEASE = "release"
_LISTED, _AMBIGUOUS = 8, 5
_FORMS = ("pypi:", "pypi+pre:", "wheel:", "git:")


@dataclass
class ArtifactFacts:
    """Facts of one artifact from all sources. said: by the running TVM. names: every other text that means it.

    source: of a wheel that is none of PyPI's. own, beside: the nights that measured it, and those that measured another
    beside it.
    """

    key: str
    provider: str = ""
    version: str = ""
    commit: str | None = None
    said: str = ""
    source: str = ""
    names: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    beside: set[str] = field(default_factory=set)

    def add(self, version: str, commit: str | None = None, provider: str = "", names: Iterable[str] = ()) -> None:
        """Add the facts that another file has; those known already stay."""
        self.provider, self.version = self.provider or provider, self.version or version
        self.commit = self.commit or commit or None
        self.names.update(filter(None, (*names, version, commit)))

    @property
    def id(self) -> str:
        """The ID of its TVM, shared by all artifacts of it: a git build goes by its commit, a wheel by its version."""
        wheel = name_wheel(self.version, self.source) if self.source else self.version
        known = {"git": self.commit, "wheel": wheel}
        return known.get(self.provider, self.said) or self.key


@dataclass(frozen=True)
class HomeTvm:
    """One TVM: its artifacts, the nights that measured it (own) and those that measured another beside it."""

    id: str
    version: str
    commit: str | None
    provider: str
    artifacts: tuple[str, ...]
    names: frozenset[str]
    own: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    source: str = ""

    @property
    def spec(self) -> str:
        """The name that `try`, `compare` and `bisect` take."""
        if self.provider == "git" and self.commit:
            return f"git:{self.commit}"
        release = name_wheel(self.version, self.source)
        return release if self.provider == "wheel" or release in self.names else self.artifacts[0]


@dataclass(frozen=True)
class HomeTvms:
    """All of them, the one measured last at the end. nights: by stamp, the IDs of what it measured as its own."""

    tvms: Mapping[str, HomeTvm]
    nights: Mapping[str, frozenset[str]]
    annotations: Sequence[Annotation] = ()

    def find(self, name: str, home: object) -> HomeTvm:
        """The TVM of that name; DashboardError where the home knows none, or several."""
        for found in self._search(name):
            if len(found) == 1:
                return self.tvms[found.pop()]
            if found:
                which = format_list(sorted(map(self._describe, found)), _AMBIGUOUS)
                raise DashboardError(f"{name}: ambiguous, could be {which}. Give a commit or an artifact key.")
        known = format_list([self._describe(each) for each in reversed(tuple(self.tvms))], _LISTED)
        raise DashboardError(f"{name}: not measured in {home}, which has: {known or 'no TVM yet'}.")

    def find_id(self, name: str) -> str | None:
        """The ID of the TVM of that version or commit; None where the home knows none."""
        return next((found.pop() for found in self._search(name) if len(found) == 1), None)

    def _search(self, name: str) -> Iterator[set[str]]:
        """The IDs that the name may mean, the plainest meaning first."""
        # REMOTE@COMMIT, as other commands take it.
        plain = name.rpartition("@")[2] if "/" in name else name
        for form in _FORMS:
            plain = plain.removeprefix(form)
        yield {tvm.id for tvm in self.tvms.values() if plain in tvm.artifacts}
        yield {tvm.id for tvm in self.tvms.values() if tvm.names & {plain, plain.removeprefix("v")}}
        if _COMMIT.fullmatch(plain):
            yield {tvm.id for tvm in self.tvms.values() if any(text.startswith(plain) for text in _hex_names(tvm))}
        yield self._of_night(plain)
        yield self._of_release(plain)

    def _of_night(self, text: str) -> set[str]:
        is_night = common.is_stamp(text) or _DATE.fullmatch(text)
        begin = text.replace("-", "")
        return {each for stamp, ids in self.nights.items() for each in ids if is_night and stamp.startswith(begin)}

    def _of_release(self, text: str) -> set[str]:
        """Return the TVMs that were measured on the night of the release annotated with that name."""
        places = [note.place for note in self.annotations if note.kind == _RELEASE and text in note.words.split()]
        first = [min((stamp for stamp in self.nights if stamp >= place), default="") for place in places]
        return {each for stamp in first for each in self.nights.get(stamp, ())}

    def _describe(self, name: str) -> str:
        tvm = self.tvms[name]
        counts = [
            f"{len(stamps)} nights{word}" for stamps, word in ((tvm.own, ""), (tvm.beside, " beside it")) if stamps
        ]
        version = f"TVM {tvm.version} " if tvm.version not in {"", tvm.id} else ""
        return f"{version}{tvm.id[:12] if tvm.id == tvm.commit else tvm.id} ({' and '.join(counts) or 'tried'})"


def _hex_names(tvm: HomeTvm) -> list[str]:
    return [text for text in (*tvm.names, tvm.id) if _COMMIT.fullmatch(text)]


def group_facts(facts: Iterable[ArtifactFacts]) -> dict[str, HomeTvm]:
    """The TVMs that these artifacts are, by ID, in the order in which they were measured last."""
    groups: dict[str, list[ArtifactFacts]] = {}
    for each in facts:
        groups.setdefault(each.id, []).append(each)
    made = [_make_tvm(name, members) for name, members in groups.items()]
    made.sort(key=lambda tvm: max((*tvm.own, *tvm.beside), default=""))
    return {tvm.id: tvm for tvm in made}


def _make_tvm(name: str, members: Sequence[ArtifactFacts]) -> HomeTvm:
    first = members[0]
    commit = next((each.commit for each in members if each.commit), None)
    names, own, beside = (
        frozenset[str]().union(*sets)
        for sets in zip(*((each.names, each.own, each.beside) for each in members), strict=True)
    )
    keys = tuple(each.key for each in members)
    stamps = (tuple(sorted(own)), tuple(sorted(beside)))
    return HomeTvm(name, first.version, commit, first.provider, keys, names, *stamps, first.source)
