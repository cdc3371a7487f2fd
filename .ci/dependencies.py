"""What the package depends on: the pins of requirements.txt, which stand nowhere else. Called by hatchling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Pins(MetadataHookInterface):
    """Fills in `dependencies`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add them to the project's metadata."""
        lines = (Path(self.root) / "requirements.txt").read_text(encoding="utf-8").splitlines()
        pins = (line.partition(" #")[0].strip() for line in lines)
        metadata["dependencies"] = [pin for pin in pins if pin and not pin.startswith("#")]
