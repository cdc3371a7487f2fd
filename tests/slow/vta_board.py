"""A board's stand-in for as long as its standard input is open: VTA's simulator as `pynq` behind a tracker.

It says the tracker's port on standard output, and on standard error what a board is asked for before it is measured.
"""

from __future__ import annotations

import sys

HOST = "127.0.0.1"


def ready() -> None:
    """What each session's process does first: load the simulator, and have the functions of a board's server."""
    import tvm
    from vta.testing import simulator  # noqa: F401 - loads the library

    @tvm.register_func("tvm.contrib.vta.reconfig_runtime", override=True)
    def reconfigure(config: str) -> None:
        sys.stderr.write(f"geometry {config}\n")

    @tvm.register_func("tvm.contrib.vta.init", override=True)
    def program(bitstream: str) -> None:
        sys.stderr.write(f"programmed {bitstream}\n")


if __name__ == "__main__":
    from tvm import rpc
    from tvm.rpc.tracker import Tracker

    tracker = Tracker(HOST, 9190, 9290, silent=True)
    at = (HOST, tracker.port)
    server = rpc.Server(HOST, 9390, 9490, key="pynq", tracker_addr=at, server_init_callback=ready, silent=True)
    sys.stdout.write(f"{tracker.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
