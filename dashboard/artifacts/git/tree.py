"""A commit's files with the submodules that its build needs, each from a mirror of its own."""

from __future__ import annotations

import configparser
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import command as git_command
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.git.names import check_remote, is_local

_MOST_DEEP = 4
_GITLINK = re.compile(r"^160000 commit ([0-9a-f]{40})\t(.+)$", re.ASCII)


@dataclass(frozen=True)
class Submodule:
    """Where a submodule lies, where it comes from, and the commit that is wanted of it."""

    path: str
    url: str
    commit: str


def check_out(
    mirror: Mirror, commit: str, folder: Path, context: BuildContext, *, leave_out: Iterable[str] = ()
) -> None:
    """Write the files of `commit` into the empty folder `place`, with its submodules and theirs.

    Submodules at the paths `leave_out` stay empty. ArtifactError where one cannot be had.
    """
    _check_out(mirror, commit, folder, context, frozenset(leave_out), 0)


def _check_out(
    mirror: Mirror, commit: str, folder: Path, context: BuildContext, leave_out: frozenset[str], depth: int
) -> None:
    if depth > _MOST_DEEP:
        raise ArtifactError(f"{mirror.remote}: its submodules are nested more than {_MOST_DEEP} levels deep.")
    mirror.ensure(commit, context)
    log = context.log_folder / f"checkout-{mirror.path.stem}.log"
    folder.mkdir(parents=True, exist_ok=True)
    for arguments in (
        ["clone", "--quiet", "--shared", "--no-checkout", "--", str(mirror.path), "."],
        ["checkout", "--quiet", "--detach", commit],
    ):
        git_command.work(arguments, cwd=folder, log=log, deadline=context.deadline)
    for submodule in read_submodules(folder, mirror.remote):
        if submodule.path not in leave_out:
            its_mirror = Mirror.of(context.folder, submodule.url, named_by=mirror.named_by or mirror.remote)
            _check_out(its_mirror, submodule.commit, folder / submodule.path, context, frozenset(), depth + 1)


def read_submodules(folder: Path, remote: str) -> Iterator[Submodule]:
    """The submodules of the commit that is checked out in `place`, which came from `remote`."""
    links = {}
    for line in (git_command.ask(["ls-tree", "-r", "-z", "HEAD"], cwd=folder) or "").split("\0"):
        match = _GITLINK.match(line)
        if match:
            links[match[2]] = match[1]
    if not links:
        return
    urls = _read_urls(folder / ".gitmodules")
    for path, commit in links.items():
        if path not in urls:
            raise ArtifactError(f"{remote}: .gitmodules gives no URL for the submodule {path}.")
        yield Submodule(_inside(path), make_absolute_url(urls[path], remote), commit)


def _read_urls(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        text = path.read_text(encoding="utf-8")
        parser.read_string(re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE))
    except (OSError, ValueError, configparser.Error) as error:
        raise ArtifactError(f"{path.name}: cannot be read: {error}.") from error
    return {
        parser[name]["path"]: parser[name]["url"] for name in parser.sections() if {"path", "url"} <= {*parser[name]}
    }


def make_absolute_url(url: str, remote: str) -> str:
    """The submodule's URL as git means it: it may be relative to `remote`.

    ArtifactError where git must not have it, as a path on this disk that something from elsewhere names.
    """
    if url.startswith(("./", "../")):
        scheme, separator, rest = remote.rpartition("://")
        host, colon, path = ("", "", rest) if separator or rest.startswith("/") else rest.rpartition(":")
        url = f"{scheme}{separator}{host}{colon}{posixpath.normpath(posixpath.join(path, url))}"
    try:
        check_remote(url)
        if is_local(url) and not is_local(remote):
            raise ArtifactError(f"{url!r} is a local path, but the repository is remote.")
    except ArtifactError as error:
        raise error.at(f"{remote}: a submodule's remote") from error
    return url


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if PurePosixPath(path).is_absolute() or ".." in parts or ".git" in parts:
        raise ArtifactError(f"submodule {path!r}: points outside the source tree.")
    return path
