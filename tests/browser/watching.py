"""A browser's page that keeps what went wrong: errors, exceptions, policy violations, requests that leave the site."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route

SIZE = {"width": 1280, "height": 720}
_LISTEN = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`));
window.alerted = [];
window.alert = (words) => window.alerted.push(String(words));
"""


class Held:
    """Requests that wait until `release`."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self._routes: list[Route] = []
        self._open = False
        page.route(pattern, self._keep)

    def _keep(self, route: Route) -> None:
        if self._open:
            route.continue_()
        else:
            self._routes.append(route)

    def release(self) -> None:
        """Wait until something was asked for, and let it through, with all that will be asked for."""
        while not self._routes:
            self._page.wait_for_timeout(20)
        self._open = True
        for route in self._routes:
            route.continue_()


class Watched:
    """`page` is Playwright's; `address` is the site's, ending with a slash."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        context.add_init_script(_LISTEN)
        self.address = address
        self.page: Page = context.new_page()
        self.faults: list[str] = []
        self._expected: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", self._failed)

    def begin(self) -> None:
        """Be as a page just opened: a new page has a process of its own, which costs as much as most tests."""
        self.page.unroute_all(behavior="ignoreErrors")
        if self.page.url.startswith(self.address):
            self.evaluate("localStorage.clear()")
        self.page.goto("about:blank")
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(SIZE)
        self.page.emulate_media(color_scheme="light")
        for left in (self.faults, self.requests, self._expected):
            left.clear()

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page was left while it was still loading
            self.faults.append(f"failed: {request.url} {request.failure}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def go(self, place: str, *, drawn: bool = False) -> Page:
        """Open a page of the site; with `drawn`, wait until its script has drawn what it shows."""
        self.page.goto(self.address + place)
        if drawn:
            self.wait_drawn()
        return self.page

    def wait_drawn(self) -> None:
        """Until the page's script has drawn what it shows."""
        self.page.wait_for_selector("body[data-drawn]", state="attached", timeout=60_000)

    def hold(self, pattern: str) -> Held:
        """Keep back what is asked for by addresses like `pattern`."""
        return Held(self.page, pattern)

    def expect_fault(self, part: str) -> None:
        """The browser's own words about `part` are no fault, whenever they come."""
        self._expected.append(part)

    def text(self, selector: str) -> str:
        """What an element says."""
        return self.page.inner_text(selector)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        return self.page.evaluate(script)

    def settle(self) -> None:
        """Two frames later, when all that was asked for is on the screen."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def assert_quiet(self) -> None:
        """No error, no warning, no violation of the policy, no script of a stranger, no request to elsewhere."""
        own = urlsplit(self.address)
        foreign = [url for url in self.requests if urlsplit(url)[:2] != own[:2]]
        wrong = [
            *(fault for fault in self.faults if not any(part in fault for part in self._expected)),
            *(f"policy violated: {words}" for words in self.evaluate("window.violations")),
            *(f"alert: {words}" for words in self.evaluate("window.alerted")),
            *(f"request to elsewhere: {url}" for url in foreign),
        ]
        if wrong:
            raise AssertionError("\n".join(wrong))


@contextlib.contextmanager
def opening(browser: Browser, address: str, **options: object) -> Iterator[Watched]:
    """A page in a context of its own, with Playwright's options for that."""
    context = browser.new_context(**{"viewport": SIZE, "color_scheme": "light", **options})
    try:
        page = Watched(context, address)
        yield page
        page.assert_quiet()
    finally:
        context.close()
