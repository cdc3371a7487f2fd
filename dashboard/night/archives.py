"""The archives of the home before and after a night; one that cannot be made is told, and costs the night nothing."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

from dashboard.archive import archive, remote
from dashboard.artifacts.artifact import MANIFEST
from dashboard.artifacts.spec import WHEEL
from dashboard.night.context import Context
from dashboard.night.journal import Journal
from dashboard.plan.reference import NIGHTS_BACK
from tvmdash.dashboard_info import MissingBackup
from tvmdash.errors import DashboardError
from tvmdash.text import format_list

_log = logging.getLogger("night")


BEFORE, AFTER = "before", "after"


def make_archive(context: Context, journal: Journal, moment: str) -> bool:
    """Archive the home before or after the night; whether its copy, where it has one, is up to date now.

    Only after the night something is copied: a storage that is slow keeps nobody from measuring, and the archive made
    before is sent with the one made after.
    """
    config = context.plan.config
    try:
        done = archive.archive(
            context.home.root,
            config.backup,
            f"{context.stamp}-{moment}",
            exclude=(*config.folders,),
            beside=_list_references_to_keep(context, journal),
        )
    except DashboardError as error:
        _log.warning("%s", error)
        missing = (*journal.night.missing_backups, MissingBackup(moment, str(error)))
        journal.change(missing_backups=missing)
        journal.note(f"Archiving the home {moment} the night failed: {error}")
        return False
    if not done.complete:
        journal.note(f"The archive {moment} the night is incomplete: {format_list(done.skipped, 3)}")
    _log.info("archived the home %s the night: %d new files, %d bytes", moment, done.new_files, done.new_bytes)
    _prune(context, journal)
    return moment == AFTER and bool(config.backup_copy) and _push(context, journal)


def _push(context: Context, journal: Journal) -> bool:
    """Send what the object storage lacks; whether it has all now. What cannot be sent is sent by the next night."""
    config = context.plan.config
    try:
        pushed = remote.RemoteBackup(config.backup_copy, remote.LIMIT_S).push(config.backup)
    except DashboardError as error:
        _log.warning("%s", error)
        journal.change(missing_backups=(*journal.night.missing_backups, MissingBackup(AFTER, str(error))))
        journal.note(f"Copying the archives failed: {error}")
        return False
    if pushed.mended:
        journal.note(remote.describe_mended(config.backup_copy, pushed.mended))
    _log.info("copied the archives to %s: %d files, %d bytes", config.backup_copy, pushed.files, pushed.sent_bytes)
    return True


def _list_references_to_keep(context: Context, journal: Journal) -> dict[str, Path]:
    """The releases that this night or the last one measured against, which the package index may drop one day.

    And the wheels that the last nights measured of other sources: a page of nightly wheels drops the old ones.
    """
    home, config = context.home, context.plan.config
    nights = itertools.chain([journal.night], home.last_nights(NIGHTS_BACK, jobs=False))
    newest = next((night.references for night in nights if night.references), ())
    keys = {reference.key for reference in newest if reference.provider == WHEEL}
    keys |= {
        str(entry["key"])
        for night in nights
        for entry in night.artifacts
        if entry.get("provider") == WHEEL
        and (entry.get("facts") or {}).get("source")
        and (config.artifacts / str(entry["key"]) / MANIFEST).is_file()
    }
    place = home.references.relative_to(home.root)
    return {f"{place}/{key}": config.artifacts / key for key in sorted(keys)}


def _prune(context: Context, journal: Journal) -> None:
    config = context.plan.config
    try:
        archive.prune(config.backup, config.keep_archives)
    except DashboardError as error:
        _log.warning("%s", error)
        journal.note(f"Removing old archives failed: {error}")
