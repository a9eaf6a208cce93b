"""Every page of the console in a browser: how it is reached, whether it fits, can be read, and used without a mouse."""

import re
from urllib.parse import urlsplit

from browsing import WIDTHS, follow, overflow, tab

__all__ = ["HEADINGS", "check_every_page", "open_dead_letters", "tab_through_every_page", "visit_every_page"]

HEADINGS = {  # of the pages, in the order of the visit
    "home": "Home",
    "activations": "Activations",
    "activation": "serial-QueueReceiver(",
    "destinations": "Destinations",
    "subscriptions": "Subscriptions",
    "subscription": "Subscription audit.",
    "messages": "Messages of ",
    "message": "TextMessage ID:",
    "dead-letters": "Dead letters of ",
    "dead-letter": "TextMessage ID:",
    "plan": "Replay 1 message?",
    "done": "Done: Replay 1 message",
    "capabilities": "Capabilities",
    "error": "Error",
}
LEAST_CONTRAST = 4.5  # WCAG 2.2, level AA
TOO_PALE = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((value) => value / 255)
      .map((share) => share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility()) continue;
    const shades = [numbers(getComputedStyle(element).color), background(element)].map(luminance);
    const contrast = (Math.max(...shades) + 0.05) / (Math.min(...shades) + 0.05);
    if (contrast < LEAST) found.push(`${contrast.toFixed(1)}: ${text.slice(0, 40)}`);
  }
  return found;
}""".replace("LEAST", f"{LEAST_CONTRAST}")
FOCUSABLE = "a[href], button, summary, input:not([type=hidden]), textarea, [tabindex='0']"
FOCUSED = f"""() => {{
  const at = [...document.querySelectorAll("{FOCUSABLE}")].indexOf(document.activeElement);
  return at < 0 ? null : [at, getComputedStyle(document.activeElement).outlineStyle];
}}"""


def visit_every_page(page, address, shop, look):
    """Go to each page as a person does, and call a function with the name of the page.

    Args:
        page: A page of a browser.
        address: The address of the console, with the token.
        shop: Has a listener of the queue ``name``, and prepares messages that wait and one that fails.
        look: Called with each key of `HEADINGS`.
    """
    shop.prepare()
    page.goto(address)
    assert "token" not in page.url
    look("home")
    _open(page, "Activations")
    look("activations")
    follow(page, page.get_by_role("link", name=re.compile(re.escape(f"({shop.name})"))))
    look("activation")
    _open(page, "Destinations")
    page.get_by_label("Name contains").fill(shop.name)
    follow(page, page.get_by_role("button", name="Show"))
    look("destinations")
    messages = page.url
    _open(page, "Subscriptions")
    look("subscriptions")
    follow(page, page.get_by_role("link", name=f"audit.{shop.name}", exact=True))
    look("subscription")
    page.goto(messages)
    follow(page, page.get_by_role("link", name=f"Messages of {shop.waiting}", exact=True))
    look("messages")
    follow(page, page.get_by_role("row").nth(1).get_by_role("link"))
    look("message")
    open_dead_letters(page, shop)
    look("dead-letters")
    follow(page, page.get_by_role("row").nth(1).get_by_role("link"))
    look("dead-letter")
    follow(page, page.get_by_role("button", name="Replay…", exact=True))
    look("plan")
    shop.mended = True
    follow(page, page.get_by_role("button", name="Replay 1 message", exact=True))
    look("done")
    _open(page, "Capabilities")
    look("capabilities")
    page.goto(urlsplit(address)._replace(path="/nothing", query="").geturl())
    look("error")


def check_every_page(browser, address, shop, scheme):
    """Look at each page in a colour scheme: it fits into the window at each width, has one heading, and can be read."""
    seen = []
    with tab(browser, scheme=scheme) as (page, complaints):

        def look(name):
            seen.append(name)
            assert page.get_by_role("heading", level=1).inner_text().startswith(HEADINGS[name])
            assert page.evaluate(TOO_PALE) == [], name
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                assert overflow(page) <= 0, (name, width)

        visit_every_page(page, address, shop, look)
        shop.wait_for("shipped a stone")
        assert [each for each in complaints if "404" not in each] == []
    assert seen == list(HEADINGS)


def tab_through_every_page(browser, address, shop):
    """Reach each link, field, button and table with the Tab key alone, in order; the focus is always seen."""
    with tab(browser) as (page, _):

        def look(name):
            expected = page.locator(FOCUSABLE).count()
            for number in range(expected):
                page.keyboard.press("Tab")
                at, outline = page.evaluate(FOCUSED)
                assert at == number, (name, number)
                assert outline == "solid", (name, number)

        visit_every_page(page, address, shop, look)
        shop.wait_for("shipped a stone")


def open_dead_letters(page, shop):
    """Search the dead-letter queue until the listener has moved the message."""
    _open(page, "Destinations")
    link = page.get_by_role("link", name=f"Dead letters of dlq.{shop.name}", exact=True)
    while True:
        page.get_by_label("Name contains").fill(f"dlq.{shop.name}")
        follow(page, page.get_by_role("button", name="Show"))
        if link.count() and page.locator("tbody td").nth(1).inner_text() not in {"0", "–"}:  # noqa: RUF001
            break
    follow(page, link)


def _open(page, name):
    follow(page, page.get_by_role("navigation", name="Pages").get_by_role("link", name=name))
