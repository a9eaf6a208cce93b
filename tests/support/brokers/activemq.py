"""Apache ActiveMQ Classic."""

from brokers.broker import Broker
from brokers.cache import provide
from brokers.download import download_all
from brokers.java import java


class ActiveMQ(Broker):
    """Runs from the jars it needs: no archive of a release later than 5.18.3 was to be had from Maven Central."""

    name, release = "activemq", "6.3.1"
    usual_ports = {"openwire": 61616, "amqp": 5673, "stomp": 61614}  # noqa: RUF012

    def install(self):
        return provide(f"{self.name}-{self.release}-xstream", lambda draft: download_all(self.name, draft))

    def command(self, home):
        conf = self.folder / "conf"
        properties = {
            "activemq.home": self.folder,
            "activemq.base": self.folder,
            "java.util.logging.config.file": conf / "logging.properties",
        }
        start = ("start", f"xbean:file:{conf / 'activemq.xml'}")
        return java(f"{home}/*", properties, "org.apache.activemq.console.Main", *start), None
