"""The clients of a run: ours and Java's in this process, other shims by their command lines."""

import json
import subprocess
from contextlib import ExitStack

from tests.interop.cases import TYPED
from tests.interop.shim.clients import CLIENTS, connect
from tests.interop.shim.messages import make, tell

__all__ = ["Own", "Shim", "find_shims"]

_AMQP = {
    "JMS_MESSAGE_TYPE": "null",
    "JMS_TEXTMESSAGE_TYPE": "string",
    "JMS_BYTESMESSAGE_TYPE": "binary",
    "JMS_MAPMESSAGE_TYPE": "map",
    "JMS_STREAMMESSAGE_TYPE": "list",
}
SECONDS = 60


class Own:
    """A client of `tests.interop.shim`, connected once.

    Args:
        name: Its name.
        url: The URL of the broker.
        stack: Closes it.
        queue_name: The name of a queue for this client, with the place of the usual name.
    """

    def __init__(self, name, url, stack: ExitStack, queue_name="{}"):
        self.name, self._client, self._queue_name = name, stack.enter_context(connect(name, url)), queue_name

    def carries(self, group):
        """Return True for each group."""
        return bool(group)

    def declare(self, queue):
        """Make a queue, where the first consumer makes it."""
        self._client.receive(self._queue_name.format(queue), 1, 0)

    def send(self, queue, group):
        messages = [make(group.kind, told, group.headers, group.properties) for told in group.data]
        self._client.send(self._queue_name.format(queue), messages)

    def receive(self, queue, count):
        received = self._client.receive(self._queue_name.format(queue), count, SECONDS)
        return [tell(place, told) for place, told in enumerate(received)]


class Shim:
    """A shim with a command line, in a folder with ``shim.json`` and ``shim.sh``."""

    def __init__(self, folder, url):
        manifest = json.loads((folder / "shim.json").read_text())
        self.name, self._folder = folder.name, folder
        self._broker = manifest.get("broker_prefix", "amqp://") + url.partition("://")[2]
        self._of_jms = manifest["type"] == "jms"

    def carries(self, group):
        """Return True if its command line can say the group."""
        return self._of_jms or group not in TYPED

    def send(self, queue, group):
        words = {"type": group.kind if self._of_jms else _AMQP[group.kind], "data": json.dumps(self._data(group))}
        words |= {name: json.dumps(told) for name in ("headers", "properties") if (told := getattr(group, name))}
        more = [] if self._of_jms else ["--jms-mode", "--count", str(len(group.data))]
        self._run("send", queue, words, more)

    def receive(self, queue, count):
        return self._run("receive", queue, {"count": str(count), "timeout": str(SECONDS)}, [])["messages"]

    def _data(self, group):
        types = {} if self._of_jms else {"none": "null", "text": "string", "bytes": "binary"}
        return [{**told, "type": types.get(told["type"], told["type"])} for told in group.data]

    def _run(self, command, queue, words, more):
        told = [word for name, value in words.items() for word in (f"--{name}", value)]
        run = [self._folder / "shim.sh", command, "--broker", self._broker, "--queue", queue, *told, *more]
        done = subprocess.run(run, check=False, capture_output=True, text=True, timeout=2 * SECONDS)
        if done.returncode:
            raise RuntimeError(f"{self.name} {command} ended with {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout)


def find_shims(folder):
    """Return the folders of shims in a folder, those of this project left out."""
    return sorted(path.parent for path in folder.glob("*/shim.json") if path.parent.name not in CLIENTS)
