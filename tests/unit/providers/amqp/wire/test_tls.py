"""TLS: trusted authorities and hosts, and large messages."""

import random
import ssl
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256

import pytest
from amqp_peer import SECONDS, Broker
from amqp_peer.encoding import Symbol
from amqp_peer.frames import AMQP
from amqp_peer.performatives import Init, Open, Transfer
from amqp_peer.script import OPEN, expect, offer, reply, script, send
from certificate_authority import Authority

from jmsjca.destinations import Queue
from jmsjca.errors import ConnectionLostError, JMSSecurityError
from jmsjca.messages import BytesMessage
from jmsjca.reconnection import is_transient

USER = {"user_name": "joe", "password": "hush"}


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("trusted"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"))


def encrypted(stage, context, *steps, client_authority=None):
    """Set up a peer with this certificate, which may ask for its client's."""
    if client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_authority.file)
    return stage(script(*steps or OPEN), scheme="amqps", wrap=partial(context.wrap_socket, server_side=True))


def login(mechanism, *offered):
    init = expect(Init(mechanism=Symbol(mechanism)))
    return offer(*offered), init, reply(), expect(AMQP), send(AMQP), expect(Open), reply()


TRUSTED = [("DNS:localhost", "localhost"), ("IP:127.0.0.1", "127.0.0.1"), ("DNS:a.example,DNS:localhost", "localhost")]


@pytest.mark.parametrize(("names", "host"), TRUSTED)
def test_the_right_host_is_connected(stage, trusted, names, host):
    encrypted(stage, trusted.server(names)).connect(f"ca_file={trusted.file}", host=host)


def old(context):
    """A server that knows no TLS that is still safe."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
    return context


REFUSED = {
    "expired": (lambda a, _: a.server("DNS:localhost", begins=2020), "expired"),
    "not valid yet": (lambda a, _: a.server("DNS:localhost", begins=2199), "not yet valid"),
    "of itself": (lambda a, _: a.server("DNS:localhost", signed=False), "self-signed"),
    "of another authority": (lambda _, other: other.server("DNS:localhost"), "unable to get local issuer"),
    "for another host": (lambda a, _: a.server("DNS:localhost.example"), "Hostname mismatch"),
    "for an address": (lambda a, _: a.server("IP:127.0.0.1"), "Hostname mismatch"),
    "for everything": (lambda a, _: a.server("DNS:*"), "Hostname mismatch"),
    "with the host in its subject only": (lambda a, _: a.server("", name="localhost"), "Hostname mismatch"),
    "of a client": (lambda a, _: a.server("DNS:localhost", usage="clientAuth"), "purpose"),
}


@pytest.mark.parametrize("certificate", REFUSED)
def test_a_certificate_that_is_not_to_be_trusted(stage, trusted, other, certificate):
    make, reason = REFUSED[certificate]
    here = encrypted(stage, make(trusted, other))
    with pytest.raises(JMSSecurityError, match=f"not to be trusted: .*{reason}") as told:
        here.connect(f"ca_file={trusted.file}", host="localhost", **USER)
    assert not is_transient(told.value)
    here.close()
    assert not any(line.log for line in here.peer.lines)


def test_a_server_of_old_protocols_only(stage, trusted):
    here = encrypted(stage, old(trusted.server("DNS:localhost")))
    with pytest.raises(ConnectionLostError):
        here.connect(f"ca_file={trusted.file}", host="localhost", **USER)
    here.close()
    assert not any(line.log for line in here.peer.lines)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_authority_that_the_system_trusts_does_not_count_beside_a_given_one(
    stage, trusted, other, variable, monkeypatch
):
    """CVE-2026-105031: proton 0.40 adds the system's authorities to the given one."""
    monkeypatch.setenv(variable, str(other.file if variable.endswith("FILE") else other.hashed()))
    here = encrypted(stage, other.server("DNS:localhost"))
    with pytest.raises(JMSSecurityError, match="not to be trusted"):
        here.connect(f"ca_file={trusted.file}", host="localhost")
    encrypted(stage, other.server("DNS:localhost")).connect(host="localhost")  # the system does trust it
    encrypted(stage, trusted.server("DNS:localhost")).connect(f"ca_file={trusted.file}", host="localhost")


def test_a_password_travels_inside_tls_without_being_allowed_to(stage, trusted):
    steps = login("PLAIN", "ANONYMOUS", "EXTERNAL", "PLAIN")
    encrypted(stage, trusted.server("DNS:localhost"), steps).connect(
        f"ca_file={trusted.file}", host="localhost", **USER
    )


def own(authority, name="client"):
    certificate, key = authority.certify(name, "extendedKeyUsage=clientAuth\n")
    return f"certificate_file={certificate}&key_file={key}"


def test_a_client_certificate_is_the_login(stage, trusted):
    steps = login("EXTERNAL", "PLAIN", "ANONYMOUS", "EXTERNAL")
    here = encrypted(stage, trusted.server("DNS:localhost"), steps, client_authority=trusted)
    here.connect(f"ca_file={trusted.file}&{own(trusted)}", host="localhost")


def test_a_client_certificate_and_a_password(stage, trusted):
    """Both were given: the certificate for TLS, the password for the login."""
    steps = login("PLAIN", "EXTERNAL", "PLAIN")
    here = encrypted(stage, trusted.server("DNS:localhost"), steps, client_authority=trusted)
    here.connect(f"ca_file={trusted.file}&{own(trusted)}", host="localhost", **USER)


@pytest.mark.parametrize("offered", [("ANONYMOUS",), ("PLAIN",), ()])
def test_a_client_certificate_is_traded_for_no_other_login(stage, trusted, offered):
    here = encrypted(
        stage, trusted.server("DNS:localhost"), offer(*offered), expect("no login"), client_authority=trusted
    )
    with pytest.raises(JMSSecurityError):
        here.connect(f"ca_file={trusted.file}&{own(trusted)}", host="localhost")


@pytest.mark.parametrize("given", ["", "of another authority"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_that_is_missing_or_wrong(stage, trusted, other, given, version):
    """The broker says so by an alert; trying again cannot help."""
    context = trusted.server("DNS:localhost")
    context.maximum_version = version
    here = encrypted(stage, context, client_authority=trusted)
    certificate = f"&{own(other)}" if given else ""
    with pytest.raises(JMSSecurityError, match="certificate") as told:
        here.connect(f"ca_file={trusted.file}{certificate}", host="localhost", **USER)
    assert not is_transient(told.value)


RECORD = 16 * 1024  # the most of what a record of TLS holds
FRAME = 256 * 1024
MIB = 1024 * 1024
SIZES = [0, 1, RECORD - 1, RECORD, RECORD + 1, FRAME - 1, FRAME, FRAME + 1, MIB, 5 * MIB]
MUCH = [5 * MIB] * 4  # more than the sockets of both sides hold
QUEUE = Queue("q")
CHANCE = random.Random(0)


@pytest.fixture
def connect(stage, trusted):
    """Connect to a broker over TLS."""

    def connect(broker):
        context = trusted.server("DNS:localhost")
        here = stage(broker, scheme="amqps", wrap=partial(context.wrap_socket, server_side=True))
        return here.connect(f"ca_file={trusted.file}", host="localhost")

    return connect


def bodies(sizes):
    """Bytes of which no part is like another."""
    return [CHANCE.randbytes(size) for size in sizes]


def digests(found):
    """What tells bodies apart, and is short enough to be shown."""
    return [(len(body), sha256(body).hexdigest()) for body in found]


def send_large(connection, sent):
    unit = connection.unit()
    for body in sent:
        unit.send(BytesMessage(body), QUEUE)
    unit.commit()


def receive(consumer, count):
    return [consumer.receive(1, SECONDS)[0].message.body for _ in range(count)]


def test_messages_of_all_sizes_come_whole(connect):
    connection, sent = connect(Broker()), bodies(SIZES)
    send_large(connection, sent)
    assert digests(receive(connection.consumer(QUEUE), len(sent))) == digests(sent)


def test_messages_that_cross_come_whole(connect):
    """While much is written, as much comes."""
    connection, first, second = connect(Broker()), bodies(MUCH), bodies(reversed(SIZES))
    send_large(connection, first)
    consumer = connection.consumer(QUEUE)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(send_large, connection, second)
        assert digests(receive(consumer, len(MUCH))) == digests(first)
        ended.result(SECONDS)
    assert digests(receive(consumer, len(SIZES))) == digests(second)


def test_a_broker_that_reads_late_gets_all_of_it(connect, monkeypatch):
    """It reads on only when the client had to wait for room to write."""
    full, write = threading.Event(), ssl.SSLSocket.send

    def note(sock, *what):
        try:
            return write(sock, *what)
        except ssl.SSLWantWriteError:
            full.set()
            raise

    def take(service, frame):
        assert full.wait(SECONDS)
        service.carry_out(frame)

    monkeypatch.setattr(ssl.SSLSocket, "send", note)
    broker, sent = Broker(), bodies(MUCH)
    broker.instead[Transfer] = take
    connection = connect(broker)
    send_large(connection, sent)
    assert digests(receive(connection.consumer(QUEUE), len(MUCH))) == digests(sent)
