"""Selectors of listeners: from the spec, the options and the URL, with substitution."""

from itertools import product
from urllib.parse import quote_plus

import pytest

from jmsjca import ActivationSpec, Queue, ResourceAdapter, TextMessage, Topic
from tests.unit.inbound.listeners import Inbox, Recorder

OPTION = "JMSJCA.selector"
MINE = "sub = '${subscribername}'"
LAST = "the last one"
CANDIDATES = list(product((None, "sub47", "other", "${subscribername}"), (None, 1, 2)))


def delivered(url, *, adapter_url="", adapter_options=None, durable=True, **fields):
    """Publish every candidate, then one that is selected in each case, and tell which came."""
    inbox, recorder = Inbox(), Recorder()
    adapter = ResourceAdapter(f"{url}{adapter_url}", options=adapter_options, hooks=[recorder])
    if durable:
        fields |= {"subscription_durability": "Durable", "subscription_name": "sub47"}
    if "connection_url" in fields:
        fields["connection_url"] = f"{url}{fields['connection_url']}"
    place = Topic("t") if durable else Queue("q")
    adapter.activate(ActivationSpec(destination=place, **fields), inbox)
    with adapter:
        recorder.await_status("Connecting", "Up")
        publish(adapter, place)
        bodies = []
        while LAST not in bodies:
            bodies += [body for body, _ in inbox.take(1)]
    return bodies[:-1]


def publish(adapter, place):
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(place)
        for sub, kind in CANDIDATES:
            properties = {name: value for name, value in (("sub", sub), ("kind", kind)) if value is not None}
            producer.send(TextMessage(f"{sub} {kind}", properties=properties))
        producer.send(TextMessage(LAST, properties={"last": True, "sub": "sub47", "kind": 1}))


def in_url(selector):
    return f"?{OPTION}={quote_plus(selector)}"


@pytest.mark.parametrize(
    "place",
    [
        {"selector": MINE},
        {"options": {OPTION: MINE}},
        {"connection_url": in_url(MINE)},
        {"adapter_options": {OPTION: MINE}},
        {"adapter_url": in_url(MINE)},
    ],
    ids=["spec", "options of the spec", "URL of the spec", "options of the adapter", "URL of the adapter"],
)
def test_the_subscription_of_the_listener_is_put_in_wherever_the_selector_stands(jms_broker_url, place):
    assert delivered(jms_broker_url, **place) == ["sub47 None", "sub47 1", "sub47 2"]


@pytest.mark.parametrize(
    "place",
    [
        {"selector": "sub = ${wanted} AND kind = ${kind} OR last"},
        {"adapter_options": {OPTION: "sub = '${wanted}' AND kind = ${kind} OR last"}},
    ],
    ids=["spec", "options of the adapter"],
)
def test_given_values_are_put_in_wherever_the_selector_stands(jms_broker_url, place):
    assert delivered(jms_broker_url, selector_variables={"wanted": "sub47", "kind": 1}, **place) == ["sub47 1"]


def test_a_given_value_cannot_change_what_is_selected(jms_broker_url):
    variables = {"wanted": "x' OR sub = 'sub47"}
    assert delivered(jms_broker_url, selector="last OR sub = '${wanted}'", selector_variables=variables) == []


ONES, ALL = ["None 1", "sub47 1", "other 1", "${subscribername} 1"], [f"{sub} {kind}" for sub, kind in CANDIDATES]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({"selector": "kind = 2", "adapter_options": {OPTION: "kind = 1"}}, ONES),
        ({"options": {OPTION: "kind = 1"}, "adapter_options": {OPTION: "kind = 2"}}, ONES),
        ({"adapter_url": in_url("kind = 1"), "options": {OPTION: "kind = 2"}}, ONES),
        ({"connection_url": in_url("kind = 1"), "adapter_url": in_url("kind = 2")}, ONES),
        ({"connection_url": "", "adapter_url": in_url("kind = 1")}, ALL),
        ({"selector": "kind = 1", "adapter_options": {OPTION: " "}}, ONES),
        ({"selector": " "}, ALL),
    ],
    ids=[
        "an option rather than the field",
        "an option of the spec rather than one of the adapter",
        "the URL rather than the options",
        "the URL of the spec rather than that of the adapter",
        "no option of a URL that is not used",
        "a blank option is none",
        "a blank field is none",
    ],
)
def test_which_selector_counts(jms_broker_url, places, expected):
    assert delivered(jms_broker_url, **places) == expected


@pytest.mark.parametrize(
    ("option", "selector", "expected"),
    [
        (f"(sub IS NULL OR {MINE}) ${{andselector}}", "kind = 1", ["None 1", "sub47 1"]),
        (
            f"(sub IS NULL OR {MINE}) ${{andselector}}",
            None,
            ["None None", "None 1", "None 2", *(f"sub47 {kind}" for kind in (None, 1, 2))],
        ),
        (f"${{selectorand}} {MINE}", "kind = 1 OR kind = 2", ["sub47 1", "sub47 2"]),
        ("last OR ${selector}", "kind = 2", ["None 2", "sub47 2", "other 2", "${subscribername} 2"]),
        ("last OR sub = '$${subscribername}'", None, [f"${{subscribername}} {kind}" for kind in (None, 1, 2)]),
        ("last OR ${selector}", MINE, [f"${{subscribername}} {kind}" for kind in (None, 1, 2)]),  # once
        ("last OR sub = '${unknown}'", None, []),
    ],
)
def test_the_selector_of_the_spec_is_put_in(jms_broker_url, option, selector, expected):
    assert delivered(jms_broker_url, options={OPTION: option}, selector=selector) == expected


def test_without_a_subscription_its_name_is_empty(jms_broker_url):
    selector = "last OR sub = '${subscribername}' OR sub IS NULL"
    assert delivered(jms_broker_url, durable=False, selector=selector) == ["None None", "None 1", "None 2"]


@pytest.mark.parametrize("mode", ["sync", "cc"])
def test_in_every_mode(jms_broker_url, mode):
    fields = {"concurrency_mode": mode, "endpoint_pool_max_size": 1}
    assert delivered(jms_broker_url, selector="kind = 1", **fields) == ONES
