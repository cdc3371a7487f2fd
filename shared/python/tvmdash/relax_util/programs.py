"""What a process calls when it times a compiled module, as one hash."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tvmdash.networks.ops import Array
from tvmdash.relax_util.build import Compiled


def hash_program(compiled: Compiled, inputs: Sequence[Array]) -> str:
    """A hash of machine code, bytecode, weights and inputs; equal where two processes call the same with the same."""
    digest = hashlib.sha256(compiled.module_hash.encode())
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        path = Path(folder) / "module"
        with _stderr_closed():
            compiled.executable.mod.write_to_file(str(path))
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    for array in inputs:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _stderr_closed() -> Iterator[None]:
    """TVM warns of each constant that it writes; who reads the log of a night cannot do anything about it."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
