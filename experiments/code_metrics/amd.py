"""What LLVM says of AMD's kernels in the metadata of its assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping

_KEYS: Mapping[str, str] = {
    "vgpr_count": "registers",
    "sgpr_count": "scalar_registers",
    "group_segment_fixed_size": "shared_memory",
}
_SPILLS = ("vgpr_spill_count", "sgpr_spill_count")
_BYTES = 4
"""Of a register."""
_KERNEL = re.compile(r"^  - \.", re.MULTILINE)
_ENTRY = re.compile(r"^    \.(\w+): +(\S+)$", re.MULTILINE)


def read_resources(assembly: str) -> dict[str, dict[str, int]]:
    """Registers, spills in bytes and shared memory of each kernel.

    The format is LLVM's "Code Object V3 Metadata" in AMDGPUUsage.
    """
    metadata = assembly.partition("amdhsa.kernels:")[2].partition(".end_amdgpu_metadata")[0]
    kernels = {}
    for part in _KERNEL.split(metadata)[1:]:
        entries = dict(_ENTRY.findall(f"    .{part}"))
        spills = _BYTES * sum(int(entries[name]) for name in _SPILLS)
        kernels[entries["name"]] = {**{ours: int(entries[name]) for name, ours in _KEYS.items()}, "spills": spills}
    return kernels
