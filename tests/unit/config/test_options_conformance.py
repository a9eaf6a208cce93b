"""URLs, options, names, passwords, held against the cases in the folder that JMSJCA_CONFORMANCE names.

Precedence and pools are in ``tests/unit/outbound/test_outbound_conformance.py``.
"""

import base64
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from jmsjca import Queue, Topic
from jmsjca.config import ConnectionURL, DistributedSubscription, parse_options
from jmsjca.config.connection_url import decode_password
from jmsjca.config.naming import NamingContext, resolve_destination
from jmsjca.config.options import environment_options, read_options
from jmsjca.errors import (
    InvalidDestinationError,
    InvalidOptionError,
    InvalidURLError,
    NameNotFoundError,
)
from jmsjca.messages.delivery import vendor_property
from jmsjca.providers.java.clients import recipe_of
from jmsjca.selectors import substitute
from tests.unit.config.conformance_cases import place_of, rows_at, rows_of

# The places of the rows where this library deviates on purpose; docs/reference/compatibility.md has the reasons.
QUERY_WITHOUT_EQUALS = frozenset(  # refused with the URL; the original refuses it when the options are read (row 63)
    {19, 20, 25, 26, 30, 31, 35, 36, 40, 41, 45, 46, 47, 51, 52, 53}
)
SLASH_IN_QUERY = frozenset({68})  # belongs to the query; in the original the first slash ends the host, even there
ABSENT_SEPARATOR = frozenset({10})  # refused, as in row 7; the original leaves such options packed
LIST_OF_URLS = frozenset({69, 70, 71, 72})  # refused; the hosts of a list share scheme, path and options
DESTINATION_OPTIONS = frozenset({77, 78})  # refused: no provider here has options of destinations
DEVIATIONS = QUERY_WITHOUT_EQUALS | SLASH_IN_QUERY | ABSENT_SEPARATOR | LIST_OF_URLS | DESTINATION_OPTIONS

ENCODED = "__:ENC:08:"


def _agreed(*kinds):
    """The rows of these kinds without the deviations."""
    return [row for row in rows_of("options", *kinds) if row.values[0] is None or place_of(row) not in DEVIATIONS]


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


@pytest.mark.parametrize("row", rows_at(*QUERY_WITHOUT_EQUALS))
def test_query_without_equals_is_refused_with_its_url(row):
    with pytest.raises(InvalidURLError, match="key=value"):
        ConnectionURL.parse(row["url"])
    url = replace(ConnectionURL.parse(_without_query(row["url"])), **row.get("set", {}))
    assert _parts(url) == _expected_parts(row)
    assert str(url) == _without_query(row["expect"].get("url", row["url"] if "set" not in row else ""))


@pytest.mark.parametrize("row", rows_at(*SLASH_IN_QUERY))
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


@pytest.mark.parametrize("row", rows_at(*LIST_OF_URLS))
def test_list_of_whole_urls_is_refused(row):
    with pytest.raises(InvalidURLError, match="one scheme"):
        ConnectionURL.parse(row["url"])


@pytest.mark.parametrize("row", _agreed("unpack_options"))
def test_packed_options_are_those_of_their_unpacked_text(row):
    packed = parse_options(row["input"])
    assert packed.pop("JMSJCA.sep") == ""
    assert packed == parse_options(row["expect"]["unpacked"])
    assert list(packed) == [line.partition("=")[0] for line in row["expect"]["unpacked"].split("\r\n") if line]


@pytest.mark.parametrize("row", rows_at(*ABSENT_SEPARATOR))
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


@pytest.mark.parametrize("row", rows_at(73, 74, 75))
def test_url_of_websphere_sets_the_properties_of_its_factory(row):
    """The class of an exit must be allowed in addition. That a number is one (row 76) is known with the client."""
    url, expected = ConnectionURL.parse(row["url"]), dict(row["expect"])
    if "error" in expected:
        with pytest.raises(InvalidOptionError, match=r"no option 'WMQ_Securityxit' \(did you mean securityExit"):
            recipe_of(url)
        return
    with pytest.raises(InvalidOptionError, match="allow_classes"):
        recipe_of(url)
    found = recipe_of(replace(url, query=url.query | {"allow_classes": expected["SecurityExit"]})).settings
    wanted = {"hostName": expected.pop("host")} | {name: str(value).lower() for name, value in expected.items()}
    assert {name.lower(): value.lower() for name, value in found.items()}.items() >= {
        name.lower(): value.lower() for name, value in wanted.items()
    }.items()


@pytest.mark.parametrize("row", rows_at(*DESTINATION_OPTIONS))
def test_option_of_a_destination_is_refused(row):
    option = next(iter(row["expect"]["options"]))
    with pytest.raises(InvalidDestinationError, match=f"has no option '{option}' here"):
        resolve_destination(row["input"], row["destination_type"], NamingContext())
    plain = row["input"].partition("&")[0]
    kind = {"queue": Queue, "topic": Topic}[row["destination_type"]]
    assert resolve_destination(plain, row["destination_type"], NamingContext()) == kind(row["expect"]["name"])


@pytest.mark.parametrize("row", _agreed("destination_name"))
def test_name_of_a_destination(row):
    expected = row["expect"]
    bound = {expected["looked_up"]: Queue(expected["name"])} if "looked_up" in expected else {}
    naming = NamingContext.of(bound)
    if "error" in expected:
        with pytest.raises((InvalidDestinationError, NameNotFoundError)):
            resolve_destination(row["input"], row["destination_type"], naming)
        return
    for _ in range(2):
        assert resolve_destination(row["input"], row["destination_type"], naming) == Queue(expected["name"])


@pytest.mark.parametrize("row", rows_at(84, 85, 86))
def test_name_of_a_distributed_subscription(row):
    expected, parsed = row["expect"], DistributedSubscription.parse(row["input"])
    assert parsed.subscriber_name == expected["subscribername"]
    assert parsed.queue_name("<topic>") == expected.get("queue", f"LOADBALQ_<topic>_{parsed.subscriber_name}")
    assert (parsed.batch_size, parsed.mbean_name) == (expected.get("batchsize", 10), expected.get("mbeanname"))


@pytest.mark.parametrize("row", rows_at(103))
def test_every_name_of_the_original_is_known(row, monkeypatch):
    names = row["expect"]
    for option in {*names["options_in"], *names["options_out"], *names["options_both"]} - {"JMSJCA.sep"}:
        assert read_options({option.upper(): "x"}) == {option: "x"}
        monkeypatch.setenv(option.upper().replace(".", "_"), "y")
        assert environment_options()[option] == "y"
    given = "&".join(
        f"{name}={'1' if name in {'distribution', 'batchsize'} else name}" for name in names["subscription_name"]
    )
    assert DistributedSubscription.parse(f"jmsjca://?{given}") == DistributedSubscription(
        "subscribername", "queue", "mbeanname", 1
    )
    values = dict.fromkeys(names["selector_parameters"], 1)
    assert substitute(" ".join(f"${{{name}}}" for name in values), values) == " ".join("1" * len(values))
    told_of_moved_copies = {"Original", "SubscriberName", "ContextName"}
    for name in names["message_properties"]:
        known = name.rstrip("*").removeprefix("_JMSJCA_")
        if not any(known.startswith(each) for each in told_of_moved_copies):
            assert vendor_property(f"_JMSJCA_{known}"), name
            assert vendor_property(f"{names['old_prefix_of_message_properties'].split()[0]}{known}"), name
    for name in names["batch_properties"]:
        assert vendor_property(name.split()[0]), name


@pytest.mark.parametrize(
    ("folder", "outcome"),
    [({"JMSJCA_CONFORMANCE": "none/here"}, "1 error"), ({}, "1 skipped")],
    ids=["named", "not named"],
)
def test_cases_of_a_missing_folder_fail(folder, outcome):
    environment = {name: value for name, value in os.environ.items() if name != "JMSJCA_CONFORMANCE"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::test_password"]
    done = subprocess.run(command, env=environment | folder, capture_output=True, text=True, timeout=120, check=False)
    assert outcome in done.stdout
    assert outcome == "1 skipped" or "no folder 'none/here'" in done.stdout
