"""Artifacts in a folder: what counts, who waits for whom, what is removed. Small stand-in libraries, real files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts import artifact_store, locks
from dashboard.artifacts.artifact import (
    LAST_USED,
    MANIFEST,
    RUNTIMES,
    Artifact,
    ArtifactError,
    library_sizes,
    read_artifact,
    write_manifest,
)

LIBRARY_BYTES = 1000


def put_artifact(folder: Path, key: str, *, used_at_s: float = 1.0) -> Artifact:
    path = folder / key
    site = path / "site"
    site.mkdir(parents=True)
    (site / "libtvm.so").write_bytes(b"x" * LIBRARY_BYTES)
    artifact = Artifact(
        key=key,
        provider="wheel",
        version="1.0",
        commit="7b5acb32b",
        path=path,
        pythonpath=(site,),
        library_path=(site,),
        facts={"tvm_ffi": "0.1"},
        refused={"apache-tvm-ffi 0.2": "in step import: killed by SIGSEGV"},
        sizes_bytes=library_sizes(path, (site,)),
    )
    write_manifest(artifact)
    (path / LAST_USED).touch()
    os.utime(path / LAST_USED, (used_at_s, used_at_s))
    return artifact


def change_manifest(artifact: Artifact, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = artifact.path / MANIFEST
    value = json.loads(manifest.read_text())
    change(value)
    manifest.write_text(json.dumps(value))


def test_a_manifest_reads_back_as_the_artifact_that_was_written(tmp_path: Path) -> None:
    artifact = put_artifact(tmp_path, "wheel-a")
    assert read_artifact(artifact.path) == artifact


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff\xfe", b'{"schema_version": 1}', b"{" * 100_000])
def test_an_artifact_whose_manifest_is_not_one_does_not_count(tmp_path: Path, content: bytes) -> None:
    (put_artifact(tmp_path, "wheel-a").path / MANIFEST).write_bytes(content)
    whole = put_artifact(tmp_path, "wheel-b")
    assert artifact_store.artifacts_in(tmp_path) == [whole]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema_version", 2),
        ("key", "wheel-other"),
        ("version", 27),
        ("version", ""),
        ("commit", 7),
        ("pythonpath", "site"),
        ("pythonpath", ["../wheel-b/site"]),
        ("library_path", ["/usr/lib"]),
        ("facts", ["tvm_ffi"]),
        ("facts", {"tvm_ffi": None}),
        ("sizes_bytes", {}),
        ("sizes_bytes", {"site/libtvm.so": True}),
        ("surprise", "x"),
    ],
)
def test_a_wrong_field_of_a_manifest_is_named(tmp_path: Path, field: str, value: Any) -> None:
    artifact = put_artifact(tmp_path, "wheel-a")
    change_manifest(artifact, lambda manifest: manifest.update({field: value}))
    with pytest.raises(ArtifactError, match=f"artifact.json: .*{field}"):
        read_artifact(artifact.path)


def test_a_truncated_or_missing_library_makes_an_artifact_not_count(tmp_path: Path) -> None:
    (put_artifact(tmp_path, "wheel-a").path / "site/libtvm.so").write_bytes(b"x" * 10)
    (put_artifact(tmp_path, "wheel-b").path / "site/libtvm.so").unlink()
    assert artifact_store.artifacts_in(tmp_path) == []
    with pytest.raises(ArtifactError, match=f"libtvm.so: 10 bytes, but {LIBRARY_BYTES}"):
        read_artifact(tmp_path / "wheel-a")


def test_an_artifact_without_libraries_is_not_one(tmp_path: Path) -> None:
    artifact = put_artifact(tmp_path, "wheel-a")
    change_manifest(artifact, lambda manifest: manifest.update(sizes_bytes={}))
    with pytest.raises(ArtifactError, match="no library listed"):
        read_artifact(artifact.path)


def test_waiting_for_another_builder_ends_and_says_who_builds(tmp_path: Path) -> None:
    with artifact_store.claim(tmp_path, "wheel-1.0", locks.LockDeadline(5)):
        with pytest.raises(ArtifactError, match=rf"process {os.getpid()} on .*, building wheel-1.0, since 2\d+T\d+Z"):
            artifact_store.claim(tmp_path, "wheel-1.0", locks.LockDeadline(0.2))
        artifact_store.claim(tmp_path, "wheel-2.0", locks.LockDeadline(0.2)).release()


def test_a_killed_build_does_not_count_and_is_swept_away(tmp_path: Path) -> None:
    put_artifact(tmp_path / ".building" / "wheel-1.0", "half")
    assert artifact_store.artifacts_in(tmp_path) == []
    artifact_store.sweep(tmp_path)
    assert list((tmp_path / ".building").iterdir()) == []


def test_a_build_that_goes_on_is_not_swept_away(tmp_path: Path) -> None:
    with (
        artifact_store.claim(tmp_path, "wheel-1.0", locks.LockDeadline(5)),
        artifact_store.workplace(tmp_path, "wheel-1.0") as place,
    ):
        artifact_store.sweep(tmp_path)
        artifact_store.prune(tmp_path, 0, keep=())
        assert place.is_dir()
    assert not place.exists()


def test_prune_removes_the_longest_unused_first_and_only_as_many_as_needed(tmp_path: Path) -> None:
    for key, used_at_s in (("wheel-b", 3), ("wheel-c", 1), ("wheel-a", 2)):
        put_artifact(tmp_path, key, used_at_s=used_at_s)
    one_bytes = artifact_store.prune(tmp_path, 10**9, keep=()).left_bytes // 3
    pruned = artifact_store.prune(tmp_path, 2 * one_bytes + 10, keep=())
    assert pruned.removed == ("wheel-c",)
    assert pruned.left_bytes == 2 * one_bytes
    assert [artifact.key for artifact in artifact_store.artifacts_in(tmp_path)] == ["wheel-a", "wheel-b"]
    assert list((tmp_path / ".building").iterdir()) == []


def test_prune_removes_broken_artifacts_before_any_other(tmp_path: Path) -> None:
    put_artifact(tmp_path, "wheel-old", used_at_s=1)
    (put_artifact(tmp_path, "wheel-broken", used_at_s=9).path / MANIFEST).write_text("{")
    assert artifact_store.prune(tmp_path, 2 * LIBRARY_BYTES, keep=()).removed == ("wheel-broken",)


def test_prune_never_removes_what_is_to_be_kept_or_what_a_night_uses(tmp_path: Path) -> None:
    put_artifact(tmp_path, "wheel-kept")
    used = put_artifact(tmp_path, "wheel-used")
    lease = artifact_store.use(used, locks.LockDeadline(5))
    assert lease is not None
    with lease:
        assert artifact_store.prune(tmp_path, 0, keep=("wheel-kept",)).removed == ()
    assert artifact_store.prune(tmp_path, 0, keep=("wheel-kept",)).removed == ("wheel-used",)


def test_prune_leaves_alone_what_is_not_an_artifact(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "big").write_bytes(b"x" * 5000)
    assert artifact_store.prune(tmp_path, 0, keep=()) == artifact_store.Pruned((), 0)
    assert (tmp_path / "notes" / "big").exists()


def test_prune_of_a_folder_that_is_not_there_removes_nothing(tmp_path: Path) -> None:
    assert artifact_store.prune(tmp_path / "none", 0, keep=()).removed == ()


@pytest.mark.parametrize("kept", [None, "", "[1", "5", '["many", 0]'])
def test_an_artifact_is_sized_again_once_it_has_another_runtime_or_its_size_cannot_be_read(
    tmp_path: Path, kept: str | None
) -> None:
    artifact = put_artifact(tmp_path, "wheel-a")
    before = artifact_store.prune(tmp_path, 10**9, keep=()).left_bytes
    assert before > LIBRARY_BYTES
    if kept is None:
        (artifact.path / RUNTIMES / "cuda").mkdir(parents=True)
    else:
        (artifact.path / "size.json").write_text(kept)
    (artifact.path / "site" / "more").write_bytes(b"x" * 1000)
    assert artifact_store.prune(tmp_path, 10**9, keep=()).left_bytes >= before + 1000


def test_using_an_artifact_moves_it_to_the_end_of_the_queue(tmp_path: Path) -> None:
    first = put_artifact(tmp_path, "wheel-a", used_at_s=1)
    put_artifact(tmp_path, "wheel-b", used_at_s=2)
    lease = artifact_store.use(first, locks.LockDeadline(5))
    assert lease is not None
    lease.release()
    assert artifact_store.prune(tmp_path, 2 * LIBRARY_BYTES, keep=()).removed == ("wheel-b",)


def test_an_artifact_that_was_removed_meanwhile_cannot_be_used(tmp_path: Path) -> None:
    artifact = put_artifact(tmp_path, "wheel-a")
    artifact_store.prune(tmp_path, 0, keep=())
    assert artifact_store.use(artifact, locks.LockDeadline(5)) is None
