"""Options as text, the options of endpoints, and how they reach endpoints and providers."""

import contextlib
import math
import re
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import ConnectionFactory, Queue, ResourceAdapter, TextMessage
from jmsjca.config import InboundOptions, parse_options
from jmsjca.config.options import OutboundOptions, environment_options, read_options
from jmsjca.errors import InvalidActivationSpecError, InvalidOptionError, InvalidSelectorError
from tests.unit.config.conformance_cases import rows_of
from tests.unit.inbound.listeners import Inbox


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        (" \n\t\r\n", {}),
        ("a=b", {"a": "b"}),
        ("a=b\nc=d\r\ne=f\rg=h", {"a": "b", "c": "d", "e": "f", "g": "h"}),
        ("a:b\nc d\ne\t=\ff", {"a": "b", "c": "d", "e": "f"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a==b\nc=:d\ne : = f", {"a": "=b", "c": ":d", "e": "= f"}),
        ("a\nb=\n=c", {"a": "", "b": "", "": "c"}),
        ("a=1\na=2", {"a": "2"}),
        ("# a=b\n ! c=d \\\ne=f #g", {"e": "f #g"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        (r"a\=\:\ b\\c=\t\n\r\f\d\"", {"a=: b\\c": '\t\n\r\fd"'}),
        (r"\u00e4=\u20AC\u0041", {"ä": "€A"}),
        ("url=amqp://host:5672/x?y=z", {"url": "amqp://host:5672/x?y=z"}),
        ("ключ=значение", {"ключ": "значение"}),
    ],
)
def test_lines(text, options):
    assert parse_options(text) == options


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("JMSJCA.sep=,a=b,c=d", {"JMSJCA.sep": "", "a": "b", "c": "d"}),
        ("a=b~JMSJCA.sep=~c=d\\~d", {"a": "b", "JMSJCA.sep": "", "c": "d~d"}),
        ("JMSJCA.sep=*a=Q.\\**b=\\\\t", {"JMSJCA.sep": "", "a": "Q.*", "b": "\\t"}),
        ("JMSJCA.sep=,,a=b,,,c=d,", {"JMSJCA.sep": "", "a": "b", "c": "d"}),
        ("JMSJCA.sep=,a=b\nc=d", {"JMSJCA.sep": "", "a": "b", "c": "d"}),
        ("a=b~JMSJCA.sepA~", {"a": "b~JMSJCA.sepA~"}),
        ("JMSJCA.sep=.*a=b.c=d", {"JMSJCA": "", "sep": "", "*a": "b", "c": "d"}),
    ],
)
def test_one_line(text, options):
    assert parse_options(text) == options


@pytest.mark.parametrize("text", ["JMSJCA.sep=", "a=b~JMSJCA.sep=", r"a=\u12", r"\u00g0=b", r"a=\u"])
def test_what_cannot_be_read(text):
    with pytest.raises(InvalidOptionError):
        parse_options(text)


def test_error_shows_little_of_the_text():
    with pytest.raises(InvalidOptionError) as caught:
        parse_options("password=s3cr3t\na=\\u12 s3cr3t")
    assert "s3cr3t" not in str(caught.value)


def test_own_options_are_known_in_any_case():
    text = "jmsjca.REDELIVERYREDIRECT=true\nImqAbc=1"
    assert read_options(text) == {"JMSJCA.redeliveryredirect": "true", "ImqAbc": "1"}
    assert read_options({"JMSJCA.noxa": "x", "noxa": "y"}) == {"JMSJCA.NoXA": "x", "noxa": "y"}


def test_separator_is_no_option():
    assert read_options("JMSJCA.sep=,a=b") == {"a": "b"}
    assert read_options(None) == {}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("JMSJCA.redeliveryhandlin", "(did you mean JMSJCA.redeliveryhandling?)"),
        ("JMSJCA.concurrency", "(did you mean JMSJCA.concurrencymode?)"),
        ("JMSJCA.", "(there are JMSJCA.ACC, "),
    ],
)
def test_unknown_own_option_is_refused(name, hint):
    with pytest.raises(InvalidOptionError, match=re.escape(hint)) as caught:
        read_options({name: "s3cr3t"})
    assert "s3cr3t" not in str(caught.value)


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if c in "\\=:#! \t\n\r\f" else c for c in text)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(lambda text: "JMSJCA.sep" not in text)


@given(st.dictionaries(texts.filter(bool), texts, max_size=5))
def test_what_is_written_with_escapes_is_read_back(options):
    text = "\n".join(f"{escaped(name)} = {escaped(value)}" for name, value in options.items())
    assert parse_options(text) == options


@given(st.dictionaries(st.sampled_from("abc"), st.text("xy~,*^$]", max_size=5)), st.sampled_from("~,*^$]"))
def test_any_character_may_separate(options, separator):
    pairs = [f"{name}={value.replace(separator, chr(92) + separator)}" for name, value in options.items()]
    text = separator.join([*pairs, f"JMSJCA.sep={separator}"])
    assert parse_options(text) == {"JMSJCA.sep": ""} | options


@given(st.text("ab=:\\ \n\r#!u0~JMSJCA.sep", max_size=40))
def test_whatever_is_written_is_read_or_refused(text):
    with contextlib.suppress(InvalidOptionError):
        assert isinstance(parse_options(text), dict)


@pytest.mark.parametrize("row", rows_of("options", "split_options", "multi_line_options"))
def test_conformance(row):
    expected = row["expect"]
    if "error" in expected:
        with pytest.raises(InvalidOptionError):
            parse_options(row["input"])
        return
    wanted = expected["as_properties"] if "as_properties" in expected else parse_options(expected["lines"])
    assert parse_options(row["input"]) == wanted


def test_defaults():
    assert InboundOptions.of({}) == InboundOptions(
        redelivery_redirect=False,
        receive_timeout=10.0,
        minimal_reconnect_logging=False,
        minimal_reconnect_logging_ds=False,
    )


@pytest.mark.parametrize(("value", "on"), [("true", True), ("True", True), ("", False), ("FALSE", False)])
def test_boolean_is_true_or_false_in_any_case(value, on):
    assert InboundOptions.of({"JMSJCA.redeliveryredirect": value}).redelivery_redirect is on
    assert OutboundOptions.of({"JMSJCA.IgnoreTx": value}).ignore_transacted is on


@pytest.mark.parametrize(("value", "on"), [("1", True), ("", False), ("true", True), ("0", False)])
def test_number_is_a_boolean_where_the_manual_has_one(value, on):
    assert InboundOptions.of({"JMSJCA.minimalreconnectlogging": value}).minimal_reconnect_logging is on
    assert InboundOptions.of({"JMSJCA.minimalreconnectloggingds": value}).minimal_reconnect_logging_ds is on


@pytest.mark.parametrize("value", ["1", "yes", "tru", "01", "on"])
@pytest.mark.parametrize("name", ["redeliveryredirect", "IgnoreTx", "ACC", "BypassRA", "Strict", "NoXA", "nocfcache"])
def test_another_boolean_is_refused(name, value):
    with pytest.raises(InvalidOptionError, match=rf"JMSJCA\.{name} must be true or false, not '{value}'"):
        (InboundOptions if name == "redeliveryredirect" else OutboundOptions).of({f"JMSJCA.{name}": value})


@pytest.mark.parametrize(
    ("options", "has_locator", "expected"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"JMSJCA.LocatorClass": "thread"}, False, True),
        ({"JMSJCA.ACC": "false"}, False, True),
        ({"JMSJCA.ACC": "true"}, True, False),
        ({"JMSJCA.ACC": "true", "JMSJCA.IgnoreTx": "true"}, True, True),
        ({"JMSJCA.ACC": "false", "JMSJCA.IgnoreTx": "false"}, True, False),
    ],
)
def test_ignore_tx_is_by_default_the_opposite_of_acc(options, has_locator, expected):
    assert OutboundOptions.of(options, has_locator=has_locator).ignore_transacted is expected


def test_bypass_takes_the_adapter_away():
    found = OutboundOptions.of({"JMSJCA.BypassRA": "true", "JMSJCA.ACC": "false", "JMSJCA.IgnoreTx": "true"})
    assert (found.managed, found.ignore_transacted) == (False, False)


@pytest.mark.parametrize(("acc", "expected"), [("true", True), ("false", False)])
def test_no_xa_is_by_default_acc(acc, expected):
    assert OutboundOptions.of({"JMSJCA.ACC": acc}).no_xa is expected
    assert OutboundOptions.of({"JMSJCA.ACC": acc, "JMSJCA.NoXA": str(not expected)}).no_xa is not expected


def test_outbound_options_are_parsed():
    sizes = {"poolminsize": "1", "poolmaxsize": "4", "pooltimeout": "250"}
    text = {**sizes, "idletimeout": "1500", "producerpooling": "TRUE"}
    found = OutboundOptions.of({f"JMSJCA.{name}": value for name, value in text.items()})
    assert found == OutboundOptions(False, True, 1.5, 1, 4, 0.25)
    assert OutboundOptions.of({}) == OutboundOptions()


@pytest.mark.parametrize(("value", "seconds"), [("-1", -1.0), ("0", math.inf), ("10", 0.01), ("", None)])
def test_pool_timeout_has_the_manuals_special_values(value, seconds):
    assert OutboundOptions.of({"JMSJCA.pooltimeout": value}).pool_timeout == seconds


@pytest.mark.parametrize(
    ("name", "value"),
    [("poolmaxsize", "0"), ("poolminsize", "-1"), ("pooltimeout", "a"), ("pooltimeout", "--1"), ("idletimeout", "x")],
)
def test_number_out_of_range_is_refused(name, value):
    with pytest.raises(InvalidOptionError, match=rf"JMSJCA\.{name}"):
        OutboundOptions.of({f"JMSJCA.{name}": value})


def test_environment_has_options_for_programs_that_ask(monkeypatch):
    monkeypatch.setenv("JMSJCA_NOXA", "true")
    monkeypatch.setenv("JMSJCA_REDELIVERYHANDLING", "3:move(queue:dlq)")
    monkeypatch.setenv("JMSJCA_UNKNOWN", "x")
    found = environment_options()
    assert (found["JMSJCA.NoXA"], found["JMSJCA.redeliveryhandling"]) == ("true", "3:move(queue:dlq)")
    assert not any("unknown" in name.lower() for name in found)
    read_options(found)


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 86400.0), ("1", 0.001), ("3000", 3.0), ("", 10.0), ("86400000", 86400.0)]
)
def test_receive_timeout(value, seconds):
    assert InboundOptions.of({"JMSJCA.receivetimeout": value}).receive_timeout == seconds


@pytest.mark.parametrize("value", ["-1", "1.5", "soon", "86400001", "9" * 5000, "٣"])
def test_wrong_receive_timeout(value):
    with pytest.raises(InvalidOptionError, match=r"JMSJCA\.receivetimeout") as caught:
        InboundOptions.of({"JMSJCA.receivetimeout": value})
    assert len(str(caught.value)) < 200


def send_regions(adapter, *regions):
    with adapter.connection_factory().create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue("q"))
        for region in regions:
            producer.send(TextMessage(region, properties={"region": region, "n": 1}))


def with_selector(url, selector):
    return f"{url}?JMSJCA.selector={quote_plus(selector)}"


def test_selector_of_the_url_selects(jms_broker_url):
    adapter, inbox = ResourceAdapter(with_selector(jms_broker_url, "region = 'EU' ${andselector}")), Inbox()
    adapter.listener("q", selector="n = 1")(inbox)
    assert adapter.activations[0].spec.selector == "region = 'EU' and (n = 1)"
    with adapter:
        send_regions(adapter, "US", "EU")
        assert inbox.take(1) == [("EU", 1)]


def test_selector_of_the_adapters_options_selects_unless_the_spec_has_one(jms_broker_url):
    adapter = ResourceAdapter(jms_broker_url, options="JMSJCA.sep=,JMSJCA.selector=region = 'EU'")
    europe, america = Inbox(), Inbox()
    adapter.listener("q")(europe)
    adapter.listener("q", options={"JMSJCA.selector": "region = 'US'"})(america)
    with adapter:
        send_regions(adapter, "US", "EU")
        assert (europe.take(1), america.take(1)) == ([("EU", 1)], [("US", 1)])


def test_no_provider_sees_own_options(jms_broker_url):
    url = f"{jms_broker_url}?JMSJCA.NoXA=true&jmsjca.STRICT=false"
    with ConnectionFactory(url).create_connection() as connection:
        assert connection.create_session() is not None


def test_unknown_own_option_of_a_factorys_url_is_refused(jms_broker_url):
    with pytest.raises(InvalidOptionError, match=r"did you mean JMSJCA\.NoXA"):
        ConnectionFactory(f"{jms_broker_url}?JMSJCA.NoX=true").create_connection()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("amqp://localhost:1", {"reply_timeout": "never", "JMSJCA.NoXA": "true"}),
        ("amqp://localhost:1?heartbeat=5&JMSJCA.NoXA=true", {"reply_timeout": "never"}),
        ("amqp://localhost:1?reply_timeout=never&JMSJCA.NoXA=true", {}),
    ],
)
def test_providers_options_reach_it(url, options):
    adapter = ResourceAdapter(url, options=options)
    with pytest.raises(InvalidOptionError, match=r"reply_timeout .* 'never'"):
        adapter.connection_factory().create_connection()


def test_wrong_options_are_refused_at_once(jms_broker_url):
    with pytest.raises(InvalidOptionError, match=r"JMSJCA\.colour"):
        ResourceAdapter(jms_broker_url, options="JMSJCA.colour=red")
    adapter = ResourceAdapter(jms_broker_url, options={"JMSJCA.concurrencymode": "parallel"})
    with pytest.raises(InvalidActivationSpecError, match=r"JMSJCA\.concurrencymode"):
        adapter.listener("q")(Inbox())
    adapter = ResourceAdapter(with_selector(jms_broker_url, "a = '${b'"))
    with pytest.raises(InvalidSelectorError):
        adapter.listener("q")(Inbox())
    assert adapter.activations == ()
