"""Awkward passwords, given in each way, appear in no text form and in no exception with its chain."""

import copy
import pickle
from xml.sax.saxutils import escape

import pytest

from jmsjca import ActivationSpec, ConnectionFactory, ResourceAdapter
from jmsjca.config.configuration_file import AdapterSection, Configuration, FactorySection, read_configuration
from jmsjca.config.connection_url import ConnectionURL, decode_password, resolve_source
from jmsjca.descriptors import read, to_toml
from jmsjca.descriptors.xml_file import Descriptor
from jmsjca.errors import ConfigurationError, JMSError
from jmsjca.reconnection import ConnectionSettings
from tests.unit.awkward_passwords import SECRETS, assert_unseen, every_secret, shown


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


@pytest.mark.parametrize(
    "text",
    [
        "[adapters]\na = 'amqp://u:hush@h'",
        "[adapters.a]\nconnection_url = ['hush']",
        "[adapters.a]\nuser_name = ['joe', 'hush']",
        "[factories.f]\nuser_name = ['joe', 'hush']",
        "[adapters.a]\npasswort = 'hush'",
    ],
)
def test_invalid_section_is_not_shown(tmp_path, text):
    (tmp_path / "jmsjca.toml").write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(tmp_path / "jmsjca.toml")
    assert_unseen("hush", *shown(raised.value))


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # our own


@every_secret
def test_text_forms_hide_the_password(secret):
    adapter = AdapterSection(connection_url="embedded://a", user_name="joe", password=secret)
    factory = FactorySection(user_name="joe", password=secret)
    spec = ActivationSpec(destination="q", user_name="joe", password=secret)
    whole = Configuration(adapters={"a": adapter}, factories={"f": factory})
    settings = ConnectionSettings("embedded://a", "joe", secret)
    alone = ConnectionFactory("embedded://a", user_name="joe", password=secret)
    pair = ConnectionFactory("embedded://a", credentials=("joe", secret))
    public = (adapter, factory, spec, whole, settings, alone, alone.login, pair, pair.login)
    texts = [repr(each) for each in public]
    texts += [repr(copied(each)) for each in public for copied in (copy.copy, copy.deepcopy, pickled)]
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
        Descriptor(tmp_path / "ra.xml")
    assert_unseen("hush", *shown(raised.value))


LOGINS = [("joe", "hush"), ["amqp://joe:hush@h"], {"joe": "hush"}]
FACTORY = ConnectionFactory("embedded://secrets")
TAKING = [  # what takes a login, a URL or options
    lambda given: ActivationSpec(destination="q", user_name=given),
    lambda given: ActivationSpec(destination="q", connection_url=given),
    lambda given: ConnectionFactory("embedded://a", user_name=given),
    lambda given: ConnectionFactory("embedded://a", user_name="joe", password=given),
    lambda given: ConnectionFactory("embedded://a", credentials=("joe", given)).create_connection(),
    lambda given: ConnectionFactory("embedded://a", credentials=lambda: (given, "x")).create_connection(),
    lambda given: ConnectionFactory("embedded://a", credentials=[given]),
    lambda given: ConnectionFactory("embedded://a", options=[given]),
    lambda given: ConnectionFactory("embedded://a", options={"a": given}),
    ConnectionFactory,
    lambda given: ResourceAdapter("embedded://a", user_name=given),
    ResourceAdapter,
    FACTORY.create_connection,
]


@pytest.mark.parametrize("given", LOGINS, ids=["pair", "list", "dict"])
@pytest.mark.parametrize("taking", TAKING, ids=range(len(TAKING)))
def test_value_of_a_wrong_type_is_not_shown(taking, given):
    with pytest.raises(JMSError) as raised:
        taking(given)
    assert_unseen("hush", *shown(raised.value))


NEXT_OPTION = "password=hush-4711"


def listener_of(**options):
    ResourceAdapter("embedded://a", options=options).listener("q")(print)


@pytest.mark.parametrize(
    "reading",
    [
        lambda: ConnectionFactory("embedded://a", options=f"JMSJCA.NoXA=true,{NEXT_OPTION}"),
        lambda: ConnectionFactory("embedded://a", options={"JMSJCA.idletimeout": f"5,{NEXT_OPTION}"}),
        lambda: ConnectionFactory(f"embedded://a?JMSJCA.poolmaxsize=5;{NEXT_OPTION}"),
        lambda: listener_of(**{"JMSJCA.concurrencymode": f"cc {NEXT_OPTION}"}),
        lambda: listener_of(**{"JMSJCA.redeliveryhandling": f"3:delete,{NEXT_OPTION}"}),
        lambda: listener_of(**{"JMSJCA.receivetimeout": f"3&{NEXT_OPTION}"}),
        lambda: ActivationSpec(destination="q", options="password=\\uhush-4711"),
        lambda: ConnectionURL.parse(f"amqp://one?{NEXT_OPTION},amqp://two"),
        lambda: ConnectionURL.parse(f"amqp://one?{NEXT_OPTION}&hush-4711"),
    ],
    ids=range(9),
)
def test_options_that_are_not_separated_are_refused_without_the_next_one(reading):
    with pytest.raises(JMSError) as raised:
        reading()
    assert_unseen("hush", *shown(raised.value))


@pytest.mark.parametrize(
    "entries",
    [
        'user_name = ["joe", "hush-4711"]',
        'user_name = "amqp://joe:hush-4711@h"',
        'connection_url = "amqp//joe:hush-4711@h"',
        'connection_url = "amqp://joe:hush-4711@h:x"',
        'connection_url = "amqp://h?password=hush-4711&JMSJCA.none=1"',
        'user_name = "joe"\npassword = ["hush-4711"]',
        'user_name = "joe"\npasswort = "hush-4711"',
        'options = ["hush-4711"]',
        'options = {a = ["hush-4711"]}',
        'options = "JMSJCA.none=1,password=hush-4711"',
        'destination_type = "hush"\nconnection_url = "amqp://joe:hush-4711@h"',
    ],
)
def test_refused_listener_section_is_not_shown(tmp_path, entries):
    (tmp_path / "jmsjca.toml").write_text(f'[listeners.a]\ndestination = "q"\n{entries}')
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(tmp_path / "jmsjca.toml")
    assert_unseen("hush-4711", *shown(raised.value))


def test_text_in_the_place_of_a_listener_section_is_refused_and_not_shown(tmp_path):
    (tmp_path / "jmsjca.toml").write_text("[listeners]\na = 'amqp://joe:hush-4711@h'")
    with pytest.raises(ConfigurationError, match=r"listeners\.a: ") as raised:
        read_configuration(tmp_path / "jmsjca.toml")
    assert_unseen("hush", *shown(raised.value))


def test_listener_section_hides_its_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSH", "hush-4711")
    (tmp_path / "jmsjca.toml").write_text(
        '[listeners.a]\ndestination = "q"\nuser_name = "joe"\npassword = "${env:HUSH}"\n'
        'connection_url = "amqp://joe:${env:HUSH}@h/?a=hush-4711"\noptions = {b = "${env:HUSH}"}'
    )
    whole = read_configuration(tmp_path / "jmsjca.toml")
    section = whole.listeners["a"]
    assert section.password.get_secret_value() == section.options["b"] == "hush-4711"
    assert_unseen("hush", *map(repr, (whole, section, section.spec)), section.spec.dump(), str(section), to_toml(whole))


def config_properties(element, values):
    return "".join(
        f"<{element}><{element}-name>{name}</{element}-name><{element}-value>{escape(value)}</{element}-value></{element}>"
        for name, value in values.items()
    )


def descriptors(folder, adapter, bean):
    ra = f"<connector><resourceadapter>{config_properties('config-property', adapter)}<outbound-resourceadapter>"
    ra += f"<connection-definition>{config_properties('config-property', adapter)}<connectionfactory-interface>"
    ra += "javax.jms.ConnectionFactory</connectionfactory-interface></connection-definition>"
    ra += "</outbound-resourceadapter></resourceadapter></connector>"
    given = {"destination": "q", "destinationType": "javax.jms.Queue", **bean}
    ejb = "<ejb-jar><enterprise-beans><message-driven><ejb-name>b</ejb-name><activation-config>"
    ejb += f"{config_properties('activation-config-property', given)}</activation-config></message-driven>"
    ejb += "</enterprise-beans></ejb-jar>"
    sun = "<sun-connector><resource-adapter secret='hush-4711'><property name='p' value='hush-4711'/>"
    sun += f"{config_properties('property', {'Password': 'hush-4711'})}</resource-adapter></sun-connector>"
    for name, text in {"ra.xml": ra, "ejb-jar.xml": ejb, "sun-ra.xml": sun}.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in ("ra.xml", "ejb-jar.xml", "sun-ra.xml")]


XML_SECRETS = [secret for secret in SECRETS if "\x01" not in secret]
LOGIN = {"ConnectionURL": "wmqs://joe:hush-4711@h/?a=hush-4711", "UserName": "joe"}


@pytest.mark.parametrize("secret", XML_SECRETS, ids=range(len(XML_SECRETS)))
def test_deployment_and_its_report_hide_the_secrets_of_descriptors(tmp_path, secret):
    given = {**LOGIN, "Password": secret, "Options": "a=hush-4711", "Passwort": secret, "Token": "hush-4711"}
    found = read(*descriptors(tmp_path, given, given))
    assert found.specs["b"].password.get_secret_value() == found.adapters["default"].password.get_secret_value()
    assert {"Passwort", "Token", "secret", "Password", "ConnectionURL"} <= {entry.name for entry in found.report}
    parts = (*found.specs.values(), *found.adapters.values(), *found.factories.values())
    texts = [*map(str, found.report), *map(repr, found.report), repr(found.report), *map(repr, parts), repr(found)]
    for each in (secret, "hush-4711"):
        assert_unseen(each, *texts, to_toml(found.configuration))


@pytest.mark.parametrize(
    "wrong",
    [
        {"ConnectionURL": "amqp://joe:hush-4711@h:x"},
        {"ConnectionURL": "joe:hush-4711@h"},
        {"Options": "JMSJCA.none=1\npassword=hush-4711"},
        {"Options": "JMSJCA.sep="},
    ],
)
@pytest.mark.parametrize("place", ["adapter", "bean"])
def test_refused_value_of_a_descriptor_is_not_in_the_chain(tmp_path, wrong, place):
    given = {"ConnectionURL": "amqp://joe:hush-4711@h", "UserName": "joe", "Password": "hush-4711"}
    places = {"adapter": given, "bean": given}
    with pytest.raises(ConfigurationError) as raised:
        read(*descriptors(tmp_path, **{**places, place: {**given, **wrong}}))
    assert_unseen("hush", *shown(raised.value))
