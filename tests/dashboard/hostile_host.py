"""What stands in for ssh to hosts that send anything: a worker that follows the conversation until it does not.

hostile_host.py ADDRESS     the address says what it sends instead
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from typing import Any

ESCAPES = "\x1b]0;owned\x07\x1b[31mred"
OLD_STAMP = "20200101T031500Z"
UNPLANNED = 5000


def send(kind: str, content: bytes = b"", **fields: Any) -> None:
    send_line(json.dumps({"kind": kind, "bytes": len(content), **fields}).encode())
    write(content)


def send_line(line: bytes) -> None:
    write(line + b"\n")


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def receive() -> dict[str, Any]:
    """The next message of the home that is no beat; its bytes are read and forgotten."""
    while True:
        message: dict[str, Any] = json.loads(sys.stdin.buffer.readline() or b'{"kind": "Beat", "bytes": 0, "end": 1}')
        sys.stdin.buffer.read(message["bytes"])
        if "end" in message:
            sys.exit(0)
        if message["kind"] != "Beat":
            return message


def greet(**changes: Any) -> None:
    send_line(b"tvm-dashboard-worker have")
    hello = {
        "protocol": 1, "node": "box", "hw_model": "cpu", "python": "3.11.7", "python_tag": "cp311",
        "machine": "x86_64", "unix_s": time.time(), "free_bytes": 10**9,
    }  # fmt: skip
    send("Hello", **{**hello, **changes})


def measure() -> str:
    """Everything up to the offers; the night's stamp."""
    greet()
    begin = receive()
    send("Ready")
    send("Ended", why="", interrupted=False)
    receive()
    return str(begin["stamp"])


def hand_over(stamp: str, files: Mapping[str, bytes], parcels: int = 1) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    offer(stamp, buffer.getvalue(), parcels)


def offer(stamp: str, parcel: bytes, parcels: int = 1) -> None:
    send("Holds", parcels=parcels)
    for _ in range(parcels):
        send("Offer", parcel, id=hashlib.sha256(parcel).hexdigest(), stamp=stamp)
        receive()


def make_night(stamp: str, *jobs: str, **changes: Any) -> bytes:
    step = {"stage": "run", "state": "ok", "message": "done", "stamp": stamp}
    made = [
        {"kind": "experiment", "name": name, "title": name, "description": "", "steps": [{**step, **changes}]}
        for name in jobs
    ]
    return json.dumps({"stamp": stamp, "state": "complete", "jobs": made}).encode()


def send_infinite_size() -> None:
    greet()
    receive()
    send_line(b'{"kind": "Ended", "bytes": Infinity, "why": "", "interrupted": false}')
    receive()


def send_negative_size() -> None:
    measure()
    send("Holds", parcels=1)
    send_line(b'{"kind": "Offer", "bytes": -5, "id": "%s", "stamp": "20261121T031500Z"}' % (b"0" * 64))
    receive()


def send_deep_json() -> None:
    greet()
    receive()
    send_line(b'{"kind": "Ended", "bytes": 0, "why": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    receive()


def send_sparse_file() -> None:
    """A parcel of a few blocks, of which one says that it is a file of 3 GB with a hole."""
    stamp, size = measure(), 3_200_000_000
    member = tarfile.TarInfo(f"raw/plain~sparse/raw_{stamp}/hole")
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": str(size),
                          "GNU.sparse.realsize": str(size), "GNU.sparse.map": f"0,0,{size},0"}  # fmt: skip
    night = tarfile.TarInfo("night.json")
    content = make_night(stamp, "plain~sparse")
    night.size = len(content)
    blocks = night.tobuf(tarfile.PAX_FORMAT) + content + b"\0" * (-len(content) % 512)
    offer(stamp, blocks + member.tobuf(tarfile.PAX_FORMAT) + b"\0" * 1024)


def send_unplanned_jobs() -> None:
    stamp = measure()
    names = [f"e{number}~unplanned" for number in range(UNPLANNED)]
    data = {f"data/{name}/data_{stamp}.json": b'{"value": 1}' for name in names}
    hand_over(stamp, {"night.json": make_night(stamp, *names), **data})


def send_old_night() -> None:
    measure()
    files = {
        "night.json": make_night(OLD_STAMP, "plain~old"),
        f"data/plain~old/data_{OLD_STAMP}.json": b'{"value": 1}',
    }
    hand_over(OLD_STAMP, files)


def send_nights_of_others() -> None:
    """Into the telemetry of another night."""
    stamp = measure()
    telemetry = {f"telemetry/plain~telemetry/telemetry_{OLD_STAMP}.json": b"{}"}
    hand_over(stamp, {"night.json": make_night(stamp, "plain~telemetry"), **telemetry})


def send_negative_times() -> None:
    stamp = measure()
    hand_over(stamp, {"night.json": make_night(stamp, "plain~times", elapsed_s=-1e9)})


def send_same_night_again() -> None:
    stamp = measure()
    hand_over(stamp, {"night.json": make_night(stamp, "plain~again")}, parcels=3)


def send_nothing() -> None:
    measure()
    send("Holds", parcels=0)
    receive()


def send_long_header() -> None:
    """An extended header that says it has a gigabyte."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    offer(measure(), header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 4096)


def send_headers_in_headers() -> None:
    """Each extended header is read inside the one before."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 0
    offer(measure(), header.tobuf(tarfile.USTAR_FORMAT) * 5000 + b"\0" * 1024)


def send_impossible_clock() -> None:
    greet(unix_s=1e300)
    receive()


def send_flood() -> None:
    greet()
    receive()
    beats = b'{"kind": "Beat", "bytes": 0}\n' * 1000
    while True:
        write(beats)


def send_banner_for_ever() -> None:
    while True:
        write(b"Welcome.\n" * 1000)


def send_much_to_the_log() -> None:
    for _ in range(1000):
        os.write(2, b"x" * 65535 + b"\n")
    os.write(2, f"cannot measure {ESCAPES}\n".encode())


SENDERS: Mapping[str, Callable[[], None]] = {
    "infinite": send_infinite_size,
    "negative": send_negative_size,
    "deep": send_deep_json,
    "sparse": send_sparse_file,
    "unplanned": send_unplanned_jobs,
    "old": send_old_night,
    "telemetry": send_nights_of_others,
    "times": send_negative_times,
    "again": send_same_night_again,
    "nothing": send_nothing,
    "header": send_long_header,
    "nested": send_headers_in_headers,
    "clock": send_impossible_clock,
    "flood": send_flood,
    "banner": send_banner_for_ever,
    "log": send_much_to_the_log,
}

if __name__ == "__main__":
    try:
        SENDERS[sys.argv[1]]()
    except BrokenPipeError:
        os._exit(0)
