"""A shim for Apache's interop suite: sends and receives what its command line says, and answers in JSON.

``python -m tests.interop.shim jmsjca send --broker localhost:5672 --queue q --type JMS_TEXTMESSAGE_TYPE --data '[…]'``
"""

import argparse
import json
import sys

from tests.interop.shim import large_content
from tests.interop.shim.clients import CLIENTS, connect
from tests.interop.shim.messages import KINDS, make, tell
from tests.interop.shim.values import UnknownTypeError

__all__ = ["main"]


def main(words=None):
    """Carry out a command; return the status of the process, which is 1 if large content did not match."""
    options = _parser().parse_args(words)
    act = _ACTS[options.command, options.large_content is not None]
    try:
        with connect(options.client, options.broker) as client:
            answer = act(client, options)
    except UnknownTypeError as problem:
        print(problem, file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return 0 if answer.get("match", True) else 1


def _send(client, options):
    messages = [make(options.type, told, options.headers, options.properties) for told in options.data]
    client.send(options.queue, messages)
    return {"messages": options.data, "stats": {"sent": len(messages)}}


def _receive(client, options):
    received = client.receive(options.queue, options.count, options.timeout)
    return {
        "messages": [tell(number, told) for number, told in enumerate(received)],
        "stats": {"received": len(received)},
    }


def _send_large(client, options):
    client.send(options.queue, [_large(options)])
    return {"sent": True, **_outline(options)}


def _receive_large(client, options):
    received = client.receive(options.queue, 1, options.timeout)
    if not received:
        return {"match": False, "error": "timeout"}
    return {"match": large_content.compare(received[0], _large(options)), **_outline(options)}


def _large(options):
    parts = (options.size, options.seed, options.elements, options.element_size)
    return large_content.make(options.large_content, *parts)


def _outline(options):
    return large_content.outline(options.large_content, options.size, options.elements, options.element_size)


_ACTS = {
    ("send", False): _send,
    ("send", True): _send_large,
    ("receive", False): _receive,
    ("receive", True): _receive_large,
}


def _parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", choices=CLIENTS)
    commands = parser.add_subparsers(dest="command", required=True)
    sending, receiving = commands.add_parser("send"), commands.add_parser("receive")
    for command in (sending, receiving):
        command.add_argument("--broker", required=True, help="its URL, or its host and port")
        command.add_argument("--queue", required=True)
        command.add_argument("--count", type=int, default=1)
        command.add_argument("--large-content", choices=large_content.CONTENTS)
        for number in ("--size", "--seed", "--elements", "--element-size"):
            command.add_argument(number, type=int, default=0)
    sending.add_argument("--type", choices=[f"JMS_{kind}_TYPE" for kind in KINDS], default="JMS_TEXTMESSAGE_TYPE")
    sending.add_argument("--data", type=json.loads, default=[])
    sending.add_argument("--headers", type=json.loads, default={})
    sending.add_argument("--properties", type=json.loads, default={})
    receiving.add_argument("--timeout", type=float, default=30, help="seconds, for each message")
    return parser


if __name__ == "__main__":
    sys.exit(main())
