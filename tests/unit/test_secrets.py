"""Awkward passwords, given in each way, appear in no text form and in no exception with its chain."""

import pytest

from jmsjca import ActivationSpec, ConnectionFactory
from jmsjca.config.configuration_file import AdapterSection, Configuration, FactorySection, read_configuration
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.credentials import decode_password, resolve_source
from jmsjca.descriptors import to_toml
from jmsjca.descriptors.xml_file import parse
from jmsjca.errors import ConfigurationError, JMSError
from jmsjca.reconnection import ConnectionSettings

SECRETS = [
    *("hu@sh-4711", "hu:sh-4711", "hu/sh-4711", "hu?sh-4711", "hu%sh-4711", "hu#sh-4711", "hu sh-4711"),
    *("hu'sh-4711", 'hu"sh-4711', "hüsh-4711", "\U0001f600sh-4711", "hu\x01sh-4711", "hu\nsh-4711", "hu\tsh-4711"),
    *("${env:HUSH_4711}", "__:ENC:08:hush-4711", "amqp://joe:hush@h-4711/", "{hush}-4711", "%s-hush-4711"),
    "hush" * 5000,
]
every_secret = pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))


def shown(error):
    while error is not None:
        yield from (str(error), repr(error), *getattr(error, "__notes__", ()))
        error = error.__cause__ or error.__context__


def assert_unseen(secret, *texts):
    forms = {secret, repr(secret)[1:-1], str(secret.encode())[2:-1]}
    assert not [text for text in texts for form in forms if form in text]


@every_secret
def test_failure_of_a_credentials_function_hides_what_it_raised(secret):
    def source():
        raise ValueError(secret)

    with pytest.raises(JMSError, match="raised ValueError") as raised:
        resolve_source(source)
    assert_unseen(secret, *shown(raised.value))


def test_encoded_password_that_is_no_utf_8_is_not_in_the_chain():
    with pytest.raises(ConfigurationError) as raised:
        decode_password("__:ENC:08:/2h1c2g=")
    assert_unseen("hush", *shown(raised.value))


@pytest.mark.parametrize("reader", [lambda path: resolve_source(f"file:{path}"), read_configuration])
def test_file_that_is_no_utf_8_is_not_in_the_chain(tmp_path, reader):
    (tmp_path / "file").write_bytes(b"user:hush-\xff")
    with pytest.raises(JMSError) as raised:
        reader(tmp_path / "file")
    assert_unseen("hush", *shown(raised.value))


@pytest.mark.parametrize("text", ["[adapters]\na = 'amqp://u:hush@h'", "[adapters.a]\nconnection_url = ['hush']"])
def test_invalid_section_is_not_shown(tmp_path, text):
    (tmp_path / "jmsjca.toml").write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(tmp_path / "jmsjca.toml")
    assert_unseen("hush", *shown(raised.value))


@every_secret
def test_text_forms_hide_the_password(secret):
    adapter = AdapterSection(connection_url="embedded://a", user_name="joe", password=secret)
    factory = FactorySection(user_name="joe", password=secret)
    spec = ActivationSpec(destination="q", user_name="joe", password=secret)
    whole = Configuration(adapters={"a": adapter}, factories={"f": factory})
    settings = ConnectionSettings("embedded://a", "joe", secret)
    alone = ConnectionFactory("embedded://a", user_name="joe", password=secret)
    pair = ConnectionFactory("embedded://a", credentials=("joe", secret))
    texts = [repr(each) for each in (adapter, factory, spec, whole, settings, alone, alone.login, pair, pair.login)]
    assert_unseen(secret, *texts, str(spec), spec.dump(), to_toml(whole))


def test_url_as_user_name_hides_its_password():
    url = "amqp://h?username=joe&password=hush-4711"
    adapter = AdapterSection(connection_url="embedded://a", user_name=url)
    factory = FactorySection(user_name=url)
    whole = Configuration(adapters={"a": adapter}, factories={"f": factory})
    texts = [repr(each) for each in (adapter, factory, whole, ConnectionSettings("embedded://a", url))]
    assert_unseen("hush-4711", *texts, to_toml(whole))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("amqp://joe:4711/hush@h:5672/v?a=b", "amqp://…@h:5672/v?…"),
        ("amqp://joe:4711/hu@sh@h", "amqp://…@h"),
        ("amqp://joe:/hush-4711@h", "amqp://…@h"),
        ("amqp://:4711/hush@h", "amqp://…@h"),
        ("amqp://joe:a@b:4711/hush@h", "amqp://…@h"),
        ("amqp://joe:4711/hush?x@h/?a=b", "amqp://…?…"),
        ("amqp://joe:4711?hush@h/?a=b", "amqp://…?…"),
    ],
)
def test_password_with_a_raw_delimiter_behind_digits_is_not_shown(url, text):
    parsed = ConnectionURL.parse(url)
    assert (str(parsed), repr(parsed)) == (text, f"<ConnectionURL {text}>")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("embedded:///var/joe@home/a.db", "embedded:///var/joe@home/a.db"),
        ("amqp://joe:hush@h:5672/v", "amqp://joe@h:5672/v"),
        ("amqp://h:5672/v?username=joe@home", "amqp://h:5672/v?…"),
    ],
)
def test_url_without_a_password_in_its_path_shows_its_hosts_and_path(url, text):
    assert str(ConnectionURL.parse(url)) == text


def test_connection_url_hides_a_password_in_user_information_and_query():
    parsed = ConnectionURL.parse("amqp://joe:hush-1@one:5672,two:5673/v?password=hush-2")
    texts = [form(each) for each in (parsed, *parsed.rotations(0)) for form in (str, repr)]
    assert_unseen("hush", *texts)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("<a><password>joe&hush;</password></a>", "undefined entity: line 1, column 16"),
        ("<!DOCTYPE a SYSTEM 'a.dtd'><a><password>joe&hush;</password></a>", "undefined entity: line 1, column 43"),
        ("<?xml version='1.0' encoding='hush'?><a/>", "its encoding is unknown"),
        ("<a><password>hush</a>", "mismatched tag: line 1, column 19"),
    ],
)
def test_refused_descriptor_is_not_in_the_chain(tmp_path, document, reason):
    (tmp_path / "ra.xml").write_text(document)
    with pytest.raises(ConfigurationError, match=f"ra.xml is refused: {reason}[.]") as raised:
        parse(tmp_path / "ra.xml")
    assert_unseen("hush", *shown(raised.value))
