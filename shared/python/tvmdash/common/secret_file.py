"""Files that hold a secret: refused where others can read them or where the night's archives would contain them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError

_MAX_BYTES = 8192


@dataclass(frozen=True)
class SecretFile:
    """Path of a secret; `name` says which, as `Slack token`, `good_place` where it belongs."""

    path: Path
    name: str
    good_place: str

    def read_lines(self, home: Path) -> list[str] | None:
        """Return its lines, or None without such a file. DashboardError, quoting nothing of it, where it is unsafe."""
        try:
            # O_NONBLOCK, as opening a named pipe waits for a writer
            with open(self.path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                self._refuse_readable(os.fstat(file.fileno()), home)
                return file.read(_MAX_BYTES).decode("ascii").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError:
            problem = f"contains non-ASCII characters. Put the {self.name} on a line of its own."
            raise DashboardError(f"{self.path}: {problem}") from None
        except OSError as error:
            problem = f"cannot be read: {error.strerror}. It must belong to this user and have mode 600."
            raise DashboardError(f"{self.path}: {problem}") from None

    def _refuse_readable(self, status: os.stat_result, home: Path) -> None:
        path = self.path
        if not stat.S_ISREG(status.st_mode):
            raise DashboardError(f"{path}: not a regular file. Put the {self.name} into a file with mode 600.")
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            mode = stat.S_IMODE(status.st_mode)
            raise DashboardError(
                f"{path}: other users can read the {self.name} (mode {mode:03o}). Run: chmod 600 {path}"
            )
        if status.st_uid not in {os.getuid(), 0}:
            raise DashboardError(f"{path}: belongs to another user. Run: chown {os.getuid()} {path}")
        if home.resolve() in path.resolve().parents:
            raise DashboardError(
                f"{path}: is inside the home, so the {self.name} would be archived every night. Move it out:"
                f" mkdir -p ~/.config/tvmdash && mv {path} {self.good_place}"
            )
