"""The stand-in of tvm-ffi: one compiled function."""

import ctypes
from pathlib import Path

__version__ = "0.1.0"
answer = ctypes.CDLL(str(Path(__file__).parent / "lib" / "libtvm_ffi.so")).answer
