"""The commands that list, restore and verify a home's archives."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from dashboard.cli.arguments import OK_CODE, Verbs, make_absolute
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    restore = verbs.add_parser("restore", help="restore a home from its backup_dir; without TARGET, list the archives")
    restore.add_argument("backup", metavar="BACKUP_DIR", help="the folder, or the s3://BUCKET/FOLDER of its copy")
    restore.add_argument(
        "target",
        type=make_absolute,
        metavar="TARGET",
        nargs="?",
        help="folder to restore to; must be empty or not exist yet",
    )
    restore.add_argument("--archive", metavar="NAME", help="archive to restore (default: the newest)")
    restore.set_defaults(verb=_restore)
    verify = verbs.add_parser("verify", help="read back and verify every archive in a backup_dir")
    verify.add_argument("backup", metavar="BACKUP_DIR", help="the folder, or the s3://BUCKET/FOLDER of its copy")
    verify.set_defaults(verb=_verify)


def _restore(arguments: argparse.Namespace) -> int:
    with _open_backup(arguments.backup) as backup:
        return _restore_from(backup, arguments)


def _restore_from(backup: Path, arguments: argparse.Namespace) -> int:
    from dashboard.archive import archive

    archives = archive.archives(backup)
    if arguments.target is None:
        for info in archives:
            print(f"{info.name}  {info.total_files} files  {info.broken or 'sound'}")
        count = f"{len(archives)} archive{'' if len(archives) == 1 else 's'}"
        print(f"{count}. To restore, give a target folder; --archive NAME selects an older archive.")
        return OK_CODE
    archive.restore(backup, arguments.archive, arguments.target)
    print(f"Restored {arguments.archive or archives[-1].name} to {arguments.target}.")
    return OK_CODE


def _verify(arguments: argparse.Namespace) -> int:
    from dashboard.archive import archive

    with _open_backup(arguments.backup) as backup:
        archive.verify(backup, None)
    print(f"{arguments.backup}: all archives are intact.")
    return OK_CODE


@contextlib.contextmanager
def _open_backup(named: str) -> Iterator[Path]:
    """Open the named folder of archives, or fetch the object storage that is named."""
    from dashboard.archive import remote

    if remote.is_remote(named):
        with remote.pulled(named) as folder:
            yield folder
        return
    _refuse_home(Path(named))
    yield Path(named)


def _refuse_home(backup: Path) -> None:
    """Raise DashboardError for a missing folder, and for a home, saying where that home's archives are."""
    from dashboard.plan.home_config import read_home_config

    if not backup.is_dir():
        raise DashboardError(f"{backup}: no such folder. Give the backup_dir of a home.")
    home = Home(make_absolute(str(backup)))
    if home.config_file.is_file() and not (backup / "archives").is_dir():
        backup_dir = read_home_config(home).backup
        raise DashboardError(f"{backup}: this is a home, not a backup folder. Give its backup_dir: {backup_dir}.")
