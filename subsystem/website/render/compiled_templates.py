"""Compiled templates, kept where Python keeps compiled modules (`__pycache__`, PYTHONPYCACHEPREFIX), as it does."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import marshal
import sys
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache, bc_magic

from tvmdash import common


class CompiledTemplates(BytecodeCache):
    """What templates of this version of the code compile to; anything else in a file is as good as no file."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        self._made_by = bc_magic + importlib.util.MAGIC_NUMBER + f"{version} {folder}".encode()

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The name that a file is known by."""
        return name.replace(".", "-")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket where its template was compiled before."""
        with contextlib.suppress(OSError, EOFError, ValueError, TypeError):
            head, content = self._head(bucket), self._place(bucket).read_bytes()
            if content.startswith(head):
                bucket.code = marshal.loads(content[len(head) :])  # noqa: S302 - where Python loads its own

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what is in the bucket where that may be."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                path = self._place(bucket)
                path.parent.mkdir(parents=True, exist_ok=True)
                common.write_bytes(path, self._head(bucket) + marshal.dumps(bucket.code), durable=False)

    def _head(self, bucket: Bucket) -> bytes:
        return hashlib.sha256(self._made_by + bucket.checksum.encode()).digest()

    def _place(self, bucket: Bucket) -> Path:
        return Path(importlib.util.cache_from_source(str(self._folder / f"{bucket.key}.py")))
