"""Makes the pictures of the documentation: ``python -m tests.support.pictures``.

The console is shown as Chromium shows it, with a listener whose messages fail; the demo is run with a crash. Only the
pictures of README are committed: smaller copies of two of them, in ``docs/figures/readme``.
"""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jmsjca import ResourceAdapter, TextMessage, Topic
from jmsjca.testing.call_recorder import CallRecorder

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
CONSOLE = (  # the pages, as `console_pages` names them
    *("home", "activations", "activation", "destinations", "subscriptions", "subscription", "messages", "message"),
    *("dead-letters", "dead-letter"),
    *("plan", "done", "capabilities", "error"),
)
PICTURES = (
    *(f"console-{name}.png" for name in (*CONSOLE, "narrow", "dark")),
    "demo-delays.png",
)
HIGHEST = 2400  # pixels of a picture
EVENTS = 5000  # of the demo


class Shop:
    """A shop that works, but has no price for stones until it is repaired."""

    def __init__(self, url):
        self.name, self.waiting, self.mended = "orders", "orders.archive", False
        self.calls = CallRecorder()
        self.adapter = ResourceAdapter(url, hooks=[self.calls])
        self.adapter.listener("orders", redelivery_handling="3:25; 5:move(queue:dlq.$)", concurrency_mode="cc")(
            self.ship
        )
        self.adapter.listener("invoices", batch_size=10, concurrency_mode="sync")(self.file)

    def ship(self, body: str) -> None:
        if "stone" in body and not self.mended:
            raise ValueError(f"no price for {body}")
        self.adapter.send("invoices", f"invoice for {body}")

    def file(self, body: str) -> None:
        """Do nothing."""

    def prepare(self):
        """Send what the pages show."""
        self.mended = False
        subscribe(self.adapter, self.name)
        self.adapter.send("orders", json.dumps({"fruit": "stone", "count": 2}), correlation_id="order 4711")
        for number in range(4712, 4716):
            body = {"fruit": "pear", "count": number % 7}
            properties = {"shop": "Bern", "express": number % 2 == 0}
            message = TextMessage(json.dumps(body), correlation_id=f"order {number}", properties=properties)
            self.adapter.send(self.waiting, message)

    def work(self, page, seconds):
        """Receive orders while a page is looked at: the plots grow by a sample in a second."""
        for number in range(seconds):
            self.adapter.send_many("orders", [f"pear {number}"] * (20 + 30 * (number % 5)))
            page.wait_for_timeout(1000)


def subscribe(adapter, name):
    """Make a durable subscription, and send a message to its topic."""
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        session.create_shared_durable_consumer(Topic(f"news.{name}"), f"audit.{name}").close()
    adapter.send(f"topic:news.{name}", "a new shop")


def console(folder):
    """Take pictures of each page of the console."""
    from browsing import running, served, tab  # needs Playwright, which readers of the names need not have
    from console_pages import visit_every_page

    del folder
    shop = Shop("embedded://shop")
    with shop.adapter as adapter, running() as browser, served(adapter, writable=True) as address:
        adapter.start(wait=60)
        with tab(browser, "picture") as (page, _):

            def look(name):
                if name == "home":
                    shop.work(page, 20)
                take(page, name)

            visit_every_page(page, address, shop, look)
        for name, size, scheme in (("narrow", "narrow", "light"), ("dark", "picture", "dark")):
            with tab(browser, size, scheme) as (page, _):
                page.goto(address)
                shop.work(page, 3)
                take(page, name)


def take(page, name):
    """Take a picture of a page, down to its end if it is not too high."""
    width, height = page.evaluate("[window.innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": width, "height": min(height, HIGHEST)}
    page.screenshot(path=FIGURES / f"console-{name}.png", full_page=True, clip=clip)


def demo(folder):
    """Run the demo, and take its chart."""
    command = [sys.executable, "-m", "jmsjca", "demo", "--events", str(EVENTS), "--crash", "--output", str(folder)]
    subprocess.run(command, check=True)
    [picture] = Path(folder).rglob("delays.png")
    shutil.copy(picture, FIGURES / "demo-delays.png")


if __name__ == "__main__":
    logging.disable()  # the failures of the shop are shown in the console
    for act in (console, demo):
        with tempfile.TemporaryDirectory() as temporary:
            act(temporary)
