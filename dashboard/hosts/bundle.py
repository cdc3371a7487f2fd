"""Packages for a host: the code, which it keeps under its hash; each night the configs; and TVMs that it lacks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.spec import GIT, WHEEL, provider_of
from dashboard.artifacts.wheel.source import WHEEL_SIGN, read_remote
from dashboard.plan.job import REPOSITORY, Job, Plan, wanted_by
from dashboard.plan.settings import Host, ReferenceRule
from tvmdash import common, config_util
from tvmdash.common.files import trees
from tvmdash.common.files.trees import TreeEntry
from tvmdash.errors import DashboardError

OWN = "own"
"""The folder of the code that holds the experiments which are not of this repository."""
_PARTS = ("dashboard", "experiments", "shared", "requirements.txt", "requirements-hashes.txt")
_LEFT_OUT = {"__pycache__", ".git", ".venv", "setup"}
_SENT = (
    "hosts", "tvm_options", "randomize", "timeouts", "artifact_timeout_s", "max_artifacts_gb", "parallel_stages",
    "min_free_mb", "env", "telemetry_rate", "devices", "tvm_source",
)  # fmt: skip
"""The fields of the home's config that hold on a host as well; no other one goes there."""
_KEPT_RAW_NIGHTS = 3


@dataclass(frozen=True)
class BundledCode:
    """The dashboard's code as a tar archive, `file`, and the hash of all that is in it; has_own: the folder OWN."""

    hash: str
    file: Path
    has_own: bool


def pack_code(jobs: Iterable[Job], folder: Path) -> BundledCode:
    """Pack this repository, without subsystems, and the experiments of `jobs` that lie elsewhere, into `folder`."""
    if not (REPOSITORY / "requirements.txt").is_file():
        raise DashboardError(
            f"{REPOSITORY}: requirements.txt is missing. Hosts need a git checkout of the dashboard; clone the "
            "repository."
        )
    files = dict(_list_code(jobs))
    digest = hashlib.sha256()
    for name, path in files.items():
        content = os.readlink(path).encode() if _is_link(name, path) else path.read_bytes()
        digest.update(f"{name}\0{_mode(path)}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    has_own = any(name.startswith(f"{OWN}/") for name in files)
    code = BundledCode(digest.hexdigest()[:24], folder / f"code-{digest.hexdigest()[:24]}.tar", has_own)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(code.file, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in files.items():
            archive.dereference = not _is_link(name, path)
            archive.add(path, name, recursive=False)
        _add_text(archive, "hash", code.hash)
    return code


def _list_code(jobs: Iterable[Job]) -> Iterator[tuple[str, Path]]:
    for part in _PARTS:
        yield from _list_files(REPOSITORY / part, part)
    for folder in sorted({job.folder for job in jobs}):
        if not folder.is_relative_to(REPOSITORY):
            yield from _list_files(folder, f"{OWN}/{folder.name}")


def _list_files(path: Path, name: str) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield name, path
        return
    for entry in trees.walk(path, leaves_out=_is_left_out).entries:
        whole = path / entry.path
        if whole.is_file() or (entry.is_link and path.is_relative_to(REPOSITORY)):
            yield f"{name}/{entry.path}", whole


def _is_left_out(entry: TreeEntry) -> bool:
    return (entry.is_folder and entry.name in _LEFT_OUT) or entry.name.endswith(".pyc")


def _is_link(name: str, path: Path) -> bool:
    """Return True for a link inside the repository, whose target travels as well."""
    return path.is_symlink() and not name.startswith(f"{OWN}/")


def _mode(path: Path) -> int:
    return path.lstat().st_mode & 0o111


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    content = text.encode("utf-8", "surrogateescape")
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


@dataclass(frozen=True)
class Tvms:
    """Tonight's TVMs and what each is measured against, as they were got here: hosts get just these.

    rebuild: they get them from where they come from, else from what they have at hand.
    """

    have: Mapping[ArtifactSpec, Artifact]
    references: Mapping[ArtifactSpec, Artifact]
    rebuild: bool

    def list_keys(self, jobs: Sequence[Job]) -> Iterator[str]:
        """Yield the keys of the TVMs that these jobs need, and of their references."""
        for tvm in wanted_by(jobs):
            yield from (tonight[tvm].key for tonight in (self.have, self.references) if tvm in tonight)


def pack_config(plan: Plan, host: Host, jobs: Sequence[Job], code: BundledCode, tvms: Tvms) -> bytes:
    """Pack the config folder for the host's own home: this home's, as far as it is about `jobs`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add_text(archive, config_util.CONFIG_FILE, json.dumps(_make_home_config(plan, host, code, tvms)))
        for folder in sorted({job.config_folder for job in jobs}):
            for name, path in _list_files(folder, f"experiments/{folder.name}"):
                if name == f"experiments/{folder.name}/{config_util.CONFIG_FILE}":
                    _add_text(archive, name, json.dumps(_pin_job(common.read_json(path), plan, tvms.have)))
                else:
                    archive.dereference = True
                    archive.add(path, name, recursive=False)
    return buffer.getvalue()


def _make_home_config(plan: Plan, host: Host, code: BundledCode, tvms: Tvms) -> Mapping[str, Any]:
    config, value = plan.config, common.read_json(plan.home.config_file)
    kept = config.keep_raw_nights
    spec = _pin(config.tvm, tvms.have)
    return {
        **{name: value[name] for name in _SENT if name in value},
        "tmp_data_dir": "tmp",
        "backup_dir": "backup",
        "setup_dir": "setup",
        "artifact_dir": "artifacts",
        "experiment_dirs": [f"../code/{code.hash}/{OWN}"] if code.has_own else [],
        "tvm_remote": spec.remote,
        "tvm_branch": spec.branch,
        "tvms": {name: _write_spec(_pin(item, tvms.have)) for name, item in config.tvms.items()},
        "reference": _write_reference(config.reference, tvms),
        "seed": plan.seed,
        "env_name": host.name,
        "keep_raw_nights": _KEPT_RAW_NIGHTS if kept is None else min(kept, _KEPT_RAW_NIGHTS),
    }


def _pin_job(value: dict[str, Any], plan: Plan, have: Mapping[ArtifactSpec, Artifact]) -> Mapping[str, Any]:
    """Pin the version or commit of a TVM that the experiment's config names."""
    if value.get("tvm_remote") or value.get("tvm_branch"):
        own, options = plan.config.tvm, value.get("tvm_options")
        asked = ArtifactSpec.of(
            read_remote(value.get("tvm_remote")) or own.remote,
            value.get("tvm_branch") or own.branch,
            dict(own.options) if options is None else options,
        )
        spec = _pin(asked, have)
        return {**value, "tvm_remote": spec.remote, "tvm_branch": spec.branch}
    return value


def _pin(spec: ArtifactSpec, have: Mapping[ArtifactSpec, Artifact]) -> ArtifactSpec:
    artifact = have.get(spec)
    if artifact is None:
        return spec
    exact = artifact.commit if provider_of(spec) == GIT else artifact.version
    return ArtifactSpec(spec.remote, exact or spec.branch, spec.options)


def _write_spec(spec: ArtifactSpec) -> str:
    is_pypi = provider_of(spec) == WHEEL and not spec.remote.startswith(WHEEL_SIGN)
    return f"{spec.remote}{':' if is_pypi else '@'}{spec.branch}"


def _write_reference(reference: ArtifactSpec | ReferenceRule, tvms: Tvms) -> str:
    """Name the config's reference or, where it names none, the one found here; several are found on the host anew."""
    if not isinstance(reference, ReferenceRule):
        return _write_spec(reference)
    found = {_write_spec(_to_spec(tvm, artifact)) for tvm, artifact in tvms.references.items()}
    return found.pop() if len(found) == 1 else str(reference)


def _to_spec(tvm: ArtifactSpec, artifact: Artifact) -> ArtifactSpec:
    exact = artifact.commit if artifact.provider == GIT else artifact.version
    return ArtifactSpec(str(artifact.facts.get("remote") or tvm.remote), str(exact), tvm.options)


class Copies:
    """The artifacts, each packed once, when the first host asks for it. Safe to be used from several threads."""

    def __init__(self, artifacts: Iterable[Artifact], folder: Path) -> None:
        self._artifacts = {artifact.key: artifact for artifact in artifacts}
        self._folder = folder
        self._packing = threading.Lock()

    def list_for(self, wanted: Iterable[str], python_tag: str, machine: str) -> Mapping[str, int]:
        """Measure the bytes of each key in `wanted` that was built for this Python and kind of machine."""
        there = {"python": python_tag, "machine": machine}
        items = (self._artifacts[key] for key in dict.fromkeys(wanted))
        return {item.key: trees.walk(item.path).size_bytes for item in items if there.items() <= item.facts.items()}

    def pack(self, key: str) -> Path:
        """Pack the artifact as a tar archive; DashboardError where there is no such artifact or no room."""
        if key not in self._artifacts:
            raise DashboardError(f"{key!r:.120} is not one of tonight's TVM artifacts.")
        path = self._folder / f"tvm-{key}.tar"
        with self._packing:
            if not path.exists():
                self._write(key, path)
        return path

    def _write(self, key: str, path: Path) -> None:
        new = path.with_name(f".{path.name}")
        try:
            tree = common.walk_whole(self._artifacts[key].path)
            with tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as archive:
                trees.pack(tree, archive, key)
            os.replace(new, path)
        except OSError as error:
            raise DashboardError(
                f"{error.filename or new}: {error.strerror or error}. The TVM artifact was not sent."
            ) from error
        finally:
            new.unlink(missing_ok=True)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            for path in self._folder.glob("tvm-*.tar"):
                path.unlink()
