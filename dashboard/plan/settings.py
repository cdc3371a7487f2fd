"""The values of a home's config."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.spec import TIMEOUT_S, Fallback, provider_of
from dashboard.plan.hosts import Host
from tvmdash.machine.devices import Device


class ReferenceRule(enum.StrEnum):
    """The values of `reference` that name no TVM."""

    AUTO = "auto"
    """Of wheels the release before tonight's, of source builds the build before."""
    NONE = "none"
    """Tonight's TVM is measured alone."""


class Isolation(enum.StrEnum):
    """The rule for building and running untrusted TVMs in a sandbox."""

    AUTO = "auto"
    """Where this machine can."""
    REQUIRE = "require"
    """Else it is not built."""
    NEVER = "never"


@dataclass(frozen=True)
class GitHubSettings:
    """Who may ask for a try in a pull request; the token that answers, and its account, empty where not stated."""

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
