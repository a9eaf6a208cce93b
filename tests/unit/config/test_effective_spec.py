"""The spec in force: precedence of its sources, and its selector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import ActivationSpec, Topic
from jmsjca.config import ConnectionURL, resolve_spec
from jmsjca.errors import InvalidActivationSpecError, InvalidOptionError, InvalidSelectorError, InvalidURLError
from jmsjca.selectors import Selector
from tests.unit.config.conformance_cases import rows_of
from tests.unit.selectors.conformance_cases import values

HIDDEN = "s3cr3t"


def spec(**fields):
    return ActivationSpec(destination="q", **fields)


def test_without_options_nothing_changes_but_the_url():
    written = spec(connection_url="p://own", concurrency_mode="cc", batch_size=3, password=HIDDEN, user_name="ann")
    assert resolve_spec(written, None, "p://adapter") == written
    assert resolve_spec(spec(), {}, "p://adapter") == spec(connection_url="p://adapter")
    assert resolve_spec(spec()) == spec()


def test_written_spec_stays_as_it_is():
    written = spec(options="JMSJCA.concurrencymode=cc")
    effective = resolve_spec(written, "JMSJCA.redeliveryhandling=1:delete")
    assert (effective.concurrency_mode, effective.redelivery_handling) == ("cc", "1:delete")
    assert written == spec(options="JMSJCA.concurrencymode=cc")


HANDLING = "JMSJCA.redeliveryhandling"
SOURCES = {
    "url": {"connection_url": f"p://h?{HANDLING}=4:4"},
    "spec": {"options": f"{HANDLING}=3\\:3"},
    "adapter": {},
    "field": {"redelivery_handling": "1:1"},
}


@given(st.sets(st.sampled_from(["url", "spec", "adapter", "field"])))
def test_precedence(given_in):
    fields = {name: value for source in given_in for name, value in SOURCES[source].items()}
    adapter = {HANDLING: "2:2"} if "adapter" in given_in else None
    effective = resolve_spec(spec(**fields), adapter, "p://adapter")
    values = {"url": "4:4", "spec": "3:3", "adapter": "2:2", "field": "1:1"}
    expected = next((value for source, value in values.items() if source in given_in), spec().redelivery_handling)
    assert effective.redelivery_handling == expected
    assert effective.options.get(HANDLING) == (expected if given_in & {"url", "spec", "adapter"} else None)


def test_only_the_url_that_is_used_counts():
    adapter_url = "p://adapter?JMSJCA.concurrencymode=cc"
    assert resolve_spec(spec(), None, adapter_url).concurrency_mode == "cc"
    assert resolve_spec(spec(connection_url="p://own"), None, adapter_url).concurrency_mode == "serial"


@pytest.mark.parametrize("value", ["", " "])
def test_blank_option_is_none(value):
    options = {HANDLING: value, "JMSJCA.concurrencymode": value, "JMSJCA.selector": value}
    effective = resolve_spec(spec(options=options, redelivery_handling="1:1", selector="a = 1"))
    assert (effective.redelivery_handling, effective.concurrency_mode, effective.selector) == ("1:1", "serial", "a = 1")


def test_options_of_all_sources_are_in_force():
    written = spec(options={"a": "spec", "b": "spec"}, connection_url="p://h?JMSJCA.receivetimeout=1500&z=url")
    effective = resolve_spec(written, {"b": "adapter", "c": "adapter", "JMSJCA.redeliveryredirect": "TRUE"})
    assert effective.options == {
        "a": "spec",
        "b": "spec",
        "c": "adapter",
        "JMSJCA.redeliveryredirect": "TRUE",
        "JMSJCA.receivetimeout": "1500",
    }
    assert effective.inbound_options.redelivery_redirect is True
    assert effective.inbound_options.receive_timeout == 1.5


def test_provider_options_go_to_the_url_unless_it_has_them():
    written = spec(options={"a": "spec", "b": "x/y&z"}, connection_url="p://ann:p%40w@h:1/x?a=url&JMSJCA.NoXA=true")
    url = ConnectionURL.parse(resolve_spec(written, {"b": "adapter", "c": "ü="}).connection_url)
    assert url.for_provider().query == {"a": "url", "b": "x/y&z", "c": "ü="}
    assert (url.user_name, url.password, url.host, url.port, url.path) == ("ann", "p@w", "h", 1, "/x")


@pytest.mark.parametrize("options", ["JMSJCA.colour=red", {"JMSJCA.receivetimeout": "soon"}, "JMSJCA.sep="])
def test_wrong_options_of_the_adapter(options):
    with pytest.raises(InvalidOptionError):
        resolve_spec(spec(), options)


def test_wrong_url_of_the_adapter():
    with pytest.raises(InvalidURLError):
        resolve_spec(spec(), None, "no url")
    with pytest.raises(InvalidOptionError, match=r"did you mean JMSJCA\.selector"):
        resolve_spec(spec(), None, "p://h?JMSJCA.selectors=x")


@pytest.mark.parametrize(
    ("fields", "options", "told"),
    [
        ({}, {"JMSJCA.concurrencymode": "parallel"}, "With JMSJCA.concurrencymode .* concurrency_mode: "),
        ({}, {HANDLING: "x"}, "With JMSJCA.redeliveryhandling .* redelivery_handling: "),
        (
            {"concurrency_mode": "cc", "batch_size": 2},
            {"JMSJCA.concurrencymode": "serial"},
            "batch_size: mode 'serial'",
        ),
    ],
)
def test_field_that_an_option_makes_wrong(fields, options, told):
    with pytest.raises(InvalidActivationSpecError, match=told):
        resolve_spec(spec(**fields), options)


def test_topic_stays_a_topic():
    written = ActivationSpec(destination=Topic("t"), subscription_durability="Durable", subscription_name="s")
    assert resolve_spec(written, {"a": "b"}).source() == written.source()


SUB = "(sub = null or sub = '${subscribername}')"


def selector(option=None, message_selector=None, subscription=None):
    """The selector that is used; the option comes from the spec's options."""
    options = {} if option is None else {"JMSJCA.selector": option}
    durable = {} if subscription is None else {"subscription_durability": "Durable", "subscription_name": subscription}
    return resolve_spec(
        ActivationSpec(destination=Topic("t"), selector=message_selector, options=options, **durable)
    ).selector


@pytest.mark.parametrize(
    ("option", "message_selector", "subscription", "expected"),
    [
        ("(sub = '${subscribername}')  ${andselector}", "a = 1", "dursub1", "(sub = 'dursub1')  and (a = 1)"),
        (None, SUB, "sub47", "(sub = null or sub = 'sub47')"),
        (f"{SUB} ${{andselector}}", "msgtype = 1", "sub47", "(sub = null or sub = 'sub47') and (msgtype = 1)"),
        (f"{SUB} ${{andselector}}", None, "sub47", "(sub = null or sub = 'sub47') "),
        (f"${{selectorand}} {SUB}", "msgtype = 1", "sub47", "(msgtype = 1) and (sub = null or sub = 'sub47')"),
        ("${selector}", "a = 1", None, "a = 1"),
        ("x = 1 ${andselector}", "", None, "x = 1 "),
        ("x = 1 ${andselector}", " \t", None, "x = 1 "),
        ("${selectorand} x = 1", "a = 1 or b = 2", None, "(a = 1 or b = 2) and x = 1"),
        ("sub='${subscribername}'", None, None, "sub=''"),
        ("sub='${subscribername}'", None, "jmsjca://?subscribername=s1&distribution=1", "sub='s1'"),
        ("sub='${subscribername}'", None, "jmsjca://distribution=1&subscribername=s1", "sub='s1'"),
        (None, "a = 1", "s1", "a = 1"),
        ("", "a = 1", "s1", "a = 1"),
        ("  ", "a = 1", "s1", "a = 1"),
        (None, None, "s1", None),
        (None, "", "s1", None),
        (None, "  ", "s1", None),
        ("x = 1", "a = 1", None, "x = 1"),
        ("${selector}", None, None, ""),
        ("p = '${no.such.parameter}'", None, None, "p = '${no.such.parameter}'"),
        ("p = '$${subscribername}'", None, "s", "p = '${subscribername}'"),
        ("${selector}", "a = '${subscribername}'", "s", "a = '${subscribername}'"),  # a single pass
        ("sub = '${subscribername}'", None, "o'neill", "sub = 'o''neill'"),
        ("sub = ${subscribername}", None, "s", "sub = 's'"),
    ],
)
def test_selector(option, message_selector, subscription, expected):
    assert selector(option, message_selector, subscription) == expected


@pytest.mark.parametrize("fields", [{"option": "x = '${broken"}, {"message_selector": "x = '${broken'"}])
def test_placeholder_that_is_not_closed(fields):
    with pytest.raises(InvalidSelectorError, match="no closing brace"):
        selector(**fields)


def test_option_of_the_url_counts():
    url = "p://localhost:18007?JMSJCA.selector=%24%7Bselectorand%7D+sub+%3D+1"
    spec = ActivationSpec(destination="q", selector="a = 1", connection_url=url, options={"JMSJCA.selector": "b = 1"})
    assert resolve_spec(spec, {"JMSJCA.selector": "c = 1"}).selector == "(a = 1) and sub = 1"


@pytest.mark.parametrize("row", rows_of("substitution", "selector"))
def test_conformance(row):
    given = (row["option_selector"], row["message_selector"], row["subscription_name"])
    if "error" in row["expect"]:
        with pytest.raises(InvalidSelectorError):
            selector(*given)
        return
    used = selector(*given)
    assert used == row["expect"]["selector"]
    for case in row["expect"].get("selects", []):
        message = values({"headers": {}, "properties": case["properties"]})
        assert (Selector.parse(used).evaluate(message) is True) == case["match"]


@pytest.mark.parametrize("row", rows_of("substitution", "url"))
def test_conformance_of_urls(row):
    assert ConnectionURL.parse(row["url"]).query == row["expect"]


@pytest.mark.parametrize(("given", "effective"), [("required", "bean"), ("local", "local"), ("none", "none")])
@pytest.mark.parametrize("option", ["JMSJCA.NoXA", "JMSJCA.ForceBMT"])
def test_options_take_container_managed_transactions_away(option, given, effective):
    written = spec(transaction=given)
    assert resolve_spec(written, {option: "true"}).transaction == effective
    assert resolve_spec(written, {option: "false"}).transaction == given
