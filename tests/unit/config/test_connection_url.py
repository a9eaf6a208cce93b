"""Connection URLs."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.config import Address, ConnectionURL, add_options
from jmsjca.errors import InvalidOptionError, InvalidURLError, UnknownSchemeError
from jmsjca.providers import find_provider
from jmsjca.reconnection import ConnectionSettings, connect

HIDDEN = "s3cr3t"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("amqp://host:5672", ("amqp", "host", 5672, "", {})),
        ("stomp+ssl://host", ("stomp+ssl", "host", None, "", {})),
        ("amqp://host:/x", ("amqp", "host", None, "/x", {})),
        ("amqp://[::1]:5672/x", ("amqp", "[::1]", 5672, "/x", {})),
        ("amqp://[::1]", ("amqp", "[::1]", None, "", {})),
        ("embedded://", ("embedded", "", None, "", {})),
        ("embedded://name", ("embedded", "name", None, "", {})),
        ("embedded:///a/b.db", ("embedded", "", None, "/a/b.db", {})),
        ("p://h?a=1", ("p", "h", None, "", {"a": "1"})),
        ("p://h/x?a=b+c&d=%2F&e=", ("p", "h", None, "/x", {"a": "b c", "d": "/", "e": ""})),
        ("p://h/?a=b=c&a=2", ("p", "h", None, "/", {"a": "2"})),
        ("p://h?a=1&amp;b=2&&", ("p", "h", None, "", {"a": "1", "b": "2"})),
        ("p://h:65535", ("p", "h", 65535, "", {})),
    ],
)
def test_parts(text, parts):
    url = ConnectionURL.parse(text)
    assert (url.protocol, url.host, url.port, url.path, url.query) == parts
    assert (url.user_name, url.password) == (None, None)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("amqp://ann@host", ("ann", None)),
        ("amqp://ann:@host", ("ann", "")),
        ("amqp://ann:pw@host", ("ann", "pw")),
        ("amqp://ann:p:w@host", ("ann", "p:w")),
        ("amqp://ann:p@w@host", ("ann", "p@w")),
        ("amqp://a%40b:p%2Fw%3F@host", ("a@b", "p/w?")),
    ],
)
def test_user_name_and_password(text, pair):
    url = ConnectionURL.parse(text)
    assert (url.user_name, url.password) == pair
    assert url.host == "host"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must begin with a scheme"),
        ("host:1", "must begin with a scheme"),
        ("://host", "must begin with a scheme"),
        ("1a://host", "must begin with a scheme"),
        ("a b://host", "must begin with a scheme"),
        ("p://h:x", "port"),
        ("p://h:-1", "port"),
        ("p://h:65536", "port"),
        ("p://h:٣", "port"),  # a digit, but not one of ours
        (f"p://h:{'9' * 5000}", "port"),
        ("p://h:1:2", "port"),
        ("p://::1", "port"),
        ("p://[::1]5", "port"),
        ("p://[::1]x:5", "port"),
        ("p://[::1", "bracket"),
        ("p://a,", "host is missing"),
        ("p://,a", "host is missing"),
        ("p://a,,b", "host is missing"),
        ("p://a,:1", "host is missing"),
        ("p://,", "host is missing"),
        ("p://a, b", "blanks around"),
        ("p://a,b:x", "port"),
        ("p://a:65536,b", "port"),
        ("p://a,[::1", "bracket"),
        ("p://u@a,v@b", "comma after an @"),
        ("p://h?a", "key=value"),
        ("p://h?=b", "key=value"),
    ],
)
def test_what_does_not_parse(text, why):
    with pytest.raises(InvalidURLError, match=why):
        ConnectionURL.parse(text)


def test_text_form_shows_everything_but_secrets():
    url = ConnectionURL.parse(f"amqp://ann:{HIDDEN}@host:5672/x?token={HIDDEN}")
    assert str(url) == "amqp://ann@host:5672/x?…"
    assert HIDDEN not in f"{url} {url!r}"


@pytest.mark.parametrize(
    "text",
    [
        f"amqp://ann:{HIDDEN}@host:bad",
        f"amqp://ann:{HIDDEN}@host?option",
        f"amqp://ann:x/{HIDDEN}@host",
        f"amqp://ann:{HIDDEN}/x@host",
        f"amqp://ann:{HIDDEN}?x@host",
        f"amqp://ann:x?{HIDDEN}@host",
        f"ann:{HIDDEN}@host:5672",
        f"amqp:/ann:{HIDDEN}@host:5672",
        f"amqp://host:bad?password={HIDDEN}",
        f"amqp://host?x&password={HIDDEN}",
        f"amqp://host?={HIDDEN}",
        f"amqp://ann:{HIDDEN}@one,,two",
        f"amqp://ann:{HIDDEN}@one,bob:{HIDDEN}@two",
        f"amqp://ann:x@{HIDDEN},{HIDDEN}@two",
    ],
)
def test_no_error_shows_a_secret(text):
    """Also where the password was not encoded, so that the URL is read wrongly."""
    with pytest.raises(InvalidURLError) as caught:
        ConnectionURL.parse(text)
    assert HIDDEN not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("p://a", [("a", None)]),
        ("p://", [("", None)]),
        ("p://a,b", [("a", None), ("b", None)]),
        ("p://a:1,b,[::1]:2,[::2]", [("a", 1), ("b", None), ("[::1]", 2), ("[::2]", None)]),
        ("p://u:p,w@a:1,b:2/x?y=1,2", [("a", 1), ("b", 2)]),
        ("p://a,a", [("a", None), ("a", None)]),
    ],
)
def test_hosts_of_a_fail_over_list(text, addresses):
    url = ConnectionURL.parse(text)
    assert list(url.addresses) == addresses
    assert (url.host, url.port) == addresses[0]


def test_a_fail_over_list_shares_all_but_the_hosts():
    url = ConnectionURL.parse(f"amqp://ann:{HIDDEN}@a:1,b:2/x?c={HIDDEN}")
    assert (url.user_name, url.password, url.path, url.query) == ("ann", HIDDEN, "/x", {"c": HIDDEN})
    assert (str(url), repr(url)) == ("amqp://ann@a:1,b:2/x?…", "<ConnectionURL amqp://ann@a:1,b:2/x?…>")


@given(
    st.lists(st.builds(Address, st.sampled_from(["a", "b.c", "[::1]"]), st.none() | st.integers(0, 65535)), min_size=1),
    st.integers(0, 20),
)
def test_every_host_has_its_turn(addresses, position):
    url = ConnectionURL.parse(f"p://ann@{','.join(map(str, addresses))}/x?a=1")
    turns = list(url.rotations(position))
    first = position % len(addresses)
    assert [turn.addresses[0] for turn in turns] == addresses[first:] + addresses[:first]
    assert all(sorted(map(str, turn.addresses)) == sorted(map(str, addresses)) for turn in turns)
    assert all((turn.user_name, turn.path, turn.query) == ("ann", "/x", {"a": "1"}) for turn in turns)


def test_error_is_bounded():
    with pytest.raises(InvalidURLError) as caught:
        ConnectionURL.parse("x" * 100_000)
    assert len(str(caught.value)) < 400


def test_url_survives_pickling():
    url = ConnectionURL.parse("amqp://ann:pw@host:1/x?a=b")
    assert pickle.loads(pickle.dumps(url)) == url  # noqa: S301  # our own


def test_provider_gets_only_its_own_options():
    text = "p://ann:pw@h:1/x?a=1&JMSJCA.NoXA=true&jmsjca.selector=b&jmsjca=2&xJMSJCA.y=3"
    url = ConnectionURL.parse(text).for_provider()
    assert url == ConnectionURL.parse("p://ann:pw@h:1/x?a=1&jmsjca=2&xJMSJCA.y=3")


def test_unknown_own_option_does_not_get_to_a_provider():
    with pytest.raises(InvalidOptionError, match=r"There is no option 'JMSJCA\.x'"):
        ConnectionURL.parse(f"p://h?JMSJCA.x={HIDDEN}").for_provider()


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("p://h", {}, "p://h"),
        ("p://h", {"a": "b c", "d": "&=ü"}, "p://h?a=b+c&d=%26%3D%C3%BC"),
        ("p://h/x?a=1", {"a": "2", "b": "3"}, "p://h/x?a=1&b=3"),
        ("p://h?", {"a": "1"}, "p://h?&a=1"),
    ],
)
def test_options_are_added_where_they_are_missing(url, options, expected):
    assert add_options(url, options) == expected


def test_scheme_of_openwire_names_the_url_of_its_client():
    with pytest.raises(UnknownSchemeError, match=r"java\+tcp://host:61616"):
        find_provider("tcp")


@pytest.mark.parametrize("scheme", ["tcp", "ssl", "http"])
def test_schemes_of_other_clients_name_the_urls_of_their_brokers(scheme):
    with pytest.raises(UnknownSchemeError, match=r"amqp://host:5672.*stomp://host:61613") as caught:
        find_provider(scheme)
    assert "no successor" not in str(caught.value)


def test_failover_of_activemq_names_the_lists_of_hosts():
    lists = r"amqp://one:5672,two:5672 or stomp://one:61613,two:61613, or java\+tcp://one:61616,two:61616"
    with pytest.raises(InvalidURLError, match=lists):
        ConnectionURL.parse(f"failover:(tcp://ann:{HIDDEN}@a,tcp://b)")


@pytest.mark.parametrize("url", ["amqp://u:p@ss/w@h", "amqp://u:pass/w@h"])
def test_password_that_is_not_encoded_is_told_to_be(url):
    with pytest.raises(InvalidURLError, match="percent-encode") as caught:
        connect(ConnectionSettings(url))
    assert "pass" not in str(caught.value).replace("password", "")
