"""The versions of libraries that a process has loaded, asked of real shared libraries that answer as CUDA's do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tvmdash
from tvmdash.machine.libraries import describe_libraries

LIBRARY = Path(__file__).resolve().parents[3] / "shared" / "python"
SOURCES = {
    "libcuda.so.550.54.15": "int cuDriverGetVersion(int *v) { *v = 12040; return 0; }",
    "libcudart.so.12": "int cudaRuntimeGetVersion(int *v) { *v = 12060; return 0; }",
    "libnvrtc.so.12": "int nvrtcVersion(int *a, int *b) { *a = 12; *b = 6; return 0; }",
    "libcudnn.so.9": "unsigned long cudnnGetVersion(void) { return 90101; }",
    "libamdhip64.so.6": "int hipRuntimeGetVersion(int *v) { *v = 60342131; return 0; }",
}


def describe(folder: Path, names: list[str]) -> dict[str, str]:
    """What a process that has loaded these tells of them, and nothing of packages but of the dashboard's own."""
    code = (
        "import ctypes, json, sys; from tvmdash.machine.libraries import describe_libraries\n"
        "for path in sys.argv[1:]: ctypes.CDLL(path)\n"
        "print(json.dumps(describe_libraries()))"
    )
    argv = [sys.executable, "-c", code, *(str(folder / name) for name in names)]
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    told: dict[str, str] = json.loads(done.stdout)
    assert told.pop("tvmdash") == tvmdash.__version__
    return told


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    made = tmp_path_factory.mktemp("libraries")
    for name, source in {**SOURCES, "libcudnn.so.8": "unsigned long cudnnGetVersion(void) { return 8902; }"}.items():
        argv = [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(made / name), "-"]
        subprocess.run(argv, input=source, text=True, check=True)
    return made


def test_each_loaded_library_says_its_version(folder: Path) -> None:
    assert describe(folder, list(SOURCES)) == {
        "cuda_driver_api": "12.4",
        "cuda": "12.6",
        "nvrtc": "12.6",
        "cudnn": "9.1.1",
        "hip": "6.3.42131",
    }


def test_versions_before_9_of_cudnn_are_counted_otherwise(folder: Path) -> None:
    assert describe(folder, ["libcudnn.so.8"]) == {"cudnn": "8.9.2"}


def test_a_process_without_them_tells_nothing(folder: Path) -> None:
    assert describe(folder, []) == {}


def test_each_imported_package_says_its_version_and_the_standard_library_none() -> None:
    told = describe_libraries()
    assert told["pytest"] == pytest.__version__
    assert not {"json", "re", "ctypes"} & told.keys()
