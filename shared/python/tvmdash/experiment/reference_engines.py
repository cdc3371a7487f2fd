"""Engines that several experiments compare TVM with, each with all that it needs beside the dashboard's own packages.

PyPI's torch for Linux is the one for CUDA, which does not load without CUDA's libraries: the one for processors comes
from PyTorch's own index, and where that cannot be reached, PyPI's with those libraries (3 GB to download). Engines for
cards bring CUDA 13.0 with them, which TVM's wheel gets as well, and need NVIDIA's driver alone.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from tvmdash.experiment.engines import Engine

_CUDA = (
    "nvidia-cublas==13.1.1.3",
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cudnn-cu13==9.20.0.48",
    "nvidia-cufft==12.0.0.61",
    "nvidia-curand==10.4.0.35",
    "nvidia-nvjitlink==13.0.88",
)
_OF_ONNXRUNTIME = ("flatbuffers==25.12.19", "protobuf==7.36.2")
_OF_TORCH = (
    "filelock==4.2.11",
    "fsspec==2026.9.0",
    "mpmath==1.3.0",
    "networkx==3.4.2",
    "setuptools==84.2.1",
    "sympy==1.14.0",
)
ONNXRUNTIME = Engine("onnxruntime", ("onnxruntime==1.31.1", *_OF_ONNXRUNTIME))
ONNXRUNTIME_CUDA = Engine(
    "onnxruntime cuda",
    ("onnxruntime-gpu==1.31.1", *_OF_ONNXRUNTIME, *_CUDA),
    device="cuda",
    instead_of=ONNXRUNTIME.name,
)
TORCH_CUDA = Engine(
    "torch cuda",
    (
        "torch===2.13.0",  # three signs: not 2.13.0+cpu, which knows no card
        *_OF_TORCH,
        *_CUDA,
        "cuda-bindings==13.0.3",
        "cuda-pathfinder==1.9.0",
        "nvidia-cuda-cupti==13.0.85",
        "nvidia-cufile==1.15.1.6",
        "nvidia-cusolver==12.0.4.66",
        "nvidia-cusparse==12.6.3.3",
        "nvidia-cusparselt-cu13==0.8.1",
        "nvidia-nccl-cu13==2.29.7",
        "nvidia-nvshmem-cu13==3.4.5",
        "nvidia-nvtx==13.0.85",
        "triton==3.7.1",
    ),
    device="cuda",
    instead_of="torch",
)
_ON_LINUX = sys.platform == "linux"
TORCH = Engine(
    TORCH_CUDA.instead_of,
    ("torch==2.13.0+cpu" if _ON_LINUX else "torch==2.13.0", *_OF_TORCH),
    pip_options=("--extra-index-url", "https://download.pytorch.org/whl/cpu"),
    otherwise=TORCH_CUDA if _ON_LINUX else None,
)


def with_onnx(engine: Engine) -> Engine:
    """Return the engine with the package that makes its models."""
    return replace(engine, requirements=(*engine.requirements, "onnx==1.23.2"))
