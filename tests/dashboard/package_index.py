"""A package index of small stand-ins for TVM, in a folder that pip is led to by variables."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

NOWHERE = {
    "PIP_INDEX_URL": "http://127.0.0.1:9",
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "0",
}
"""Variables that lead pip to an index that is out of reach."""

HEALTHY = """
import json
from types import SimpleNamespace
import numpy

__version__ = "0.0"
def compile(module, target): return module
def cpu(): return "cpu"
def same(one, other): assert one == other
class Tensor:
    def __init__(self, array): self.array = array
    def numpy(self): return self.array
def main(x, weight): return Tensor(numpy.maximum(x.array @ weight.array, 0))
script = SimpleNamespace(from_source=lambda text: text)
target = SimpleNamespace(Target=dict)
ir = SimpleNamespace(save_json=json.dumps, load_json=json.loads, assert_structural_equal=same)
runtime = SimpleNamespace(tensor=Tensor)
relax = SimpleNamespace(
    get_pipeline=lambda name: lambda module: module, VirtualMachine=lambda executable, device: {"main": main}
)
"""
"""What the health check asks of a TVM."""


def make_index(folder: Path, releases: Mapping[str, str]) -> dict[str, str]:
    """A package index with a tvm-ffi and releases of TVM, each with this code; the variables that lead pip to it."""
    folder.mkdir()
    write_wheel(folder, "apache_tvm_ffi", "0.1.14", {"tvm_ffi/__init__.py": '__version__ = "0.1.14"\n'})
    for version, code in releases.items():
        files = {"tvm/__init__.py": code, "tvm/_version.py": "__commit_id__ = None\n", "tvm/libtvm.so": "x"}
        write_wheel(folder, "apache_tvm", version, files)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}


def add_nightly(page: Path, number: int, *, code: str = HEALTHY, commit: str = "", extra: str = "") -> None:
    """A nightly wheel of TVM, as MLC names them, on a page of links."""
    page.mkdir(exist_ok=True)
    version = f'__commit_id__ = "g{commit}"\n' if commit else "__commit_id__ = None\n"
    files = {"tvm/__init__.py": code, "tvm/_version.py": version, "tvm/libtvm.so": f"x{number}{extra}"}
    write_wheel(page, "mlc_ai_nightly_cpu", f"0.26.dev{number}", files, needs=("apache-tvm-ffi>=0.1.13",))


def write_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str | bytes], needs: Sequence[str] = ()
) -> None:
    info = f"{name}-{version}.dist-info"
    wanted = "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wanted}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
