"""How connections of Java's clients are made: what their URLs may name, and what is refused before Java runs."""

import pytest

from jmsjca import ConnectionFactory, Queue
from jmsjca.config import ConnectionURL
from jmsjca.errors import InvalidDestinationError, InvalidOptionError, InvalidURLError, JMSSecurityError
from jmsjca.providers.java.clients import IBM_MQ, OTHER, recipe_of

FILES = "java.naming.factory.initial=com.sun.jndi.fscontext.RefFSContextFactory"
FOLDER = f"{FILES}&java.naming.provider.url=file:///etc/mq"


def recipe(text):
    return recipe_of(ConnectionURL.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        f"jndi://jms/CF?{FOLDER}",
        f"jndi:///jms%2FCF?{FOLDER}",
        f"jndi://?{FOLDER}&JMSJCA.UnifiedCF=jms/CF",
        f"jndi://?{FOLDER}&jmsjca.queuecf=jms/CF",
    ],
)
def test_factory_of_jndi_is_named_by_the_url_or_by_jmsjcas_option(text):
    found = recipe_of(ConnectionURL.parse(text).for_provider())
    assert found.lookup == "jms/CF"
    assert dict(found.settings) == {
        "java.naming.factory.initial": "com.sun.jndi.fscontext.RefFSContextFactory",
        "java.naming.provider.url": "file:///etc/mq",
    }


def test_destinations_of_jndi_are_those_that_the_url_names():
    found = recipe(f"jndi://CF?{FOLDER}&queue.a=b&lookup.queue.orders=jms/q&lookup.topic.a.b=t&class_path=x.jar")
    assert found.destinations == {"1orders": "jms/q", "2a.b": "t"}
    assert found.settings["queue.a"] == "b"  # a property of the context, as several have it
    assert "class_path" not in found.settings


@pytest.mark.parametrize(
    "address", ["ldap://a", "LDAPS://a", " rmi://a", "tcp://a,ldap://b", "iiop://a", "corbaname:x"]
)
def test_look_ups_that_may_load_code_are_refused(address):
    places = [
        f"jndi://CF?{FILES}&java.naming.provider.url={address}",
        f"jndi://CF?{FOLDER}&lookup.queue.orders={address.replace('tcp://a,', '')}",
        f"jndi://CF?{FOLDER}&any.property={address}",
        f"jndi:///{address.replace('tcp://a,', '').replace('/', '%2F')}?{FOLDER}",
    ]
    for place in places:
        with pytest.raises(InvalidOptionError, match="allow_remote_lookups=true"):
            recipe(place)
        assert recipe(f"{place}&allow_remote_lookups=true").lookup


@pytest.mark.parametrize(
    "text",
    [
        "jndi://CF?java.naming.factory.initial=com.example.Evil",
        f"jndi://CF?{FOLDER}&java.naming.factory.object=com.example.Evil",
        f"jndi://CF?{FOLDER}&java.naming.factory.url.pkgs=a:com.example.Evil&allow_classes=a",
        "java://com.example.Evil",
        "wmq://host?securityExit=com.example.Evil",
    ],
)
def test_a_class_that_is_not_known_is_refused_unless_it_is_allowed(text):
    with pytest.raises(InvalidOptionError, match=r"'com\.example\.Evil', .* allow_classes=com\.example\.Evil"):
        recipe(text)
    mark = "&" if "?" in text else "?"
    assert recipe(f"{text.replace('&allow_classes=a', '')}{mark}allow_classes=a,com.example.Evil")


@pytest.mark.parametrize(
    "text",
    [
        f"jndi://?{FOLDER}",
        f"jndi://?{FOLDER}&JMSJCA.QueueCF=a&JMSJCA.TopicCF=b",
        f"jndi://a,b?{FOLDER}",
        "java://",
        "java://com.sun.messaging.ConnectionFactory/x",
        "wmq://",
        "java+core://",
    ],
)
def test_a_url_without_exactly_one_place_is_refused(text):
    with pytest.raises(InvalidURLError):
        recipe(text)


def test_jndi_needs_to_know_where_it_begins():
    with pytest.raises(InvalidOptionError, match=r"java\.naming\.factory\.initial"):
        recipe("jndi://CF")


@pytest.mark.parametrize("name", ["user", "userName", "password"])
def test_login_is_not_a_property_of_a_factory(name):
    with pytest.raises(InvalidOptionError, match="give it as credentials") as caught:
        recipe(f"java://com.sun.messaging.ConnectionFactory?{name}=hush-4711")
    assert "hush-4711" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["trustStorePassword", "java.naming.security.credentials", "tokenClientSecret", "passphrase"]
)
def test_secrets_among_properties_are_kept_from_logs(name):
    scheme = {"j": f"jndi://CF?{FOLDER}&", "t": "java://com.sun.messaging.ConnectionFactory?", "p": "wmq://h?"}
    text = f"{scheme.get(name[0], scheme['t'])}{name if name != 'passphrase' else 'tokenClientSecret'}=hush-4711"
    assert recipe(text).secrets == ["hush-4711"]
    assert "hush-4711" not in str(ConnectionURL.parse(text)) + repr(ConnectionFactory(text))


class TestIBMMQ:
    def test_defaults_are_those_of_jmsjca(self):
        found = recipe("wmq://mq1")
        assert found.settings == {"hostName": "mq1", "port": "1414", "queueManager": "QM_mq1", "transportType": "1"}
        assert found.clients[0].beans == {"clientReconnectOptions": "33554432"}  # off

    @pytest.mark.parametrize(
        "options",
        [
            "QueueManager=QM1&Channel=APP&CCSID=1208",
            "WMQ_QUEUE_MANAGER=QM1&WMQ_CHANNEL=APP&WMQ_CCSID=1208",
            "WMQ_QueueManager=QM1&wmq_channel=APP&ccsid=1208",
        ],
    )
    def test_options_have_several_spellings(self, options):
        found = recipe(f"wmq://mq1:1515?{options}").settings
        assert (found["queueManager"], found["channel"], found["CCSID"]) == ("QM1", "APP", "1208")

    @pytest.mark.parametrize(
        ("option", "bean"),
        [
            ("WMQ_APPLICATIONNAME", "appName"),
            ("WMQ_CONNECTION_MODE", "transportType"),
            ("WMQ_CONNECTION_NAME_LIST", "connectionNameList"),
            ("WMQ_SSL_CIPHER_SUITE", "SSLCipherSuite"),
            ("WMQ_SSL_KEY_RESETCOUNT", "SSLResetCount"),
            ("WMQ_TEMP_Q_PREFIX", "tempQPrefix"),
        ],
    )
    def test_constants_of_ibm_are_properties_of_the_factory(self, option, bean):
        assert recipe(f"wmq://mq1?{option}=x").settings[bean] == "x"

    @pytest.mark.parametrize("option", ["ClientReconnectOptions", "HostName", "Chanel", "jms.prefetch"])
    def test_other_options_are_refused(self, option):
        with pytest.raises(InvalidOptionError, match=f"no option '{option}'"):
            recipe(f"wmq://mq1?{option}=1")

    @pytest.mark.parametrize(
        "text", ["wmq://?CCDTURL=file:///c.json&QueueManager=", "wmq://?connectionNameList=a(1414)"]
    )
    def test_a_table_or_a_list_needs_no_host(self, text):
        assert "hostName" not in recipe(text).settings

    def test_password_needs_tls_or_leave(self):
        factory = ConnectionFactory("wmq://app:hush-4711@mq1?class_path=x")
        with pytest.raises(JMSSecurityError, match="allow_insecure_login=true"):
            factory.create_connection()
        assert recipe("wmq://mq1?WMQ_SSL_CIPHER_SUITE=TLS_AES_256_GCM_SHA384").encrypted

    @pytest.mark.parametrize(
        "name", ["ORDERS", "queue:///ORDERS?targetClient=1&mdReadEnabled=true", "queue://QM2/REPLY"]
    )
    def test_queue_uris_are_names(self, name):
        IBM_MQ.check_name(Queue(name))

    @pytest.mark.parametrize("options", ["targetclient=1", "mdRead=true", "targetClient=1&bogus=2", ""])
    def test_options_of_a_queue_uri_that_the_client_would_ignore_are_refused(self, options):
        with pytest.raises(InvalidDestinationError, match="would ignore the option"):
            IBM_MQ.check_name(Queue(f"queue:///ORDERS?{options}"))


@pytest.mark.parametrize("name", ["a*", "a.>", "a?consumer.prefetch=1", "a::b"])
def test_names_that_some_client_interprets_are_refused_for_unknown_ones(name):
    with pytest.raises(InvalidDestinationError, match="would interpret"):
        OTHER.check_name(Queue(name))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("java+core://h:1?", "tcp://h:1?"),
        ("java+tcp://h:1?", "ssl://h:1?"),
        ("java+amqp://h:1?", "amqps://h:1?"),
    ],
)
def test_tls_is_in_the_url_of_the_client_or_in_its_factory(text, address):
    found = recipe(f"{text}tls=true&ca_file=/a%20b.pem&certificate_file=c.pem")
    assert found.encrypted
    assert found.url.startswith(address)
    if "core" in text:  # which reads the files itself
        assert "&sslEnabled=true&verifyHost=true" in found.url
        assert "&trustStoreType=PEMCA&trustStorePath=/a%20b.pem&keyStoreType=PEM&keyStorePath=c.pem" in found.url
        assert found.tls_files == (None, None, None)
    else:
        assert found.tls_files == ("/a b.pem", "c.pem", None)


@pytest.mark.parametrize(
    "text",
    [
        "java+core://h?ca_file=a.pem",
        "java+core://h?tls=true&certificate_file=a.pem&key_file=b.pem",
        "java+tcp://h?heartbeat=5",
        "java+amqp://h?management_url=http://h",
        "wmq://h?ca_file=a.pem",
        "wmq://h?tls=true&SSLCipherSuite=X",
        "java://com.sun.messaging.ConnectionFactory?tls=true",
        f"jndi://CF?{FOLDER}&ca_file=a.pem",
    ],
)
def test_options_without_an_effect_are_refused(text):
    with pytest.raises(InvalidOptionError):
        recipe(text)
