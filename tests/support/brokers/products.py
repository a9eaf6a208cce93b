"""The brokers of the tests: their packages, commands and protocols."""

from brokers.broker import Broker
from brokers.handshake import LOGINS
from brokers.ports import HOST
from brokers.provisioning import download_all, java, provide
from brokers.rabbitmq import RabbitMQ, RabbitMQ4


class ActiveMQ(Broker):
    """Runs from the jars it needs: no archive of a release later than 5.18.3 was to be had from Maven Central."""

    name, release = "activemq", "6.3.1"
    usual_ports = {"openwire": 61616, "amqp": 5673, "stomp": 61614, "jolokia": 8778}  # noqa: RUF012

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
        more = self._management()
        (agent,) = more.glob("jolokia-*.jar")
        options = f"-javaagent:{agent}=host={HOST},port={self.ports['jolokia']},discoveryEnabled=false"
        command = java(f"{home}/*:{more}/*", properties, "org.apache.activemq.console.Main", *start)
        return [command[0], options, *command[1:]], None

    def url(self, protocol):
        if protocol == "java":
            return f"java+tcp://{HOST}:{self.ports['openwire']}?class_path={self.install()}/*"
        return f"http://{HOST}:{self.ports['jolokia']}/jolokia/" if protocol == "jolokia" else super().url(protocol)

    def _management(self):
        """Return the folder with Jolokia, which offers the beans over HTTP, and with what the beans need."""
        return provide("activemq-management-2.1.2", lambda draft: download_all("activemq-management", draft))


class Artemis(Broker):
    """Runs without the instance that ``artemis create`` writes: four small files replace it."""

    name, release = "artemis", "2.56.0"
    usual_ports = {"amqp": 5672, "stomp": 61613, "core": 61618}  # noqa: RUF012

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

    def url(self, protocol):
        if protocol == "java":
            return f"java+core://{HOST}:{self.ports['core']}?class_path={self.install()}/lib/*"
        return super().url(protocol)


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


class Qpid(Broker):
    """Speaks AMQP 1.0 only. Its port for users with a password is another than the anonymous one."""

    name, release = "qpid", "10.1.0"
    usual_ports = {"amqp": 5675, "amqp-plain": 5676}  # noqa: RUF012

    def install(self):
        folder = provide(f"{self.name}-{self.release}", lambda draft: download_all(self.name, draft))
        return folder / "qpid-broker" / self.release

    def command(self, home):
        # The first start reads the initial configuration into the work folder; later ones find it there.
        initial = ("-icp", str(self.folder / "conf" / "initial.json"))
        work = ("-prop", f"qpid.work_dir={self.folder / 'data'}")
        return java(f"{home}/lib/*", {}, "org.apache.qpid.server.Main", *initial, *work), None

    def url(self, protocol):
        if protocol == "java":
            return f"java+amqp://{HOST}:{self.ports['amqp']}?class_path={client_jars()}/*"
        return super().url(protocol)


def client_jars():
    """Return the folder with the jars of ActiveMQ's and Qpid's clients that ``sums/java.sha512`` pins."""
    from jms_java.program import download  # which imports this package

    return download("java")


BROKERS = {broker.name: broker for broker in (Artemis, ActiveMQ, Qpid, RabbitMQ, RabbitMQ4, OpenMQ)}
PAIRS = tuple(f"{name}-{protocol}" for name in BROKERS for protocol in LOGINS if protocol in BROKERS[name].usual_ports)
JAVA_PAIRS = ("artemis-java", "activemq-java", "qpid-java")
