"""Link compiled modules for loading elsewhere."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.measure.prebuilt import MOST_LAYOUTS

LINKERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
"""Linkers that TVM tries as well."""
_STEP, _STEPS, _STRIDE = 16, MOST_LAYOUTS + 1, 167
"""Code begins at multiples of 16 bytes; a page has so many steps, which layouts visit without a pattern."""


def link(executable: Any, stem: Path, *, device: str, cc: str, is_here: bool = False, layout: int = 0) -> Path:
    """Link the module beside `stem`: a shared library, or an archive where the device has to link.

    cc: the compiler that links for the device of that name. is_here: it is this machine, whose own linker will do.
    layout: on this machine, another number moves the same code elsewhere; 0 leaves it where it comes to lie.
    """
    path = stem.with_suffix(".so" if cc or is_here else ".tar")
    if cc:
        executable.export_library(str(path), fcompile=_links_with(device, cc))
    elif is_here:
        linker = _find_linker()
        executable.export_library(str(path), addons=[_make_front(linker, stem, layout)] if layout else None)
    else:
        executable.export_library(str(path))
    return path


def _find_linker() -> list[str]:
    named = os.environ.get("CXX") or os.environ.get("CC") or next(filter(shutil.which, LINKERS), None)
    if not named:
        raise DashboardError(f"no C compiler for linking: none of {', '.join(LINKERS)} is on the PATH. Install gcc.")
    return shlex.split(named)


def _make_front(linker: Sequence[str], stem: Path, layout: int) -> str:
    """Make an object file that, linked before the module's, moves all code of it by up to a page."""
    made = stem.with_suffix(".front.o")
    # without the note the linker makes the stack executable
    text = f'.text\n.skip {layout * _STRIDE % _STEPS * _STEP}\n.section .note.GNU-stack,"",%progbits\n'
    argv = [*linker, "-c", "-x", "assembler", "-o", str(made), "-"]
    _run(argv, f"layout {layout}: {linker[0]} cannot assemble", text)
    return str(made)


def _links_with(device: str, cc: str) -> Callable[..., None]:
    def run(output: str, objects: list[str] | str, **_: Any) -> None:
        parts = [objects] if isinstance(objects, str) else objects
        _run([*shlex.split(cc), "-shared", "-fPIC", "-o", output, *parts], f"$.devices.{device}.cc: {cc} cannot link")

    return run


def _run(argv: Sequence[str], problem: str, text: str | None = None) -> None:
    """Run a command with this input; DashboardError quotes its errors where it fails."""
    try:
        subprocess.run(argv, input=text, check=True, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", None) or str(error)
        raise DashboardError(f"{problem}: {message.strip()[-400:]}") from error
