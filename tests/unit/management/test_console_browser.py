"""The console in a real browser, over an embedded broker: every page and action, by mouse and by keyboard."""

import os

import pytest
from browsing import BrowserMissingError, chromium, running, served, tab
from console_pages import check_every_page, tab_through_every_page
from console_walk import (
    Shop,
    act_on_chosen_letters,
    drop_with_the_keyboard,
    edit_and_replay,
    edit_in_the_queue,
    edit_with_the_keyboard,
    measure_rates,
    mend_and_replay,
    publish_move_and_purge,
    remove_a_subscription,
    replay_elsewhere_and_drop,
    search_messages,
    see_the_home,
    show_one_stack_trace,
    turn_pages,
)
from console_walk import watch_live_numbers as watch

from jmsjca import TextMessage
from tests.unit.management.test_dead_letters import letter, send

SIZES = ("narrow", "wide")
LONG = "orders_of_the_shop_with_a_name_that_is_longer_than_a_telephone_is_wide"


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
def url(tmp_path_factory):
    return f"embedded://{tmp_path_factory.mktemp('console')}/broker.db"


@pytest.fixture(scope="module")
def shop(url):
    shop = Shop(url, LONG)
    with shop.adapter as adapter:
        adapter.start(wait=60)
        yield shop


@pytest.fixture(scope="module")
def address(shop):
    with served(shop.adapter, writable=True) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_at_each_width_and_is_readable(browser, address, shop, scheme):
    check_every_page(browser, address, shop, scheme)


def test_every_page_is_used_with_the_keyboard(browser, address, shop):
    tab_through_every_page(browser, address, shop)


def test_numbers_and_plots_are_live(browser, address, shop):
    watch(browser, address, shop)


@pytest.mark.parametrize("size", SIZES)
def test_a_poison_message_is_found_mended_and_replayed(browser, address, shop, size):
    mend_and_replay(browser, address, shop, size)


@pytest.mark.parametrize("size", SIZES)
def test_a_poison_message_is_corrected_and_replayed(browser, address, shop, size):
    edit_and_replay(browser, address, shop, size)


def test_a_dead_letter_is_dropped_and_one_corrected_with_the_keyboard_alone(browser, address, shop):
    drop_with_the_keyboard(browser, address, shop)
    edit_with_the_keyboard(browser, address, shop)


@pytest.mark.parametrize("size", SIZES)
def test_chosen_letters_are_replayed_and_dropped(browser, address, shop, size):
    act_on_chosen_letters(browser, address, shop, size)


@pytest.mark.parametrize("size", SIZES)
def test_a_letter_is_replayed_to_another_queue_and_dropped_there(browser, address, shop, size):
    replay_elsewhere_and_drop(browser, address, shop, size)


def test_a_long_list_has_pages(browser, address, shop):
    turn_pages(browser, address, shop)


@pytest.mark.parametrize("size", SIZES)
def test_messages_are_published_moved_deleted_and_purged(browser, address, shop, size):
    publish_move_and_purge(browser, address, shop, size)


@pytest.mark.parametrize("size", SIZES)
def test_a_subscription_is_browsed_and_removed(browser, address, shop, size):
    remove_a_subscription(browser, address, shop, size)


def test_the_home_shows_dead_letters_first(browser, address, shop):
    see_the_home(browser, address, shop)


def test_a_dead_letter_shows_its_stack_trace_once(browser, address, shop):
    show_one_stack_trace(browser, address, shop)


def test_rates_are_measured(browser, address, shop):
    measure_rates(browser, address, shop)


@pytest.mark.parametrize("size", SIZES)
def test_messages_are_searched_and_looked_at(browser, address, url, size):
    messages = [TextMessage(f"a pear {n}", properties={"number": n}) for n in range(5)]
    send(url, *messages, to=f"searched.{LONG}")
    search_messages(browser, address, f"searched.{LONG}", size)
    edit_in_the_queue(browser, address, f"searched.{LONG}", size)


def test_a_hostile_message_runs_no_script(browser, address, url):
    hostile = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    send(url, letter(hostile), to="dlq.hostile")
    with tab(browser) as (page, complaints):
        page.goto(address)
        page.get_by_role("link", name="Dead letters").click()
        page.get_by_label("Queue").fill("dlq.hostile")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("row").nth(1).get_by_role("link").click()
        page.get_by_role("heading", name="Failure").wait_for()
        assert hostile in page.get_by_role("main").inner_text()
        assert "owned" not in page.title()
        assert complaints == []


def test_a_page_that_runs_a_script_of_a_message_would_be_stopped(browser, address):
    """The policy itself refuses inline scripts, in case that something is not escaped."""
    with tab(browser) as (page, complaints):
        page.goto(address)
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.x = 1'}))")
        assert page.evaluate("window.x") is None
        assert any("Content Security Policy" in each for each in complaints)
