"""Pages in a real browser: Chromium as the system has it, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE = 360
DESKTOP = 1280
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass
class Watched:
    """An open page, and what it did since it was opened.

    `errors` are messages of its console at that level and uncaught exceptions, `requests` the
    addresses it asked for, itself first, `dialogs` what alert and its like said.
    """

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    @property
    def overflow(self) -> int:
        """How many pixels of it lie outside of its width."""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        pixels: int = self.page.evaluate(wide)
        return pixels


# Not for the whole session: while it runs, nothing else of the process can use asyncio.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser of its own for each test module; without one on the system they are skipped."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the path")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def opened(
    browser: Browser,
    url: str,
    *,
    scheme: Literal["light", "dark"] = "light",
    width: int = DESKTOP,
    height: int = 900,
) -> Iterator[Watched]:
    """Open an address in a fresh profile, wait until it is loaded, and watch it."""
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    try:
        watched = Watched(context.new_page())
        _watch(watched)
        watched.page.goto(url)
        yield watched
    finally:
        context.close()


def _watch(watched: Watched) -> None:
    page = watched.page
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    page.on(
        "console",
        lambda message: watched.errors.append(message.text) if message.type == "error" else None,
    )

    def dismiss(dialog: Dialog) -> None:
        watched.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
