"""Connection URLs, packed options and passwords, held against the cases in the folder that JMSJCA_CONFORMANCE names."""

import base64
from dataclasses import replace

import pytest

from jmsjca.config import ConnectionURL, parse_options
from jmsjca.config.credentials import decode_password
from jmsjca.errors import InvalidOptionError, InvalidURLError
from tests.unit.config.conformance_cases import rows_of

# The places of the rows where this library deviates on purpose; docs/compatibility.md has the reasons.
QUERY_WITHOUT_EQUALS = frozenset(  # refused with the URL; the original refuses it when the options are read (row 63)
    {19, 20, 25, 26, 30, 31, 35, 36, 40, 41, 45, 46, 47, 51, 52, 53}
)
SLASH_IN_QUERY = frozenset({68})  # belongs to the query; in the original the first slash ends the host, even there
ABSENT_SEPARATOR = frozenset({10})  # refused, as in row 7; the original leaves such options packed
LIST_OF_URLS = frozenset({69, 70, 71, 72})  # refused; the hosts of a list share scheme, path and options
DEVIATIONS = QUERY_WITHOUT_EQUALS | SLASH_IN_QUERY | ABSENT_SEPARATOR | LIST_OF_URLS

ENCODED = "__:ENC:08:"


def _agreed(*kinds):
    """The rows of these kinds without the deviations."""
    return [row for row in rows_of("options", *kinds) if row.values[0] is None or _place(row) not in DEVIATIONS]


def _deviating(places):
    """The rows at these places, of whatever kind."""
    kinds = ("url", "url_change", "unpack_options", "url_list")
    return [row for row in rows_of("options", *kinds) if row.values[0] is None or _place(row) in places]


def _place(row):
    return int(row.id.split()[0])


def _parts(url):
    return url.protocol, url.host, -1 if url.port is None else url.port, url.path


def _expected_parts(row):
    expected = row["expect"]
    protocol = expected.get("protocol") or row["url"].partition(":")[0]
    return protocol, expected["host"] or "", expected["port"], expected["path"] or ""


def _without_query(url):
    return url.partition("?")[0]


@pytest.mark.parametrize("row", _agreed("url"))
def test_url(row):
    if "error" in row["expect"]:
        with pytest.raises(InvalidURLError):
            ConnectionURL.parse(row["url"])
        return
    url = ConnectionURL.parse(row["url"])
    assert _parts(url) == _expected_parts(row)
    assert bool(url.query) == bool(row["expect"]["query"])
    if "to_string" in row:
        assert str(url) == row["to_string"]


@pytest.mark.parametrize("row", _deviating(QUERY_WITHOUT_EQUALS))
def test_query_without_equals_is_refused_with_its_url(row):
    with pytest.raises(InvalidURLError, match="key=value"):
        ConnectionURL.parse(row["url"])
    url = replace(ConnectionURL.parse(_without_query(row["url"])), **row.get("set", {}))
    assert _parts(url) == _expected_parts(row)
    assert str(url) == _without_query(row["expect"].get("url", row["url"] if "set" not in row else ""))


@pytest.mark.parametrize("row", _deviating(SLASH_IN_QUERY))
def test_slash_in_a_query_belongs_to_it(row):
    url = ConnectionURL.parse(row["url"])
    assert (_parts(url), url.query) == (("p", "h", -1, ""), {"x": "a/b"})


@pytest.mark.parametrize("row", _agreed("url_change"))
def test_changed_url(row):
    url = replace(ConnectionURL.parse(row["url"]), **row["set"])
    assert _parts(url) == _expected_parts(row)
    assert str(url) == row["expect"]["url"]


@pytest.mark.parametrize("row", _agreed("query"))
def test_query(row):
    if "error" in row["expect"]:
        with pytest.raises(InvalidURLError):
            ConnectionURL.parse(row["url"])
        return
    url = ConnectionURL.parse(row["url"])
    changed = replace(url, **row.get("set", {}))
    assert url.query == changed.query == row["expect"]["properties"]
    if "url" in row["expect"]:
        assert str(changed) == f"{_without_query(row['expect']['url'])}?…"


@pytest.mark.parametrize("row", _deviating(LIST_OF_URLS))
def test_list_of_whole_urls_is_refused(row):
    with pytest.raises(InvalidURLError, match="one scheme"):
        ConnectionURL.parse(row["url"])


@pytest.mark.parametrize("row", _agreed("unpack_options"))
def test_packed_options_are_those_of_their_unpacked_text(row):
    packed = parse_options(row["input"])
    assert packed.pop("JMSJCA.sep") == ""
    assert packed == parse_options(row["expect"]["unpacked"])
    assert list(packed) == [line.partition("=")[0] for line in row["expect"]["unpacked"].split("\r\n") if line]


@pytest.mark.parametrize("row", _deviating(ABSENT_SEPARATOR))
def test_packed_options_without_their_separator_are_refused(row):
    with pytest.raises(InvalidOptionError, match="must follow"):
        parse_options(row["input"])


@pytest.mark.parametrize("row", _agreed("password"))
def test_password(row):
    expected = row["expect"]
    if "decode" in expected:
        assert decode_password(row["input"]) == expected["decode"]
        return
    encoded = ENCODED + base64.b64encode(row["input"].encode()).decode()
    assert (encoded != row["input"]) is expected["encode_differs_from_plain"]
    assert decode_password(row["input"]) == expected["decode_of_plain"]
    assert decode_password(encoded) == expected["decode_of_encode"]
