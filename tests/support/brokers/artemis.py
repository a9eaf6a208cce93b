"""Apache ActiveMQ Artemis."""

from brokers.broker import Broker
from brokers.cache import provide
from brokers.download import download_all
from brokers.java import java


class Artemis(Broker):
    """Runs without the instance that ``artemis create`` writes: four small files replace it."""

    name, release = "artemis", "2.56.0"
    usual_ports = {"amqp": 5672, "stomp": 61613}  # noqa: RUF012

    def install(self):
        folder = provide(f"{self.name}-{self.release}", lambda draft: download_all(self.name, draft))
        return folder / f"apache-artemis-{self.release}"

    def command(self, home):
        conf = self.folder / "conf"
        properties = {
            "artemis.home": home,
            "artemis.instance": self.folder,
            "artemis.instance.etc": conf,
            "java.security.auth.login.config": conf / "login.config",
            "log4j2.configurationFile": conf / "log4j2.properties",
        }
        boot = home / "lib" / "artemis-boot.jar"
        return java(boot, properties, "org.apache.activemq.artemis.boot.Artemis", "run"), None
