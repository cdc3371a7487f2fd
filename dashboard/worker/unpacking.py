"""Archives that come from the home, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import IO


def unpack(content: IO[bytes], folder: Path) -> None:
    """Unpack the tar archive into the folder; TarError or OSError where that cannot be."""
    with tarfile.open(fileobj=content) as archive:
        # Python before 3.11.4 has no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)  # noqa: S202 - the home packed it; filtered where Python can
