"""An artifact, one proven TVM build, and the manifest that makes its folder count as one."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact

MANIFEST = "artifact.json"
SCHEMA_VERSION = 1
LAST_USED = "last_used"
"""An empty file in the artifact's folder; its modification time is when a night last used the artifact."""
RUNTIMES, RUNTIME_MANIFEST = "devices", "runtime.json"
"""The folder of an artifact's runtimes of devices, and the file that makes a folder in it count as one."""
CUDA = Path("nvidia/cu13")
"""The place of CUDA in NVIDIA's packages, within the folder that pip installed them into."""

_FIELDS = frozenset(
    (
        "schema_version",
        "key",
        "provider",
        "version",
        "commit",
        "pythonpath",
        "library_path",
        "facts",
        "refused",
        "sizes_bytes",
    )
)
_REMEDY = "The artifact is ignored and rebuilt when it is next needed."


class ArtifactError(DashboardError):
    """TVM cannot be provided; the message says which, why, and what to do."""


@dataclass(frozen=True)
class ArtifactSpec:
    """The TVM that a home or an experiment asks for: its `tvm_remote` and `tvm_branch`, and how it is built.

    `options` are names and values for a source build's CMake, sorted by name; a wheel has none.
    """

    remote: str
    branch: str
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, remote: str, branch: str, options: Mapping[str, str]) -> ArtifactSpec:
        return cls(remote, branch, tuple(sorted(options.items())))

    @property
    def shown(self) -> str:
        """The remote as records and people see it: without the secrets of an address."""
        return redact(self.remote)


@dataclass(frozen=True)
class Artifact:
    """One proven TVM build.

    `pythonpath`, `library_path`: absolute, of TVM alone; see `import_path`, `loader_path` for what a stage needs.
    `commit` is None where the build does not say. `facts` are for people and records. `refused` holds what was
    tried on the way and why it was not taken. `sizes_bytes` are those of the libraries, by path within `path`.
    `unproved` are folders of runtimes that are being made for it.
    """

    key: str
    provider: str
    version: str
    commit: str | None
    path: Path
    pythonpath: tuple[Path, ...]
    library_path: tuple[Path, ...]
    facts: Mapping[str, str]
    refused: Mapping[str, str]
    sizes_bytes: Mapping[str, int]
    unproved: tuple[Path, ...] = ()

    @property
    def runtimes(self) -> tuple[Path, ...]:
        """The folders of the runtimes of devices that were built beside it; see `artifacts.runtimes`."""
        # A folder without its manifest is a runtime that was never finished.
        kept = sorted(file.parent for file in self.path.glob(f"{RUNTIMES}/[!.]*/{RUNTIME_MANIFEST}"))
        return (*kept, *self.unproved)

    @property
    def loader_path(self) -> tuple[Path, ...]:
        """The folders for the front of a stage's LD_LIBRARY_PATH: libraries, and the runtimes of devices."""
        return (*self.library_path, *self.runtimes, *(root / "lib" for root in self._cuda))

    @property
    def import_path(self) -> tuple[Path, ...]:
        """The folders for the front of a stage's PYTHONPATH: TVM, and modules that the runtimes of devices import."""
        return (*self.pythonpath, *self.runtimes)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of a process that uses TVM, beside those paths."""
        return {"CUDA_PATH": str(self._cuda[0])} if self._cuda else {}

    @property
    def _cuda(self) -> tuple[Path, ...]:
        return tuple(folder / CUDA for folder in self.runtimes if (folder / CUDA).is_dir())

    def identity(self) -> dict[str, Any]:
        """Return the fields by which records and nights refer to it."""
        return {
            "key": self.key,
            "provider": self.provider,
            "version": self.version,
            "commit": self.commit,
            "facts": dict(self.facts),
        }


def python_tag() -> str:
    """Return the running Python as wheels name it, as in cp311."""
    return f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"


def runs_here(artifact: Artifact) -> bool:
    return (artifact.facts.get("python"), artifact.facts.get("machine")) == (python_tag(), platform.machine())


def library_sizes(path: Path, folders: tuple[Path, ...]) -> dict[str, int]:
    """Measure every shared library below `folders`, by its path within `path`."""
    libraries = sorted(
        folder / entry.path
        for folder in folders
        for entry in trees.walk(folder).entries
        if fnmatch(entry.name, "*.so*") and (folder / entry.path).is_file()
    )
    return {library.relative_to(path).as_posix(): library.stat().st_size for library in libraries}


def write_manifest(artifact: Artifact) -> None:
    value = {
        "schema_version": SCHEMA_VERSION,
        "key": artifact.key,
        "provider": artifact.provider,
        "version": artifact.version,
        "commit": artifact.commit,
        "pythonpath": [folder.relative_to(artifact.path).as_posix() for folder in artifact.pythonpath],
        "library_path": [folder.relative_to(artifact.path).as_posix() for folder in artifact.library_path],
        "facts": dict(artifact.facts),
        "refused": dict(artifact.refused),
        "sizes_bytes": dict(artifact.sizes_bytes),
    }
    common.write_json(artifact.path / MANIFEST, value)


def read_artifact(path: Path) -> Artifact:
    """Read the artifact in `path`; ArtifactError where the manifest or a library is not as it was built."""
    manifest = path / MANIFEST
    try:
        value = common.read_json(manifest, max_bytes=1 << 20)
    except DashboardError as error:
        raise ArtifactError(f"{error} {_REMEDY}") from error
    try:
        artifact = _parse(path, value)
    except ValueError as error:
        raise ArtifactError(f"{manifest}: {error}. {_REMEDY}") from error
    _check_libraries(artifact)
    return artifact


def _parse(path: Path, value: common.Json) -> Artifact:
    if not isinstance(value, dict):
        raise ValueError("$: not an object")
    if value.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"$.schema_version: {value.get('schema_version')!r} is not {SCHEMA_VERSION}")
    if set(value) != _FIELDS:
        raise ValueError(f"$: missing or unknown fields: {', '.join(sorted(set(value) ^ _FIELDS))}")
    if value["key"] != path.name:
        raise ValueError(f"$.key: {value['key']!r} does not match the folder name")
    return Artifact(
        key=path.name,
        provider=_text(value["provider"], "$.provider"),
        version=_text(value["version"], "$.version"),
        commit=None if value["commit"] is None else _text(value["commit"], "$.commit"),
        path=path,
        pythonpath=_folders(path, value["pythonpath"], "$.pythonpath"),
        library_path=_folders(path, value["library_path"], "$.library_path"),
        facts=_texts(value["facts"], "$.facts"),
        refused=_texts(value["refused"], "$.refused"),
        sizes_bytes=_sizes(value["sizes_bytes"], "$.sizes_bytes"),
    )


def _text(value: common.Json, json_path: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{json_path}: {value!r} is not a text")
    return value


def _texts(value: common.Json, json_path: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{json_path}: not an object")
    return {name: _text(item, f"{json_path}.{name}") for name, item in value.items()}


def _inside(value: common.Json, json_path: str) -> str:
    """Return a path that cannot lead out of the artifact's folder."""
    parts = PurePosixPath(_text(value, json_path))
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError(f"{json_path}: {value!r} points outside the artifact's folder")
    return parts.as_posix()


def _folders(path: Path, value: common.Json, json_path: str) -> tuple[Path, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{json_path}: not a list")
    return tuple(path / _inside(item, f"{json_path}[{index}]") for index, item in enumerate(value))


def _sizes(value: common.Json, json_path: str) -> dict[str, int]:
    if not isinstance(value, dict) or not value:
        raise ValueError(f"{json_path}: no library listed")
    for name, size_bytes in value.items():
        # Not isinstance: true and false are ints, and no sizes.
        if type(size_bytes) is not int:
            raise ValueError(f"{json_path}.{name}: {size_bytes!r} is not a whole number")
    return {_inside(name, json_path): size_bytes for name, size_bytes in value.items()}


def _check_libraries(artifact: Artifact) -> None:
    for name, size_bytes in artifact.sizes_bytes.items():
        library = artifact.path / name
        try:
            found_bytes = library.stat().st_size
        except OSError as error:
            raise ArtifactError(f"{library}: {error.strerror}. {_REMEDY}") from error
        if found_bytes != size_bytes:
            raise ArtifactError(f"{library}: {found_bytes} bytes, but {size_bytes} when it was built. {_REMEDY}")
