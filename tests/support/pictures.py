"""Makes the pictures of the documentation: ``python -m tests.support.pictures``. None of them is committed.

The console is shown as Chromium shows it, with a listener whose messages fail; the demo is run with a crash.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jmsjca import ResourceAdapter
from jmsjca.testing.call_recorder import CallRecorder

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
PICTURES = ("console-activations.png", "console-dead-letter.png", "console-narrow.png", "demo-delays.png")
EVENTS = 5000  # of the demo


class Shop:
    """A shop that works, and that has no price for stones."""

    def __init__(self, url):
        self.calls = CallRecorder()
        self.adapter = ResourceAdapter(url, hooks=[self.calls])
        self.adapter.listener("orders", redelivery_handling="3:25; 5:move(queue:dlq.$)", concurrency_mode="cc")(
            self.ship
        )
        self.adapter.listener("invoices", batch_size=10, concurrency_mode="sync")(self.file)

    def ship(self, body: str) -> None:
        if "stone" in body:
            raise ValueError(f"no price for {body}")
        self.adapter.send("invoices", f"invoice for {body}")

    def file(self, body: str) -> None:
        """Do nothing."""


def console(folder):
    """Take pictures of the console."""
    from browsing import running, served, tab  # needs Playwright, which readers of the names need not have

    del folder
    shop = Shop("embedded://shop")
    with shop.adapter as adapter, running() as browser, served(adapter, writable=True) as address:
        adapter.start(wait=60)
        adapter.send("orders", json.dumps({"fruit": "stone", "count": 2}), correlation_id="order 4711")
        with tab(browser) as (page, _):
            page.goto(address)
            for number in range(20):  # the plots grow by a sample in a second
                adapter.send_many("orders", [f"pear {number}"] * (20 + 30 * (number % 5)))
                page.wait_for_timeout(1000)
            page.screenshot(path=FIGURES / "console-activations.png")
            page.get_by_role("link", name="Dead letters").click()
            page.get_by_label("Queue").fill("dlq.orders")
            page.get_by_role("button", name="Show").click()
            page.get_by_role("row").nth(1).get_by_role("link").click()
            page.screenshot(path=FIGURES / "console-dead-letter.png")
        with tab(browser, "narrow") as (page, _):
            page.goto(address)
            page.screenshot(path=FIGURES / "console-narrow.png")


def demo(folder):
    """Run the demo, and take its chart."""
    command = [sys.executable, "-m", "jmsjca", "demo", "--events", str(EVENTS), "--crash", "--output", str(folder)]
    subprocess.run(command, check=True)
    [picture] = Path(folder).rglob("delays.png")
    shutil.copy(picture, FIGURES / "demo-delays.png")


if __name__ == "__main__":
    for act in (console, demo):
        with tempfile.TemporaryDirectory() as temporary:
            act(temporary)
