"""Apache Qpid Broker-J."""

from brokers.broker import Broker
from brokers.cache import provide
from brokers.download import download_all
from brokers.java import java


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
