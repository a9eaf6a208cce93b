"""Messages that no provider can decode, put into a queue behind its back."""

import socket
from urllib.parse import urlsplit

from jmsjca import TextMessage
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.testing.contract.harness import prepare

TYPE = b"x-opt-jms-msg-type"


def poison_embedded(url, queue):
    """Break the row of a message."""
    connection = connect(ConnectionSettings(url))
    unit = connection.unit()
    unit.send(prepare(TextMessage("poison"), queue), queue)
    unit.commit()
    with connection._store.write() as cursor:
        cursor.execute("UPDATE message SET headers = '{' WHERE body = CAST('poison' AS BLOB) OR body = 'poison'")
        assert cursor.rowcount == 1
    connection.close()


def poison_amqp(url, address, *, capability=None, depth=3_000):
    """Send a body of lists in lists, by default deeper than any decoder of Python goes, of a type that JMS has not."""
    from proton import Terminus, symbol
    from proton.reactor import LinkOption
    from proton.utils import BlockingConnection

    class Durably(LinkOption):
        def apply(self, link):
            link.target.durability = Terminus.CONFIGURATION
            if capability:
                link.target.capabilities.put_object(symbol(capability))

    connection = BlockingConnection(url, timeout=10, allowed_mechs="ANONYMOUS")
    sender = connection.create_sender(address, options=Durably())
    delivery = sender.link.delivery("poison")
    sender.link.stream(_nested(depth))
    sender.link.advance()
    connection.wait(lambda: delivery.settled or delivery.remote_state, msg="sending poison")
    connection.close()


def poison_stomp(url, headers):
    """Send a message whose header for jmsjca is no JSON."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as stomp:
        login = f"login:{parts.username}\npasscode:{parts.password}\n" if parts.username else ""
        stomp.sendall(f"CONNECT\naccept-version:1.2\nhost:/\n{login}\n\0".encode())
        stomp.recv(4096)
        lines = "".join(f"{name}:{value}\n" for name, value in {**headers, "receipt": "1"}.items())
        stomp.sendall(f"SEND\n{lines}persistent:true\n_jmsjca:{{\n\npoison\0".encode())
        assert b"RECEIPT" in stomp.recv(4096)
        stomp.sendall(b"DISCONNECT\n\n\0")


def _nested(depth):
    """A durable message of one AMQP value, annotated as one of type 99."""
    value = b"\x45"  # the empty list
    for _ in range(depth):
        value = b"\xd0" + (len(value) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + value
    entry = b"\x02\xa3" + bytes([len(TYPE)]) + TYPE + b"\x51\x63"
    annotations = b"\x00\x53\x72\xc1" + bytes([len(entry)]) + entry
    return b"\x00\x53\x70\xc0\x02\x01\x41" + annotations + b"\x00\x53\x77" + value
