"""What may reach git as a remote or a revision, and CMake as an option. Nothing here is ever seen by a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dashboard.artifacts.artifact import ArtifactError

COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ABBREVIATED = re.compile(r"[0-9a-f]{7,40}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}", re.ASCII)
_PULL = re.compile(r"pull/[0-9]{1,9}", re.ASCII)
_URL = re.compile(r"(https|http|ssh|git|file)://[^\s]+")
_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s]+", re.ASCII)
_OPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


def check_options(options: Mapping[str, str]) -> None:
    """ArtifactError where a name is none of CMake's, or a value cannot stand on a command line."""
    for name, value in options.items():
        if not _OPTION.fullmatch(name):
            raise ArtifactError(f"tvm_options: {name[:100]!r} is not a CMake option name (expected e.g. USE_LLVM).")
        if not value.isprintable() or not value:
            raise ArtifactError(f"tvm_options.{name}: {value[:100]!r} cannot be passed to CMake.")


def check_remote(remote: str) -> None:
    """Raise ArtifactError where `remote` is no URL, no `user@host:path` and no absolute path.

    Git's own helpers (`ext::sh -c ...`) run programs, and a name that begins with `-` is an option.
    """
    field, shown = "tvm_remote", f"{remote[:100]!r}"
    if any(not character.isprintable() for character in remote):
        raise ArtifactError(f"{shown}: contains a control character.", place=field, remedy="Write the URL without it.")
    if "::" in remote or remote.startswith("-"):
        problem = f"{shown}: git could interpret this as a program or an option."
        raise ArtifactError(problem, place=field, remedy="Use an https:// URL.")
    if not (_URL.fullmatch(remote) or _SCP.fullmatch(remote) or remote.startswith("/")):
        remedy = "Use https://..., ssh://..., git@host:path or an absolute path."
        raise ArtifactError(f'{shown}: is neither "pypi" nor a git remote.', place=field, remedy=remedy)


def check_revision(revision: str) -> None:
    """Raise ArtifactError where `revision` is no branch, tag, commit, `refs/...` or `pull/NUMBER`."""
    shown = f"tvm_branch: {revision[:100]!r}"
    if not _REVISION.fullmatch(revision):
        raise ArtifactError(
            f"{shown}: not a valid name of a branch, tag or commit. Use letters, digits and . _ / + -, starting with "
            "a letter or digit."
        )
    parts = revision.split("/")
    if ".." in revision or "" in parts or any(part.startswith(".") or part.endswith(".lock") for part in parts):
        raise ArtifactError(f"{shown}: git does not allow this name. List the remote's branches with git ls-remote.")


def is_commit(revision: str) -> bool:
    """Whether `revision` can only be meant as a commit: all 40 digits of it."""
    return COMMIT.fullmatch(revision) is not None


def may_be_commit(revision: str) -> bool:
    """Whether `revision` may be a commit's first digits."""
    return _ABBREVIATED.fullmatch(revision) is not None


def ref_of_pull(revision: str) -> str | None:
    """The ref of a pull request that `pull/NUMBER` or `refs/pull/NUMBER/head` names; None for anything else."""
    number = revision.removeprefix("refs/").removesuffix("/head")
    return f"refs/{number}/head" if _PULL.fullmatch(number) else None
