"""RabbitMQ with its management plug-in, whose HTTP API shows measurements of the last second, not of five."""

from brokers.ports import HOST
from brokers.rabbitmq import RabbitMQ, RabbitMQ4

_SETTINGS = """
management.tcp.ip = {host}
management.tcp.port = {port}
collect_statistics_interval = 500
management.sample_retention_policies.global.minute = 1
management.sample_retention_policies.basic.minute = 1
management.sample_retention_policies.detailed.10 = 1
"""


class _Managed:
    """What both releases have in common."""

    def command(self, home):
        conf = self.folder / "conf"
        plugins, settings = conf / "enabled_plugins", conf / "rabbitmq.conf"
        plugins.write_text(plugins.read_text().replace("rabbitmq_stomp", "rabbitmq_stomp, rabbitmq_management"))
        settings.write_text(settings.read_text() + _SETTINGS.format(host=HOST, port=self.ports["management"]))
        return super().command(home)

    def url(self, protocol):
        """Return the URL of a protocol, or of the API."""
        return f"http://{HOST}:{self.ports[protocol]}/api" if protocol == "management" else super().url(protocol)


class ManagedRabbitMQ(_Managed, RabbitMQ):
    """The release of Debian 12."""

    usual_ports = {**RabbitMQ.usual_ports, "management": 15672}  # noqa: RUF012


class ManagedRabbitMQ4(_Managed, RabbitMQ4):
    """The release of Debian 13."""

    usual_ports = {**RabbitMQ4.usual_ports, "management": 15674}  # noqa: RUF012
