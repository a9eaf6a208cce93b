"""The console in a real browser, over Artemis: from a broken listener to its mended message."""

import os
import uuid

import pytest
from browsing import BrowserMissingError, chromium, running, served
from console_walk import (
    Shop,
    drop_with_the_keyboard,
    edit_and_replay,
    edit_in_the_queue,
    mend_and_replay,
    search_messages,
    visit_every_page,
)
from console_walk import watch_live_numbers as watch

from jmsjca import TextMessage


@pytest.fixture(scope="module")
def browser():
    try:
        chromium()
    except BrowserMissingError as problem:
        if os.environ.get("CI"):
            pytest.fail(str(problem))
        pytest.skip(str(problem))
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def shop(broker_url):
    shop = Shop(broker_url("artemis-amqp"), f"shop.{uuid.uuid4().hex}")
    with shop.adapter as adapter:
        adapter.start(wait=120)
        yield shop


@pytest.fixture(scope="module")
def address(shop):
    with served(shop.adapter, writable=True) as found:
        yield found


def test_every_page_is_shown(browser, address):
    visit_every_page(browser, address, "wide")


def test_numbers_and_plots_are_live(browser, address, shop):
    watch(browser, address, shop)


def test_a_poison_message_is_found_mended_and_replayed(browser, address, shop):
    mend_and_replay(browser, address, shop, "narrow")


def test_a_poison_message_is_corrected_and_replayed(browser, address, shop):
    edit_and_replay(browser, address, shop, "wide")


def test_a_dead_letter_is_dropped_with_the_keyboard_alone(browser, address, shop):
    drop_with_the_keyboard(browser, address, shop)


def test_messages_are_searched_and_looked_at(browser, address, shop):
    queue = f"{shop.name}.waiting"
    shop.adapter.send_many(queue, [TextMessage(f"a pear {n}", properties={"number": n}) for n in range(5)])
    search_messages(browser, address, queue, "narrow")
    edit_in_the_queue(browser, address, queue, "narrow")
