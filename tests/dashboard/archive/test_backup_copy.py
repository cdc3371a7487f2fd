"""What is said of a copy in object storage where it cannot be had; tests/slow/test_object_storage.py has the rest."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from dashboard.archive.remote import RemoteBackup, check_url
from tests.dashboard.homes import HomeForTests, make_home
from tvmdash.errors import DashboardError


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts")
    made.subsystem()
    return made


def test_a_bad_address_is_a_fault_of_the_config(home: HomeForTests) -> None:
    home.configure(backup_copy="s3:/backups")
    done = home.run()
    assert done.code == 2
    assert "$.backup_copy: 's3:/backups' is not an object storage URL. Use s3://BUCKET/FOLDER." in done.output


@pytest.mark.parametrize("url", ["s3://b", "s3://b/", "s3://BUCKET/x", "s3://buc ket/x", "gs://bucket/x", "s3://b?x=1"])
def test_what_names_no_folder_of_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(DashboardError, match="is not an object storage URL"):
        check_url(url)
    assert check_url("s3://bucket.of-ours/a/b/") == "s3://bucket.of-ours/a/b"


@pytest.mark.skipif(importlib.util.find_spec("s3fs") is not None, reason="s3fs is installed")
def test_without_s3fs_a_night_keeps_its_archive_and_says_what_to_install(home: HomeForTests) -> None:
    home.configure(backup_copy="s3://bucket/home")
    done = home.run()
    assert done.code == 1
    assert "pip install --no-deps --require-hashes -r requirements-s3-hashes.txt" in done.output
    assert len(list((home.root / "backup" / "archives").glob("*.json"))) == 2
    with pytest.raises(DashboardError, match="object storage needs s3fs"):
        RemoteBackup("s3://bucket/home")
