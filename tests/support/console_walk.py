"""From a broken listener to its mended message with the console alone, as a person does it in a browser."""

import re
import uuid

from browsing import PATIENCE, follow, overflow, tab
from console_pages import open_dead_letters
from playwright.sync_api import expect

from jmsjca import ResourceAdapter, TextMessage
from jmsjca.testing.call_recorder import CallRecorder
from tests.support.pictures import subscribe


class Shop:
    """An adapter whose listener has no price for a stone until it is mended.

    Args:
        url: The broker.
        name: The queue, which no other test uses.
    """

    def __init__(self, url, name):
        self.name, self.waiting = name, f"waiting.{name}"
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

    def prepare(self):
        """Send a message that fails, and some that wait."""
        self.mended = False
        self.calls.reset()
        subscribe(self.adapter, self.name)
        self.send("a stone")
        self.wait_with(*map("a pear {}".format, range(3)))

    def wait_with(self, *bodies):
        """Send messages to a queue without a listener, numbered in a property."""
        messages = [TextMessage(body, properties={"number": n}) for n, body in enumerate(bodies)]
        self.adapter.send_many(self.waiting, messages)

    def wait_for(self, result):
        """Wait until the listener has returned a result."""
        while result not in (results := [call.result for call in self.calls.of(self.name)]):
            self.calls.wait_for(self.name, len(results) + 1, timeout=60)


def fits(page):
    """Check that nothing of a page is beside the window."""
    assert overflow(page) <= 0, page.url


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
        page.get_by_role("link", name=re.compile(re.escape(f"({shop.name})"))).click()
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
        open_dead_letters(page, shop)
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
    shop.wait_for("shipped a stone")


def edit_and_replay(browser, address, shop, size):
    """Find the poison message, correct its body, replay it to the listener that is as it was, and see it processed."""
    shop.mended = False
    shop.calls.reset()
    shop.send("a stone")
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        open_dead_letters(page, shop)
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
    shop.wait_for("shipped a plum\nand a fig")


def edit_in_the_queue(browser, address, queue, size):
    """Replace a message that waits by one with another body."""
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        page.get_by_role("link", name="Messages").click()
        page.get_by_label("Queue").fill(queue)
        page.get_by_role("textbox", name="Selector").fill("number = 4")
        page.keyboard.press("Enter")
        page.get_by_role("row").nth(1).get_by_role("link").click()
        page.get_by_label("New body").fill(f"a quince {size}")
        page.get_by_label("Text properties to set").fill(f"mended={size}")
        page.get_by_label("Properties to remove").fill("number")
        follow(page, page.get_by_role("button", name="Replace in the queue…"))
        fits(page)
        page.get_by_role("button", name="Replace 1 message").click()
        page.get_by_text("1 message, 1 done").wait_for()
        page.get_by_role("link", name="Back to the messages").click()
        page.get_by_role("textbox", name="Selector").fill(f"mended = '{size}' AND number IS NULL")
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
        open_dead_letters(page, shop)
        _tab_to(page, "Choose ")
        page.keyboard.press("Space")
        _tab_to(page, "Delete…")
        page.keyboard.press("Enter")
        page.get_by_text("Plan; nothing is changed yet").wait_for()
        _tab_to(page, "Delete 1 message")
        page.keyboard.press("Enter")
        page.get_by_text("1 message, 1 done").wait_for()
        assert complaints == []


def edit_with_the_keyboard(browser, address, shop):
    """Correct a dead letter and replay it without a mouse."""
    shop.mended = False
    shop.calls.reset()
    shop.send("a stone")
    with tab(browser) as (page, complaints):
        page.goto(address)
        open_dead_letters(page, shop)
        page.get_by_role("heading", level=1).wait_for()
        _tab_to(page, "ID:")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Failure").wait_for()
        _tab_to(page, "New body")
        page.keyboard.press("Control+A")
        page.keyboard.type("a medlar")
        _tab_to(page, "Edit and replay…")
        page.keyboard.press("Enter")
        page.get_by_text("Plan; nothing is changed yet").wait_for()
        _tab_to(page, "Edit and replay 1 message")
        page.keyboard.press("Enter")
        page.get_by_text("1 message, 1 done").wait_for()
        assert complaints == []
    shop.wait_for("shipped a medlar")


def act_on_chosen_letters(browser, address, shop, size):
    """Replay one dead letter that is chosen in the list, and drop the others that a selector matches."""
    selector = _fail_as_batch(shop, 3)
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        _search_letters(page, shop, selector, 3)
        page.get_by_role("checkbox", name=re.compile("^Choose ")).first.check()
        shop.mended = True
        follow(page, page.get_by_role("button", name="Replay…"))
        page.get_by_text("1 message, 1 planned").wait_for()
        follow(page, page.get_by_role("button", name="Replay 1 message"))
        page.get_by_text("1 message, 1 done").wait_for()
        follow(page, page.get_by_role("link", name="Back to the dead letters"))
        _search_letters(page, shop, selector, 2)
        page.get_by_label("All that the selector matches").check()
        fits(page)
        follow(page, page.get_by_role("button", name="Delete…"))
        page.get_by_text("2 messages, 2 planned").wait_for()
        fits(page)
        follow(page, page.get_by_role("button", name="Delete 2 messages"))
        page.get_by_text("2 messages, 2 done").wait_for()
        _search_letters(page, shop, selector, 0)
        assert complaints == []
    shop.wait_for("shipped a stone")


def replay_elsewhere_and_drop(browser, address, shop, size):
    """Send a dead letter to another queue than its own, and drop it there, on the page of the message."""
    selector = _fail_as_batch(shop, 1)
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        _search_letters(page, shop, selector, 1)
        follow(page, page.get_by_role("row").nth(1).get_by_role("link"))
        page.get_by_label("Replay or move to").fill(shop.waiting)
        follow(page, page.get_by_role("button", name="Replay…", exact=True))
        page.get_by_text(f"queue:{shop.waiting}").wait_for()
        follow(page, page.get_by_role("button", name="Replay 1 message", exact=True))
        page.get_by_text("1 message, 1 done").wait_for()
        follow(page, page.get_by_role("link", name="Messages"))
        page.get_by_label("Queue").fill(shop.waiting)
        page.get_by_role("textbox", name="Selector").fill(selector)
        page.keyboard.press("Enter")
        follow(page, page.get_by_role("row").nth(1).get_by_role("link"))
        assert "a stone" in page.get_by_role("region", name="Content of the body").inner_text()
        follow(page, page.get_by_role("button", name="Delete…"))
        follow(page, page.get_by_role("button", name="Delete 1 message"))
        page.get_by_text("1 message, 1 done").wait_for()
        assert complaints == []


def publish_move_and_purge(browser, address, shop, size):
    """Publish two messages, see their beginning and their properties, move one, delete it, and purge the queue."""
    queue, other = f"{size}.{shop.waiting}", f"other.{size}.{shop.waiting}"
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        _show_messages(page, queue)
        for body in ("a quince", "a medlar"):
            page.get_by_label("Text of the message").fill(body)
            page.get_by_label("Text properties").fill(f"fruit={body}")
            fits(page)
            follow(page, page.get_by_role("button", name="Publish…"))
            page.get_by_role("heading", name="Publish 1 message?").wait_for()
            fits(page)
            follow(page, page.get_by_role("button", name="Publish 1 message"))
            page.get_by_text("1 message, 1 done").wait_for()
            follow(page, page.get_by_role("link", name="Back to the messages"))
        assert page.get_by_role("row").nth(1).get_by_role("cell").nth(1).inner_text().startswith("a quince")
        value = page.locator("dd").filter(has_text="a quince")
        assert not value.is_visible()
        page.get_by_text("1 property").first.click()
        assert value.is_visible()
        fits(page)
        page.get_by_role("checkbox", name=re.compile("^Choose ")).first.check()
        page.get_by_label("Move to").fill(f"queue:{other}")
        follow(page, page.get_by_role("button", name="Move…"))
        page.get_by_role("heading", name="Move 1 message?").wait_for()
        follow(page, page.get_by_role("button", name="Move 1 message"))
        page.get_by_text("1 message, 1 done").wait_for()
        _delete_with_the_keyboard(page, other)
        _show_messages(page, queue)
        follow(page, page.get_by_role("button", name="Purge the queue…"))
        page.get_by_role("heading", name="Purge 1 message?").wait_for()
        follow(page, page.get_by_role("button", name="Purge 1 message"))
        page.get_by_text("1 message, 1 done").wait_for()
        _show_messages(page, queue)
        page.get_by_text("No messages found").wait_for()
        assert complaints == []


def _show_messages(page, queue):
    follow(page, page.get_by_role("navigation", name="Pages").get_by_role("link", name="Messages"))
    page.get_by_label("Queue").fill(queue)
    follow(page, page.get_by_role("button", name="Show"))


def _delete_with_the_keyboard(page, queue):
    _show_messages(page, queue)
    _tab_to(page, "Choose ")
    page.keyboard.press("Space")
    _tab_to(page, "Delete…")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_role("heading", name="Delete 1 message?").wait_for()
    _tab_to(page, "Delete 1 message")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_text("1 message, 1 done").wait_for()


def remove_a_subscription(browser, address, shop, size):
    """Look at the messages of a durable subscription, and remove it."""
    subscribe(shop.adapter, f"{size}.{shop.name}")
    name = f"audit.{size}.{shop.name}"
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        follow(page, page.get_by_role("link", name="Subscriptions"))
        follow(page, page.get_by_role("link", name=name, exact=True))
        page.get_by_text("a new shop").wait_for()
        fits(page)
        follow(page, page.get_by_role("link", name="Back to the subscriptions"))
        follow(page, page.get_by_role("button", name=f"Remove {name}…"))
        page.get_by_role("heading", name="Remove audit").wait_for()
        fits(page)
        follow(page, page.get_by_role("button", name="Remove the subscription and 1 message"))
        page.get_by_text("The subscription is deleted").wait_for()
        follow(page, page.get_by_role("link", name="Back to the subscriptions"))
        assert not page.get_by_role("link", name=name, exact=True).count()
        assert complaints == []


def see_the_home(browser, address, shop):
    """See dead letters first, then queues with their figures, as cards in a narrow window."""
    shop.prepare()
    with tab(browser, "narrow") as (page, complaints):
        page.goto(address)
        letters = page.get_by_role("region", name="Dead-letter queues with messages")
        while not letters.get_by_role("link", name=f"dlq.{shop.name}", exact=True).count():
            page.reload()
        headings = page.get_by_role("heading", level=2).all_inner_texts()
        assert headings == ["Dead letters wait", "Queues", "Activations"]
        row = page.get_by_role("region", name="Queues").get_by_role("row").filter(has_text=shop.waiting)
        assert int(row.get_by_role("cell").nth(0).inner_text()) >= 3
        assert re.fullmatch(r"\d+\.\d", row.get_by_role("cell").nth(2).inner_text())
        assert re.fullmatch(r"\d+ (s|min|h)", row.get_by_role("cell").nth(4).inner_text())
        assert (
            row.get_by_role("cell").nth(0).evaluate("cell => getComputedStyle(cell, '::before').content") == '"Ready"'
        )
        fits(page)
        assert complaints == []


def show_one_stack_trace(browser, address, shop):
    """See the stack trace of a dead letter once on its page."""
    shop.mended = False
    shop.send("a stone")
    with tab(browser, "narrow") as (page, complaints):
        page.goto(address)
        open_dead_letters(page, shop)
        follow(page, page.get_by_role("row").nth(1).get_by_role("link"))
        assert page.get_by_role("main").inner_text().count("Traceback (most recent call last)") == 1
        assert complaints == []


def turn_pages(browser, address, shop):
    """Go to the second page of the messages of a queue, and back."""
    shop.wait_with(*["a pear"] * 60)
    with tab(browser, "narrow") as (page, complaints):
        page.goto(address)
        follow(page, page.get_by_role("link", name="Messages"))
        page.get_by_label("Queue").fill(shop.waiting)
        page.keyboard.press("Enter")
        for name, number in (("Next page", 2), ("Previous page", 1)):
            follow(page, page.get_by_role("link", name=name))
            page.get_by_role("navigation", name="Pages of this list").get_by_text(f"Page {number}").wait_for()
            assert page.get_by_role("row").count() > 1
            fits(page)
        assert complaints == []


def measure_rates(browser, address, shop):
    """Measure the messages per second of queues."""
    shop.wait_with("a pear")
    with tab(browser, "narrow") as (page, complaints):
        page.goto(address)
        follow(page, page.get_by_role("link", name="Destinations"))
        page.get_by_label("Name contains").fill(shop.waiting)
        follow(page, page.get_by_role("button", name="Show"))
        page.get_by_text("found.").wait_for()
        page.get_by_label("Messages per second, measured for a second").check()
        follow(page, page.get_by_role("button", name="Show"))
        assert re.fullmatch(r"\d+\.\d", page.locator("td[data-label='Came per second']").first.inner_text())
        fits(page)
        assert complaints == []


def _fail_as_batch(shop, count):
    """Send messages that fail; return a selector of them."""
    shop.mended = False
    shop.calls.reset()
    batch = uuid.uuid4().hex
    shop.send(*(TextMessage("a stone", properties={"batch": batch}) for _ in range(count)))
    return f"batch = '{batch}'"


def _search_letters(page, shop, selector, count):
    """Show the dead letters that a selector matches, until there are so many."""
    follow(page, page.get_by_role("navigation", name="Pages").get_by_role("link", name="Dead letters"))
    while True:
        page.get_by_label("Queue").fill(f"dlq.{shop.name}")
        page.get_by_role("textbox", name="Selector").fill(selector)
        follow(page, page.get_by_role("button", name="Show"))
        if page.get_by_role("checkbox", name=re.compile("^Choose ")).count() == count:
            return


def search_messages(browser, address, queue, size):
    """Find messages by a selector, and look at one."""
    with tab(browser, size) as (page, complaints):
        page.goto(address)
        page.get_by_role("link", name="Messages").click()
        page.get_by_label("Queue").fill(queue)
        page.get_by_role("textbox", name="Selector").fill("number = 3")
        page.keyboard.press("Enter")
        page.get_by_role("row").nth(1).get_by_role("link").click()
        assert "a pear 3" in page.get_by_role("region", name="Content of the body").inner_text()
        fits(page)
        page.go_back()
        page.get_by_role("textbox", name="Selector").fill("number = (")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("heading", level=1).wait_for()
        assert "selector" in page.get_by_role("main").inner_text()
        fits(page)
        assert [each for each in complaints if "400" not in each] == []


def _tab_to(page, label):
    """Press Tab until an element has the focus whose text or label begins so."""
    for _ in range(60):
        page.keyboard.press("Tab")
        text = page.evaluate(
            "(({activeElement: at}) => at.ariaLabel || at.labels?.[0]?.textContent || at.textContent)(document)"
        )
        if text.startswith(label):
            return
    raise AssertionError(f"{label!r} is not reached with the Tab key on {page.url}")
