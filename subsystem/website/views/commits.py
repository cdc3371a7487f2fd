"""The news of a night's TVMs: the commits since the night before, each with its address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash.dashboard_info import Night
from tvmdash.text import elide

_WHEELS_OF = "https://github.com/apache/tvm"
"""Where the commits of released wheels are."""
_SHA = re.compile(r"[0-9a-f]{7,40}")
_SSH = re.compile(r"(?:ssh://)?[\w.-]+@(?P<host>[\w.-]+)[:/](?P<path>[^\s?#]+)")
_HTTPS = re.compile(r"https?://(?:[^@/\s]*@)?(?P<host>[\w.-]+)/(?P<path>[^\s?#]+)")
_TITLE = 120
_CODE = frozenset({"3rdparty", "CMakeLists.txt", "cmake", "ffi", "include", "pyproject.toml", "python", "src"})
"""Where in TVM's repository that lies which a benchmark can feel."""


@dataclass(frozen=True)
class Links:
    """Addresses of commits, with {commit}, or {before} and {after}; empty: by the remote's host."""

    commit_url: str = ""
    compare_url: str = ""

    def of_commit(self, remote: str, commit: str) -> str:
        template = self.commit_url or _join(remote, "/commit/{commit}")
        return _fill(template, commit=commit)

    def of_range(self, remote: str, before: str, after: str) -> str:
        template = self.compare_url or _join(remote, "/compare/{before}...{after}")
        return _fill(template, before=before, after=after)


def _join(remote: str, path: str) -> str:
    """Return the page of the remote's host, where it is GitHub or GitLab."""
    found = _HTTPS.fullmatch(remote) or _SSH.fullmatch(remote)
    if found is None or not re.search(r"git(hub|lab)", found["host"]):
        return ""
    base = f"https://{found['host']}/{found['path'].removesuffix('/').removesuffix('.git')}"
    return f"{base}/-{path}" if "gitlab" in found["host"] else base + path


def _fill(template: str, **commits: str) -> str:
    if not template.startswith(("https://", "http://")) or not all(map(_SHA.fullmatch, commits.values())):
        return ""
    for name, commit in commits.items():
        template = template.replace(f"{{{name}}}", commit)
    return template


@dataclass(frozen=True)
class CommitView:
    """One commit. folders: of the files that it changed; none where the night did not keep them."""

    short: str
    url: str
    title: str
    author: str
    day: str
    folders: tuple[str, ...] = ()

    @property
    def is_beside(self) -> bool:
        """True where it changed nothing that is compiled or imported: documents, tests, the project's own machinery."""
        return bool(self.folders) and not any(folder.split("/")[0] in _CODE for folder in self.folders)


@dataclass(frozen=True)
class NewCommits:
    """The newest commits between two nights' TVMs, those that changed code first, and how many `more` there are.

    gone, more_gone: those that are in the branch no more, which was rewritten.
    ends: both TVMs, for people; before, after: as records have them.
    """

    ends: tuple[str, str]
    url: str
    commits: tuple[CommitView, ...]
    more: int
    before: str
    after: str
    gone: tuple[CommitView, ...] = ()
    more_gone: int = 0

    @property
    def is_rebuilt(self) -> bool:
        """True for builds of the same commit; of wheels that do not say their commit, of the same version."""
        return self.before == self.after if self.before and self.after else self.ends[0] == self.ends[1]

    @property
    def count(self) -> int:
        return len(self.commits) + self.more

    @property
    def count_gone(self) -> int:
        return len(self.gone) + self.more_gone


def list_new(night: Night, links: Links) -> tuple[NewCommits, ...]:
    """List the news of each TVM of the night that is another than on the night before."""
    return tuple(_list_new(night.artifacts, links))


def _list_new(artifacts: Sequence[Any], links: Links) -> Iterator[NewCommits]:
    for artifact in artifacts:
        since = artifact.get("since") if isinstance(artifact, Mapping) else None
        if not isinstance(since, Mapping) or since.get("key") == artifact.get("key"):
            continue
        facts = artifact.get("facts")
        remote = str(facts.get("remote") or "") if isinstance(facts, Mapping) else ""
        remote = remote if artifact.get("provider") == "git" else _WHEELS_OF
        before, after = (str(each.get("commit") or "") for each in (since, artifact))
        views = [_view(commit, remote, links) for commit in _maps(since.get("commits"))]
        ends = tuple(_shorten(str(each.get("commit") or ""), each.get("version")) for each in (since, artifact))
        yield NewCommits(
            (ends[0], ends[1]),
            links.of_range(remote, before, after) if before != after else "",
            tuple(sorted(views, key=lambda view: view.is_beside)),
            _count(since.get("more")),
            before,
            after,
            tuple(_view(commit, remote, links) for commit in _maps(since.get("gone"))),
            _count(since.get("more_gone")),
        )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _shorten(commit: str, version: object) -> str:
    """Name a wheel by its version, a build from source by its commit."""
    is_source = "+g" in str(version) or not version
    return commit[:9] if is_source and commit else elide(str(version), 40)


def _maps(value: object) -> Iterable[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _view(commit: Mapping[str, Any], remote: str, links: Links) -> CommitView:
    sha = str(commit.get("sha", ""))
    title, author = elide(str(commit.get("title", "")), _TITLE), elide(str(commit.get("author", "")), 60)
    folders = commit.get("folders")
    return CommitView(
        sha[:9],
        links.of_commit(remote, sha),
        title,
        author,
        str(commit.get("date", ""))[:10],
        tuple(map(str, folders)) if isinstance(folders, list) else (),
    )
