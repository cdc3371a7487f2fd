"""Link a compiled module into what another machine can load."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tvmdash.errors import DashboardError

LINKERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
"""Where TVM looks for a linker, too."""


def link(executable: Any, stem: Path, *, device: str, cc: str, is_here: bool = False) -> Path:
    """The linked module beside `stem`: a shared library, or an archive where the device has to link.

    cc: the compiler that links for the device of that name. is_here: it is this machine, whose own linker will do.
    """
    path = stem.with_suffix(".so" if cc or is_here else ".tar")
    if cc:
        executable.export_library(str(path), fcompile=_links_with(device, cc))
    elif is_here and not _has_linker():
        raise DashboardError(f"no C compiler for linking: none of {', '.join(LINKERS)} is on the PATH. Install gcc.")
    else:
        executable.export_library(str(path))
    return path


def _has_linker() -> bool:
    return bool(os.environ.get("CXX") or os.environ.get("CC") or any(map(shutil.which, LINKERS)))


def _links_with(device: str, cc: str) -> Callable[..., None]:
    def run(output: str, objects: list[str] | str, **_: Any) -> None:
        parts = [objects] if isinstance(objects, str) else objects
        argv = [*shlex.split(cc), "-shared", "-fPIC", "-o", output, *parts]
        try:
            subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            message = getattr(error, "stderr", None) or str(error)
            raise DashboardError(f"$.devices.{device}.cc: {cc} cannot link: {message.strip()[-400:]}") from error

    return run
