"""Make code.json from the assembly sources, or say what an assembler of this machine makes of one of them.

    python3 experiments/canary/assemble.py            # needs GNU as and objcopy for each architecture

Only for whoever changes a source: a night reads code.json, and needs no assembler. Bytes that were once
measured stay as they are; another kernel gets another name, because its series is another one.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCHITECTURES = ("x86_64", "aarch64")
NEEDS: Mapping[str, tuple[str, ...]] = {"multiply_add_avx2": ("avx2", "fma")}
"""The processor's features, by their names in /proc/cpuinfo, that a kernel needs beyond its architecture's own."""


def source(architecture: str) -> Path:
    """The assembly source of an architecture."""
    return HERE / f"code_{architecture}.S"


def tools(architecture: str) -> tuple[str, str] | None:
    """`as` and `objcopy` for the architecture, None where this machine has none."""
    prefix = "" if platform.machine() == architecture else f"{architecture}-linux-gnu-"
    programs = shutil.which(f"{prefix}as"), shutil.which(f"{prefix}objcopy")
    return (programs[0], programs[1]) if programs[0] and programs[1] else None


def assembled(architecture: str, assembler: str, objcopy: str) -> dict[str, bytes]:
    """The bytes of each kernel (a section of its own), as the assembler makes them."""
    names = re.findall(r"^\s*\.section (\w+),", source(architecture).read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "code.o"
        subprocess.run([assembler, "-o", str(whole), str(source(architecture))], check=True)
        return {name: _section(objcopy, whole, name) for name in names}


def _section(objcopy: str, whole: Path, name: str) -> bytes:
    part = whole.with_suffix(f".{name}")
    subprocess.run([objcopy, "-O", "binary", "-j", name, str(whole), str(part)], check=True)
    return part.read_bytes()


def main() -> None:
    kernels = {}
    for architecture in ARCHITECTURES:
        pair = tools(architecture)
        if pair is None:
            sys.exit(f"{architecture}: no `as` and `objcopy` for it here. Install its binutils.")
        kernels[architecture] = {
            name: {"needs": list(NEEDS.get(name, ())), "code": code.hex()}
            for name, code in assembled(architecture, *pair).items()
        }
    (HERE / "code.json").write_text(json.dumps(kernels, indent=1) + "\n")


if __name__ == "__main__":
    main()
