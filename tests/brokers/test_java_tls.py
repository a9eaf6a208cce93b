"""TLS of Java's clients, by files in PEM, on an Artemis that speaks the protocols of all three."""

from contextlib import closing
from urllib.parse import urlencode

import pytest
from brokers import BROKERS
from brokers.products import client_jars
from certificate_authority import Authority

from jmsjca import ConnectionFactory, Queue, TextMessage
from jmsjca.errors import ConfigurationError, ConnectionLostError, InvalidOptionError, JMSSecurityError

SCHEMES = ["java+core", "java+tcp", "java+amqp"]
PATIENCE = 30


@pytest.fixture(params=SCHEMES)
def url(request, encrypted_artemis):
    """Return a function that makes a URL of the encrypted broker."""
    broker, authority = encrypted_artemis
    jars = f"{BROKERS['artemis']().install()}/lib" if request.param == "java+core" else client_jars()

    def make(port="amqps", **options):
        given = {
            "tls": "true",
            "connect_timeout": "300",
            "ca_file": authority.file,
            "class_path": f"{jars}/*",
        } | options
        return f"{request.param}://127.0.0.1:{broker.ports[port]}?{urlencode(given)}"

    return make


def exchange(url, **login):
    with ConnectionFactory(url, **login).create_connection() as connection:
        session, queue = connection.create_session(transacted=True), Queue("tls")
        with closing(session.create_producer(queue)) as producer, closing(session.create_consumer(queue)) as consumer:
            producer.send(TextMessage("x"))
            session.commit()
            received = consumer.receive(PATIENCE)
            session.commit()
            return received.body


def test_messages_and_password_go_over_tls(url):
    assert exchange(url(), user_name="jmsjca", password="jmsjca") == "x"  # noqa: S106


def test_another_authority_is_not_trusted(url, tmp_path):
    with pytest.raises((JMSSecurityError, ConnectionLostError)):
        exchange(url(ca_file=Authority(tmp_path).file))


def test_another_name_is_not_trusted(url):
    with pytest.raises((JMSSecurityError, ConnectionLostError)):
        exchange(url().replace("127.0.0.1", "localhost"))


def test_a_certificate_opens_the_port_for_certified_clients(url, encrypted_artemis, tmp_path):
    certificate, key = encrypted_artemis[1].certify("limited", "extendedKeyUsage=clientAuth\n")
    both = tmp_path / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    assert exchange(url("amqps-certified", certificate_file=both)) == "x"
    with pytest.raises((JMSSecurityError, ConnectionLostError)):
        exchange(url("amqps-certified"))


def test_a_file_that_cannot_be_used_is_told(url, tmp_path):
    with pytest.raises((ConfigurationError, ConnectionLostError)):
        exchange(url(ca_file=tmp_path / "nowhere.pem"))


def test_options_without_an_effect_are_refused(url):
    with pytest.raises(InvalidOptionError, match=r"ca_file .* needs tls=true"):
        exchange(url(tls="false"))
    with pytest.raises(InvalidOptionError, match=r"heartbeat .* leave it out"):
        exchange(url(heartbeat="5"))
