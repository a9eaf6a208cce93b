"""From a broken listener to its mended message with the console alone, as a person does it in a browser."""

import re

from browsing import PATIENCE, overflow, tab
from playwright.sync_api import expect

from jmsjca import ResourceAdapter
from jmsjca.testing.call_recorder import CallRecorder

PAGES = ("Activations", "Destinations", "Messages", "Dead letters", "Capabilities")


class Shop:
    """An adapter whose listener has no price for a stone until it is mended.

    Args:
        url: The broker.
        name: The queue, which no other test uses.
    """

    def __init__(self, url, name):
        self.name = name
        self.calls = CallRecorder()
        self.mended = False
        self.adapter = ResourceAdapter(url, hooks=[self.calls])
        self.adapter.listener(name, redelivery_handling="1:move(queue:dlq.$)")(self.handle)

    def handle(self, body: str) -> str:
        if body == "a stone" and not self.mended:
            raise ValueError(f"no price for {body}")
        return f"shipped {body}"

    def send(self, *bodies):
        self.adapter.send_many(self.name, bodies)


def fits(page):
    """Check that nothing of a page is beside the window."""
    assert overflow(page) <= 0, page.url


def visit_every_page(browser, address, size):
    """Look at each page of the navigation; each has one heading, and fits into the window."""
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        assert "token" not in page.url
        for name in PAGES:
            page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
            assert page.get_by_role("heading", level=1).inner_text().startswith(name)
            fits(page)
        assert complaints == []


def watch_live_numbers(browser, address, shop):
    """See a number and a plot change without another load of the page."""
    with tab(browser) as (page, complaints):
        page.goto(address)
        delivered = page.locator("[data-live='0.delivered']")
        before = int(delivered.inner_text())
        shop.send("a pear", "a fig")
        expect(delivered).to_have_text(str(before + 2), timeout=PATIENCE)
        plot = page.locator("[data-plot='0.in_flight']")
        expect(plot).to_have_attribute("points", re.compile(r"^(\S+ ){2,}"), timeout=PATIENCE)  # three samples or more
        for name in ("rate", "latency"):
            line = page.locator(f"[data-plot='0.{name}']")
            expect(line).to_have_attribute("points", re.compile(r"^(\S+ ){2,}"), timeout=PATIENCE)
        page.get_by_role("link", name=re.compile(re.escape(shop.name))).click()
        page.get_by_text("Messages per second").wait_for()
        page.get_by_text("Milliseconds in the handler").wait_for()
        page.get_by_role("region", name="Redelivery ladder").get_by_text(f"move to queue:dlq.{shop.name}").wait_for()
        fits(page)
        assert complaints == []


def mend_and_replay(browser, address, shop, size):
    """Find the poison message, read its stack, mend the listener, replay the message, and see it processed."""
    shop.mended = False
    shop.calls.reset()
    shop.send("a stone")
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        _open_dead_letters(page, shop)
        page.get_by_role("row").nth(1).get_by_role("link").click()
        page.get_by_text("no price for a stone").first.wait_for()
        assert "in handle" in page.get_by_role("region", name="Stack trace").inner_text()
        fits(page)
        shop.mended = True
        page.get_by_role("button", name="Replay…", exact=True).click()
        page.get_by_text("Plan; nothing is changed yet").wait_for()
        fits(page)
        page.get_by_role("button", name="Replay 1 message", exact=True).click()
        page.get_by_text("1 message, 1 done").wait_for()
        page.get_by_role("link", name="Back to the dead letters").click()
        page.get_by_text("No messages found").wait_for()
        assert complaints == []
    while "shipped a stone" not in (results := [call.result for call in shop.calls.of(shop.name)]):
        shop.calls.wait_for(shop.name, len(results) + 1)


def edit_and_replay(browser, address, shop, size):
    """Find the poison message, correct its body, replay it to the listener that is as it was, and see it processed."""
    shop.mended = False
    shop.calls.reset()
    shop.send("a stone")
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        _open_dead_letters(page, shop)
        page.get_by_role("row").nth(1).get_by_role("link").click()
        body = page.get_by_label("New body")
        assert body.input_value() == "a stone"
        body.fill("a plum\nand a fig")
        page.get_by_label("Text properties to set").fill("mended=by hand")
        fits(page)
        page.get_by_role("button", name="Edit and replay…").click()
        page.get_by_text("Plan; nothing is changed yet").wait_for()
        fits(page)
        page.get_by_role("button", name="Edit and replay 1 message").click()
        page.get_by_text("1 message, 1 done").wait_for()
        assert complaints == []
    while "shipped a plum\nand a fig" not in (results := [call.result for call in shop.calls.of(shop.name)]):
        shop.calls.wait_for(shop.name, len(results) + 1)


def edit_in_the_queue(browser, address, queue, size):
    """Replace a message that waits by one with another body."""
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        page.get_by_role("link", name="Messages").click()
        page.get_by_label("Queue").fill(queue)
        page.get_by_label("Selector").fill("number = 4")
        page.keyboard.press("Enter")
        page.get_by_role("row").nth(1).get_by_role("link").click()
        page.get_by_label("New body").fill(f"a quince {size}")
        page.get_by_role("button", name="Replace in the queue…").click()
        page.get_by_role("button", name="Replace 1 message").click()
        page.get_by_text("1 message, 1 done").wait_for()
        page.get_by_role("link", name="Back to the messages").click()
        page.get_by_label("Selector").fill("number = 4")
        page.keyboard.press("Enter")
        page.get_by_role("row").last.get_by_role("link").click()
        assert f"a quince {size}" in page.get_by_role("region", name="Content of the body").inner_text()
        assert complaints == []


def drop_with_the_keyboard(browser, address, shop):
    """Choose a dead letter and drop it without a mouse."""
    shop.mended = False
    shop.send("a stone")
    with tab(browser) as (page, complaints):
        page.goto(address)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        _open_dead_letters(page, shop)
        _tab_to(page, "Choose ")
        page.keyboard.press("Space")
        _tab_to(page, "Drop…")
        page.keyboard.press("Enter")
        page.get_by_text("Plan; nothing is changed yet").wait_for()
        _tab_to(page, "Drop 1 message")
        page.keyboard.press("Enter")
        page.get_by_text("1 message, 1 done").wait_for()
        assert complaints == []


def search_messages(browser, address, queue, size):
    """Find messages by a selector, and look at one."""
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        page.get_by_role("link", name="Messages").click()
        page.get_by_label("Queue").fill(queue)
        page.get_by_label("Selector").fill("number = 3")
        page.keyboard.press("Enter")
        page.get_by_role("row").nth(1).get_by_role("link").click()
        assert "a pear 3" in page.get_by_role("region", name="Content of the body").inner_text()
        fits(page)
        page.go_back()
        page.get_by_label("Selector").fill("number = (")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("heading", level=1).wait_for()
        assert "selector" in page.get_by_role("main").inner_text()
        fits(page)
        assert [each for each in complaints if "400" not in each] == []


def _open_dead_letters(page, shop):
    """Search the dead-letter queue until the broker has moved the message."""
    page.get_by_role("link", name="Destinations").click()
    link = page.get_by_role("link", name=f"Dead letters of dlq.{shop.name}", exact=True)
    while True:
        page.get_by_label("Name contains").fill(f"dlq.{shop.name}")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("status").wait_for()
        if link.count() and page.locator("tbody td").nth(1).inner_text() not in {"0", "–"}:  # noqa: RUF001
            break
    link.click()


def _tab_to(page, label):
    """Press Tab until an element has the focus whose text or label begins so."""
    for _ in range(60):
        page.keyboard.press("Tab")
        text = page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")
        if text.startswith(label):
            return
    raise AssertionError(f"{label!r} is not reached with the Tab key on {page.url}")
