"""A RabbitMQ 4 whose limit for memory changes while it runs, as when an operator calls ``rabbitmqctl``."""

import subprocess
from contextlib import contextmanager

from brokers.rabbitmq import NODE, RabbitMQ4

PATIENCE = 60  # seconds


class OperatedRabbitMQ4(RabbitMQ4):
    """Has a port at which Erlang's programs of this machine call its functions."""

    usual_ports = {**RabbitMQ4.usual_ports, "nodes": 25677}  # noqa: RUF012

    def distribution(self):
        return [*self._node_port(), "-kernel", "inet_dist_use_interface", "{127,0,0,1}"]

    @contextmanager
    def memory_alarm(self):
        """Lower the limit below the memory in use, so that the broker blocks senders, and raise it again at the end."""
        self._set_memory_limit("1.0e-6", alarms="[_ | _]")
        try:
            yield
        finally:
            self._set_memory_limit("{absolute, 1073741824}", alarms="[]")

    def _set_memory_limit(self, limit, alarms):
        """Set the limit, and return when the alarms of the broker match a pattern of Erlang."""
        self._evaluate(f"""
            ok = rpc:call(Node, vm_memory_monitor, set_vm_memory_high_watermark, [{limit}]),
            Wait = fun Again() ->
                case rpc:call(Node, rabbit_alarm, get_alarms, []) of
                    {alarms} -> ok;
                    Others when is_list(Others) -> timer:sleep(20), Again()
                end
            end,
            Wait(), halt(0).""")

    def _evaluate(self, code):
        """Run code in an Erlang of its own, which finds the broker's cookie in the broker's home."""
        (erlang, *_), environment = self.command(self.install())
        node = ["-sname", "operator@localhost", "-dist_listen", "false", *self._node_port()]
        subprocess.run(
            [erlang, "-noinput", *node, "-eval", f"Node = '{NODE}', {code}"], env=environment, timeout=PATIENCE,
            check=True, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip

    def _node_port(self):
        return ["-start_epmd", "false", "-erl_epmd_port", str(self.ports["nodes"])]
