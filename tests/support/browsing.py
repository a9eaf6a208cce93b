"""A real browser for tests and pictures: Chromium of the system, and consoles that it can reach."""

import shutil
import threading
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import sync_playwright

from jmsjca.management.console import Console

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"narrow": (360, 740), "wide": (1600, 1000), "picture": (1280, 400)}
WIDTHS = (360, 412, 600, 768, 960, 1024, 1280, 1400, 1600)  # at which each page must fit
PATIENCE = 60_000  # milliseconds


class BrowserMissingError(Exception):
    """There is no Chromium on this machine."""


def chromium():
    """Return the path of Chromium.

    Raises:
        BrowserMissingError: There is none.
    """
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise BrowserMissingError("There is no Chromium: apt-get install chromium, or install Google Chrome.")
    return found


@contextmanager
def running():
    """Yield a headless Chromium."""
    path = chromium()
    with sync_playwright() as playwright:
        # Root may not use the sandbox of Chromium; the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextmanager
def tab(browser, size="wide", scheme="light"):
    """Yield a page of a browser session of its own, and what it complained about: script errors, refused content."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    page, complaints = context.new_page(), []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield page, complaints
    finally:
        context.close()


@contextmanager
def served(source, **options):
    """Serve a console on a free port; yield its address with the token."""
    console = Console(source, **options)
    server = uvicorn.Server(
        uvicorn.Config(console, port=0, log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server of the console has ended"
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/?token={console.token}"
    finally:
        server.should_exit = True
        thread.join()


def follow(page, locator):
    """Click on something, and wait until the page that it leads to is there."""
    with page.expect_navigation():
        locator.click()


def overflow(page):
    """Return by how many pixels a page is wider than its window, once it has its style."""
    page.wait_for_load_state("load")
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
