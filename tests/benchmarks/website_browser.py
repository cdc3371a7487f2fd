"""What a reader waits for, in headless Chromium: `python tests/benchmarks/website_browser.py [--home HOME]`.

The explorer of a home of 500 series and 1,825 nights behind the nginx of docs/how-to/serve.md (where it is installed)
and behind `dashboard serve`: milliseconds from the start of the navigation to the first drawn chart, in a browser with
an empty cache, and bytes sent. Then 50 series of 10,000 nights on one chart: the frame after each of 20 zooms by the
wheel, and after each of 60 movements of the mouse.
Needs chromium and tests/requirements.txt. Beside each round stands what an empty page takes, for a busy machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [
    str(REPO / "tests"),
    str(REPO / "tests" / "browser"),
    str(REPO / "tests" / "benchmarks"),
    str(REPO / "shared" / "python"),
]
import make_site_home  # noqa: E402 - from the repository
import quiet_chromium  # noqa: E402
import site_nginx  # noqa: E402
from site_truth import Truth  # noqa: E402
from synthetic_site import make_site  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FILES = 40
_ZOOMS = """async () => {
  const over = document.querySelector("#chart .u-over"), box = over.getBoundingClientRect(), took = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const begin = performance.now();
    over.dispatchEvent(new WheelEvent("wheel", {clientX: box.left + 300, clientY: box.top + 99, ctrlKey: true,
                                                deltaY: turn % 2 ? 100 : -100, bubbles: true, cancelable: true}));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    took.push(performance.now() - begin);
  }
  return took;
}"""
_MOVES = """async () => {
  const over = document.querySelector("#chart .u-over"), box = over.getBoundingClientRect(), took = [];
  for (let turn = 0; turn < 60; turn += 1) {
    const begin = performance.now();
    const clientX = box.left + 20 + turn * 10;
    over.dispatchEvent(new MouseEvent("mousemove", {clientX, clientY: box.top + 99, bubbles: true}));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    took.push(performance.now() - begin);
  }
  return took;
}"""
_SENT = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((one) => [one.name.replace(/^.*?[/]([^/]*)$/, "$1") || "page", one.encodedBodySize])"""
_ICON = """(async () => {
  while (!location.href.endsWith("icon.svg") || document.readyState !== "complete")
    await new Promise(done => setTimeout(done, 50));
  return performance.getEntriesByType("navigation")[0].domComplete;
})()"""
_FIRST_CHART = """(async () => {
  while (!performance.getEntriesByName("first chart").length) await new Promise(done => setTimeout(done, 100));
  await new Promise(done => setTimeout(done, 500));
  return performance.getEntriesByName("first chart")[0].startTime;
})()"""


@contextmanager
def served(argv: list[str], environment: dict[str, str]) -> Iterator[str]:
    """The address that a server says."""
    process = subprocess.Popen(
        argv, cwd=REPO, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        yield next(found[0] for line in process.stdout if (found := re.search(r"http://\S+?:\d+/", line)))
    finally:
        process.terminate()
        process.wait()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{REPO}:{REPO / 'shared' / 'python'}"}


@contextmanager
def behind_nginx(folder: Path, site: Path) -> Iterator[str]:
    """The address of `site` behind nginx, which keeps its own files in `folder`."""
    folder.mkdir()
    process, port = site_nginx.begun(folder, site)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.communicate()


def first_chart(address: str, rounds: int, program: str) -> None:
    """In a browser that tells nobody what it fetches, and so does nothing but load the page."""
    times, empty = [], []
    with quiet_chromium.running(program) as browser:
        for _ in range(rounds):
            with browser.page() as page:
                page.go(f"{address}icon.svg")
                empty.append(page.evaluate(_ICON))
                page.go(f"{address}explore.html")
                times.append(page.evaluate(_FIRST_CHART))
                sent = page.evaluate(_SENT)
    print(f"first chart       {in_ms(times)}; an icon alone {in_ms(empty)}")
    total = sum(size for _, size in sent)
    parts = ", ".join(f"{name} {size / 1000:.1f}" for name, size in sorted(sent, key=lambda one: -one[1])[:6])
    print(f"sent              {total / 1000:.1f} kB in {len(sent)} files: {parts}, ...")


def redraws(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    names = ",".join(f"{number:016x}" for number in range(50))
    for words, state in (("absolute", ""), ("relative", "&relative=1")):
        page.goto("about:blank")
        page.goto(f"{address}explore.html#series={names}{state}&from=all")
        page.wait_for_selector("body[data-drawn='50']", state="attached", timeout=120_000)
        page.evaluate("() => new Promise(done => setTimeout(done, 500))")
        print(f"zoom, {words}    {in_ms(frames(page, _ZOOMS))}")
        print(f"point, {words}   {in_ms(frames(page, _MOVES))}")


def frames(page: Page, script: str) -> list[float]:
    return list(page.evaluate(script))


def in_ms(times: list[float]) -> str:
    return f"median {statistics.median(times):.0f} ms, from {min(times):.0f} to {max(times):.0f}, of {len(times)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="a home with its website; by default one is made")
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--nights", type=int, default=1825)
    parser.add_argument("--rounds", type=int, default=10)
    parsed = parser.parse_args()
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        home = parsed.home or Path(place) / "home"
        if parsed.home is None:
            made = make_site_home.make_home(home, Truth(parsed.series, parsed.nights), files=FILES, subsystems=False)
            make_site_home.publish(made)
        many = make_site(Path(place) / "many", series=50, nights=10_000)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; Chromium {browser.version}")
        servers = {"serve": served([sys.executable, "-m", "dashboard", "serve", str(home)], environment())}
        if site_nginx.NGINX:
            site = home / "results" / "subsystem" / "output" / "website"
            servers["nginx"] = behind_nginx(Path(place) / "nginx", site)
        for name, server in servers.items():
            with server as address:
                print(f"behind {name}:")
                first_chart(address, parsed.rounds, program or "chromium")
        argv = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(many)]
        with served(argv, environment()) as address:
            redraws(browser, address)
        print(f"load after: {os.getloadavg()[0]:.1f}")
        browser.close()


if __name__ == "__main__":
    main()
