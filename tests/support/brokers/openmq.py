"""Open MQ, the broker of GlassFish, with its STOMP bridge."""

from brokers.broker import Broker
from brokers.cache import provide
from brokers.download import download_all
from brokers.java import java


class OpenMQ(Broker):
    """Of the releases on Maven Central this one is the newest that runs on Java 17: 6.6.0 and 6.7.0 ask for 21.

    The bridge lets nobody in without a user name and a password, so they stand in its URL.
    """

    name, release = "openmq", "6.5.1"
    usual_ports = {"stomp": 7672, "portmapper": 7676}  # noqa: RUF012

    def install(self):
        return provide(f"{self.name}-{self.release}", lambda draft: download_all(self.name, draft)) / "mq"

    def command(self, home):
        folders = {"imq.home": home, "imq.libhome": home / "lib", "imq.varhome": self.folder / "data"}
        jars = ":".join(str(home / "lib" / name) for name in ("imqbroker.jar", "imqutil.jar"))
        settings = (self.folder / "conf" / "broker.properties").read_text().splitlines()
        told = [f"-D{line}" for line in settings if line and not line.startswith("#")]
        return java(jars, folders, "com.sun.messaging.jmq.jmsserver.Broker", *told), None

    def url(self, protocol):
        kind, address = super().url(protocol).split("://")
        return f"{kind}://jmsjca:jmsjca@{address}?allow_insecure_login=true"
