"""Checks of remotes and revisions before git sees them, and of CMake options. Nothing here ever reaches a shell."""

from __future__ import annotations

import ipaddress
import os
import posixpath
import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from dashboard.artifacts.artifact import ArtifactError

COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ABBREVIATED = re.compile(r"[0-9a-f]{7,40}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}", re.ASCII)
_PULL = re.compile(r"pull/[0-9]{1,9}", re.ASCII)
_URL = re.compile(r"(https|http|ssh|git|file)://[^\s]+")
_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s]+", re.ASCII)
_GUESTS_URL = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/[^\s\\#?@]*", re.ASCII)
"""An address so plain that git and Python cannot read different hosts in it."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_OPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


def check_options(options: Mapping[str, str]) -> None:
    """Refuse a name that is none of CMake's, and a value that cannot stand on a command line."""
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


def is_local(remote: str) -> bool:
    return remote.startswith(("/", "file://"))


def find_public_addresses(remote: str, origin: str) -> tuple[str, ...]:
    """Resolve a remote that a guest's commit of `origin` names, for git's http.curloptResolve.

    Empty where the server of `origin`, which the operator named, is meant. ArtifactError where the remote is none of
    the public internet's: this machine and its network answer to it what they would not answer to a stranger.
    """
    if is_local(remote):
        folders = {posixpath.dirname(posixpath.normpath(name.removeprefix("file://"))) for name in (remote, origin)}
        if is_local(origin) and len(folders) == 1:
            return ()
        raise ArtifactError(f"{remote[:200]}: a path on this disk, and not beside {origin}.")
    if not _GUESTS_URL.fullmatch(remote):
        raise ArtifactError(f"{remote[:200]}: not fetched for a guest. Use https://HOST/PATH.")
    parts = urlsplit(remote)
    if (parts.scheme, parts.netloc) == (urlsplit(origin).scheme, urlsplit(origin).netloc.rpartition("@")[2]):
        return ()
    host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        if "." in host and any(os.environ.get(name) for name in (f"{parts.scheme}_proxy", "HTTPS_PROXY", "all_proxy")):
            return ()  # the proxy knows it, and decides what can be reached
        raise ArtifactError(f"{remote[:200]}: its host could not be resolved ({error}).") from error
    inside = sorted(address for address in found if not _is_public(address))
    if inside:
        raise ArtifactError(f"{remote[:200]}: {inside[0]} is an address of this machine or its network.")
    return (f"{host}:{port}:{','.join(f'[{item}]' if ':' in item else item for item in sorted(found))}",)


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        # An IPv6 address may stand for an IPv4 one of this network.
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else inner
        address = inner or address
    return address.is_global and not address.is_multicast


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
    """Return True for all 40 digits of a commit, which mean nothing else."""
    return COMMIT.fullmatch(revision) is not None


def may_be_commit(revision: str) -> bool:
    """Return True for digits that may begin a commit's."""
    return _ABBREVIATED.fullmatch(revision) is not None


def ref_of_pull(revision: str) -> str | None:
    """Return the ref of the pull request in `pull/NUMBER` or `refs/pull/NUMBER/head`; None for anything else."""
    number = revision.removeprefix("refs/").removesuffix("/head")
    return f"refs/{number}/head" if _PULL.fullmatch(number) else None
