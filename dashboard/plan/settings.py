"""The values of a home's config, and the machines that it names, with the choice of those that measure an experiment.

On each host beside the home's own machine, an experiment is a job of its own, `NAME~HOST`: its results lie under that
name, so that no series of one machine ever holds a value of another.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.spec import TIMEOUT_S, Fallback, provider_of
from tvmdash import config_util
from tvmdash.config_util import ConfigError
from tvmdash.machine.devices import Device


class ReferenceRule(enum.StrEnum):
    """The values of `reference` that name no TVM."""

    AUTO = "auto"
    """The release before tonight's for wheels, the build before for source builds."""
    NONE = "none"
    """Tonight's TVM is measured alone."""


class Isolation(enum.StrEnum):
    """The rule for building and running untrusted TVMs in a sandbox."""

    AUTO = "auto"
    """Sandboxed where this machine can."""
    REQUIRE = "require"
    """Not built where it cannot."""
    NEVER = "never"


@dataclass(frozen=True)
class GitHubSettings:
    """The people who may ask for a try in a pull request; the token that answers, and its account, or ""."""

    may_ask: tuple[str, ...]
    token_file: str
    login: str


@dataclass(frozen=True)
class HomeConfig:
    """The values of config/config.json; every folder absolute. env_name: where it has none, the home's machine's.

    reference: the TVM that tonight's is measured against, or the rule that finds one. hosts: the machines by name.
    devices: what TVM drives beside the processor, by name. tvm_source: the remote with the source of TVM's releases.
    warnings: a sentence for each address and folder that cannot be used when the time comes.
    """

    tmp_data: Path
    backup: Path
    setup: Path
    artifacts: Path
    tvm: ArtifactSpec
    fallback: Fallback
    tvms: Mapping[str, ArtifactSpec]
    reference: ArtifactSpec | ReferenceRule
    randomize: bool
    seed: int | None
    timeouts: Mapping[str, int]
    artifact_timeout_s: int | None
    max_artifacts_bytes: int
    parallel_stages: int
    min_free_bytes: int
    keep_archives: int
    backup_copy: str
    keep_raw_nights: int | None
    max_raw_bytes: int
    telemetry_rate: float
    env: Mapping[str, str]
    env_name: str
    prometheus_file: Path | None
    website_url: str
    github: GitHubSettings
    isolation: Isolation
    candidates_may_read: tuple[Path, ...]
    tvm_source: str
    hosts: Mapping[str, Host] = field(default_factory=dict)
    devices: Mapping[str, Device] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that the night writes to beside the results."""
        return (self.tmp_data, self.backup, self.setup, self.artifacts)

    def getting_s(self, spec: ArtifactSpec) -> int:
        """Return the seconds allowed for getting `spec`: the config's, else its provider's."""
        return self.artifact_timeout_s or TIMEOUT_S[provider_of(spec)]


LOCAL = "local"
"""The name of the home's own machine in experiments' configs, whatever the home's config calls it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_ADDRESS = re.compile(r"[A-Za-z0-9_\[:][^\s]{0,254}")
_OF_SLURM = ("partition", "constraint", "account")


class Launcher(enum.StrEnum):
    """The way to work on a host."""

    LOCAL = "local"
    """It is the home's own machine: the night itself measures."""
    SSH = "ssh"
    SLURM = "slurm"


@dataclass(frozen=True)
class Host:
    """A machine that measures. address, folder: as ssh and the host understand them. node: what it is locked as.

    The limits are in seconds: for the beginning (patience_s), and from then on for all that it measures (time_limit_s).
    """

    name: str
    launcher: Launcher
    address: str = ""
    folder: str = ""
    tags: tuple[str, ...] = ()
    node: str = ""
    partition: str = ""
    constraint: str = ""
    account: str = ""
    time_limit_s: int = 480 * 60
    patience_s: int = 60 * 60

    @property
    def is_away(self) -> bool:
        return self.launcher is not Launcher.LOCAL


def read_hosts(value: Mapping[str, Any], shown: str) -> dict[str, Host]:
    """Read the hosts that the config `shown` names in `value`, in its order; ConfigError lists every fault."""
    hosts, faults = dict[str, Host](), list[str]()
    for name, fields in value.items():
        where = f"$.hosts.{name}"
        if not _NAME.fullmatch(name):
            faults.append(
                f"{shown}: {where}: invalid host name. Use up to 40 letters, digits, '-', '_', '.', starting with a "
                "letter or digit."
            )
        try:
            checked = config_util.check(fields, config_util.HOST_FIELDS, shown, at=where)
        except ConfigError as error:
            faults += error.faults
            continue
        hosts[name] = _make_host(name, checked)
        faults += [f"{shown}: {where}{fault}" for fault in _find_faults(hosts[name], fields)]
    faults += _find_local_faults(hosts, shown)
    if faults:
        raise ConfigError(faults)
    return hosts


def _make_host(name: str, checked: Mapping[str, Any]) -> Host:
    return Host(
        name,
        Launcher(checked["launcher"]),
        address=checked["address"],
        folder=checked["folder"].rstrip("/"),
        tags=tuple(checked["tags"]),
        node=checked["node"],
        partition=checked["partition"],
        constraint=checked["constraint"],
        account=checked["account"],
        time_limit_s=60 * checked["time_limit_minutes"],
        patience_s=60 * checked["patience_minutes"],
    )


def _find_faults(host: Host, given: Mapping[str, Any]) -> Iterator[str]:
    """Check the host beyond its fields' types."""
    if host.is_away and not (PurePosixPath(host.folder).is_absolute() and _is_plain(host.folder)):
        yield (
            f".folder: {host.folder!r} is not an absolute path. Give a folder on the host for the dashboard alone, "
            "e.g. /var/tmp/tvm-dashboard."
        )
    if host.launcher is Launcher.SSH and not _ADDRESS.fullmatch(host.address):
        yield (
            f".address: {host.address!r} is not a valid ssh destination. Use USER@MACHINE, or a Host from "
            "~/.ssh/config."
        )
    unused = {
        Launcher.LOCAL: ("address", "folder", "node", *_OF_SLURM, "time_limit_minutes", "patience_minutes"),
        Launcher.SSH: _OF_SLURM,
        Launcher.SLURM: ("address",),
    }[host.launcher]
    yield from (
        f".{name}: not allowed with the launcher {host.launcher}. Remove it." for name in unused if name in given
    )
    for name in ("node", *_OF_SLURM):
        if not _is_plain(getattr(host, name)):
            yield f".{name}: contains white space. Remove it."


def _is_plain(text: str) -> bool:
    return text.isprintable() and os.path.normpath(text or "x") == (text.rstrip("/") or "x") and "," not in text


def _find_local_faults(hosts: Mapping[str, Host], shown: str) -> Iterator[str]:
    own = [host.name for host in hosts.values() if not host.is_away]
    if len(own) > 1:
        yield (
            f"{shown}: $.hosts: {' and '.join(own)} have the launcher `local`, but only one host can be the home's "
            "own machine."
        )
    if LOCAL in hosts and hosts[LOCAL].is_away:
        yield (
            f"{shown}: $.hosts.{LOCAL}: this name is reserved for the home's own machine. Give this host another name."
        )
    tags = {tag for host in hosts.values() for tag in host.tags}
    yield from (
        f"{shown}: $.hosts.{name}: this name is also used as a tag. Rename one of them."
        for name in hosts
        if name in tags
    )


def find_host_faults(asked: Sequence[str] | None, hosts: Mapping[str, Host], shown: str) -> list[str]:
    """List a sentence for each host or tag that the config `shown` asks for and the home does not have."""
    known = {LOCAL, *hosts, *(tag for host in hosts.values() for tag in host.tags)}
    there = f"Hosts and tags of this home: {', '.join(sorted(known))}."
    return [
        f"{shown}: $.hosts: this home has no host or tag {name!r:.80}. {there}"
        for name in asked or ()
        if name not in known
    ]


def choose_hosts(asked: Sequence[str] | None, hosts: Mapping[str, Host]) -> tuple[str, ...]:
    """Choose the hosts of an experiment whose config asks for these; the home's own machine is the empty name."""
    if asked is None:
        return ("",)
    own = {LOCAL, *(name for host in hosts.values() if not host.is_away for name in (host.name, *host.tags))}
    away = (host.name for host in hosts.values() if host.is_away and {host.name, *host.tags} & set(asked))
    return (*([""] if own & set(asked) else []), *away)
