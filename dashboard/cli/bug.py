"""Errors that end a verb: a problem of the disk, or a bug of ours, whose traceback is kept in a file, once."""

from __future__ import annotations

import contextlib
import errno
import getpass
import tempfile
import traceback

_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EISDIR, errno.ENOTDIR}
"""Errors of the files, not of the program."""


class KeptBugError(Exception):
    """A bug that is kept already, in `log`."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


def describe_disk_error(error: Exception) -> str:
    """Describe what is wrong with a file; empty for any other error, which is a bug."""
    if isinstance(error, PermissionError):
        return f"{error.filename}: {error.strerror} for {getpass.getuser()}. Change its owner or mode."
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        return f"{error.filename or 'A file could not be read or written'}: {error.strerror}."
    return ""


def keep_bug(error: Exception) -> str:
    """Print the traceback of what is being handled and keep it in a file; the file's path, or that there is none."""
    if isinstance(error, KeptBugError):
        return error.log
    traceback.print_exc()
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile(
            "w", prefix="dashboard-bug-", suffix=".log", delete=False, encoding="utf-8"
        ) as file,
    ):
        file.write(traceback.format_exc())
        return file.name
    return "the traceback above (it could not be saved to a file)"
