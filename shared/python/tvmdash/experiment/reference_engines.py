"""Engines that several experiments compare TVM with, each with all that it needs beside the dashboard's own packages.

Where the package index has torch for CUDA alone, set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
"""

from __future__ import annotations

from tvmdash.experiment.engines import Engine

ONNXRUNTIME = Engine(
    "onnxruntime",
    requirements=(
        "onnxruntime==1.31.1",
        "flatbuffers==25.12.19",
        "protobuf==7.36.2",
    ),
)
TORCH = Engine(
    "torch",
    requirements=(
        "torch==2.13.0",
        "filelock==4.2.11",
        "fsspec==2026.9.0",
        "mpmath==1.3.0",
        "networkx==3.4.2",
        "setuptools==84.2.1",
        "sympy==1.14.0",
    ),
)
