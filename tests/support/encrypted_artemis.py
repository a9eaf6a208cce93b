"""An Artemis with TLS: one port takes every client, another one certified clients only."""

from brokers.products import Artemis

TLS = "sslEnabled=true;keyStoreType=PEM;keyStorePath={keys};enabledProtocols=TLSv1.2,TLSv1.3"
CLIENTS = "needClientAuth=true;trustStoreType=PEMCA;trustStorePath={authority};saslMechanisms=EXTERNAL"


class EncryptedArtemis(Artemis):
    """A broker of its own, so that no other has to make keys at its start.

    Args:
        authority: Certifies the broker, and its clients.
    """

    usual_ports = {**Artemis.usual_ports, "amqps": 5671, "amqps-certified": 5670}  # noqa: RUF012

    def __init__(self, authority):
        super().__init__()
        self._authority = authority

    def command(self, home):
        self._add_acceptors(self.folder / "conf" / "broker.xml")
        return super().command(home)

    def _add_acceptors(self, configuration):
        tls = TLS.format(keys=self._keys())
        clients = CLIENTS.format(authority=self._authority.file)
        added = self._acceptor("amqps", tls) + self._acceptor("amqps-certified", f"{tls};{clients}")
        configuration.write_text(configuration.read_text().replace("</acceptors>", f"{added}</acceptors>"))

    def _acceptor(self, name, options):
        return f'<acceptor name="{name}">tcp://127.0.0.1:{self.ports[name]}?protocols=AMQP,CORE,OPENWIRE;{options}</acceptor>'

    def _keys(self):
        """Make the broker's key and certificate; gives the file with both."""
        parts = self._authority.certify("broker", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        keys = self.folder / "conf" / "broker.pem"
        keys.write_text("".join(part.read_text() for part in parts))
        return keys
