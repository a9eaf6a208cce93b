"""What a message that one client sends is when another one receives it: ``python -m tests.interop.crossings``.

Each pair of clients on each broker exchanges a text with all headers, bytes without any, a map, and a delayed text. The
receiver then answers, and returns a message by a release, a reject, a close and a cut. What differs from what was sent
is written to ``tests/support/evidence/crossings.json``, from which the page is made.
"""

import argparse
import fcntl
import json
import re
import sys
import time
import uuid
from pathlib import Path

from brokers import BrokerMissing, registry

from tests.interop.crossing_clients import (
    ANSWERS,
    LIFE,
    NOT_OFFERED,
    PROPERTIES,
    WAYS,
    ZIPPED,
    clients_of,
    open_client,
    protocol_of,
)

__all__ = ["BROKERS", "CASES", "EVIDENCE", "Crossing", "cells", "recorded"]

EVIDENCE = Path(__file__).parents[1] / "support" / "evidence" / "crossings.json"
BROKERS = ("artemis", "activemq", "rabbitmq", "rabbitmq4", "qpid", "openmq")
CASES = ("full", "bytes", "map", "gzip", "delayed", "reply", *WAYS)
# Names, ids and ports, which differ from run to run.
_NUMBERS = re.compile(r"crossing\.n[0-9a-f]*|ID:\d[\w.:()-]*|[0-9a-f]{8}-[0-9a-f-]{27}|(?<=127\.0\.0\.1:)\d+")
_ENCODED = re.compile("0x00537[0-9a-f]{40,}")  # with ids and times
_GONE = 4.0  # seconds after which a returned message is taken for gone
_KINDS = {"full": "text", "bytes": "bytes", "map": "map", "gzip": "bytes", "delayed": "text"}
_BODIES = {"bytes": {"0x00ff"}, "map": {"{'n': 1}", '{"n": 1}', "{'n': int32(1)}", "{'n': ['int', '1']}"}}
_BODIES["gzip"] = {f"0x{ZIPPED.hex()}"}
_TYPES = {"full": "text/plain", "bytes": "application/octet-stream", "map": "application/json", "gzip": "text/plain"}
_RAW = {"stomp.py", "proton"}


def cells(brokers=BROKERS):
    """Return all pairs of clients: broker, sender, receiver."""
    return [(broker, one, other) for broker in brokers for one in clients_of(broker) for other in clients_of(broker)]


def recorded():
    """Return the recorded differences of each pair, by case."""
    return json.loads(EVIDENCE.read_text())


def key_of(broker, sender, receiver):
    """Return the name of a pair in the evidence."""
    return f"{broker}: {sender} > {receiver}"


class Crossing:
    """A sender and a receiver on one broker."""

    def __init__(self, broker, sender, receiver):
        self.broker = broker
        mixed = len({protocol_of(sender), protocol_of(receiver)} - {"openwire"}) > 1
        self._open = []
        self._sender, self._receiver = (self._connect(name, mixed) for name in (sender, receiver))
        self._names = sender, receiver
        self._declarer = None
        declaring = "jmsjca AMQP" if mixed or protocol_of(sender) == "amqp" else "jmsjca STOMP"
        if declaring in clients_of(broker):
            self._declarer = self._connect(declaring, mixed)

    def _connect(self, name, mixed):
        url = registry.url_of(f"{self.broker}-{protocol_of(name)}")
        self._open.append(open_client(name, self.broker, url, mixed=mixed))
        return self._open[-1]

    def _queue(self):
        name = f"crossing.n{uuid.uuid4().hex}"
        if self._declarer is not None:
            self._declarer.declare(name)
        return name

    def run(self, case):
        """Return what differs from what was sent, by field; a text if the case ends before a message is received."""
        if case in WAYS:
            return self._returned(case)
        return self._answered() if case == "reply" else self._exchanged(case)

    def _exchanged(self, case):
        name, answers = self._queue(), f"{ANSWERS}.n{uuid.uuid4().hex}"
        begin = time.time()
        sent = self._sender.send(name, case, answers)
        if isinstance(sent, str):
            return sent
        found = self._receiver.receive(name)
        if found is None:
            return "nothing arrives"
        waited = time.time() - begin
        self._receiver.settle()
        different = differences(case, sent, found, begin, names=self._names)
        if case == "delayed" and waited < 1:
            different["delay"] = "delivered at once"
        return {field: _without_names(value, name, answers) for field, value in different.items()}

    def _answered(self):
        name, answers = self._queue(), self._queue()
        sent = self._sender.send(name, "full", answers)
        if isinstance(sent, str):
            return sent
        found = self._receiver.receive(name)
        told = _without_names(found["reply to"], name, answers)
        problem = None
        try:
            self._receiver.reply()
        except Exception as error:  # noqa: BLE001  # whatever a client says is the outcome
            problem = type(error).__name__
        self._receiver.settle()
        if problem is None and self._sender.receive(answers, _GONE) is not None:
            self._sender.settle()
            return {}
        return {"reply": f"does not arrive ({told}{'' if problem is None else f', {problem}'})"}

    def _returned(self, way):
        name = self._queue()
        sent = self._sender.send(name, "plain", ANSWERS)
        if isinstance(sent, str):
            return sent
        first = self._receiver.receive(name)
        if first is None:
            return "nothing arrives"
        try:
            if self._receiver.give_back(way) == NOT_OFFERED:
                self._receiver.settle()
                return NOT_OFFERED
        except Exception as error:  # noqa: BLE001  # as above
            return f"{type(error).__name__}"
        second = self._receiver.receive(name, _GONE)
        if second is None:
            return "not redelivered"
        self._receiver.settle()
        told = {"count": second["count"], "redelivered": second["redelivered"]}
        if second["message id"] != first["message id"]:
            told["message id"] = "another"
        return told

    def close(self):
        for client in self._open:
            client.close()


def differences(case, sent, found, begin, *, names):
    """Return the fields of a received message that are not what was sent."""
    full = case == "full"
    raw = _RAW.issuperset(names)
    wanted = {
        "correlation id": "order 1" if full else None,
        "type": "order" if full else None,
        "group": "g1" if full else None,
    }
    different = {name: found[name] for name, value in wanted.items() if found[name] != value}
    if found["body"] not in _BODIES.get(case, {"täxt"}):
        different["body"] = _ENCODED.sub("an encoded AMQP message", found["body"])
    if found["message"] not in {None, _KINDS[case]}:
        different["message"] = found["message"]
    if found.get("content type") not in {_TYPES.get(case), None if not (raw and case in {"full", "gzip"}) else ""}:
        different["content type"] = found["content type"]
    if raw and found["content encoding"] != ("gzip" if case == "gzip" else None):
        different["content encoding"] = found["content encoding"]
    if full:
        different |= _of_delivery(found, begin)
    if (told := _id(sent["message id"], found["message id"])) != "same":
        different["message id"] = told
    different |= _of_properties(found["properties"], full=full, typed=names[0] != "stomp.py" and names[1] != "stomp.py")
    return different


def _of_delivery(found, begin):
    different = {}
    if found["persistent"] is not True:
        different["persistent"] = found["persistent"]
    if str(found["priority"]) != "7":
        different["priority"] = found["priority"]
    if found["expiration"] is None:
        different["expiration"] = None
    elif abs(found["expiration"] / 1000 - begin - LIFE) > LIFE / 3:
        different["expiration"] = "another"
    return different


def _of_properties(found, *, full, typed):
    texts = {name: f"string {str(value).lower() if value is True else value}" for name, value in PROPERTIES.items()}
    types = {"text": "string", "int": "int", "long": "long", "double": "double", "boolean": "boolean"}
    exact = {name: f"{types[name]} {text.partition(' ')[2]}" for name, text in texts.items()}
    different = {}
    for name in PROPERTIES if full else ():
        value = found.get(name)
        if value is None:
            different[f"property {name}"] = "missing"
        elif value not in {exact[name], *(() if typed else (texts[name],))}:
            different[f"property {name}"] = "text" if value == texts[name] else value
    more = sorted(name for name in found if name not in PROPERTIES)
    if more:
        different["more properties"] = ", ".join(more)
    return different


def _id(sent, found):
    if found is None:
        return "none"
    if sent is None:
        return "of the broker"
    if found == sent:
        return "same"
    return found.replace(sent, "…") if isinstance(found, str) and sent in found else "of the broker"


def _without_names(value, name, answers):
    return value.replace(name, "QUEUE").replace(answers, ANSWERS) if isinstance(value, str) else value


def measure(broker, sender, receiver, cases=CASES):
    """Return what differs in each case between two clients."""
    told = {}
    for case in cases:
        crossing = Crossing(broker, sender, receiver)  # a case may end a connection, and its acknowledgement too
        try:
            told[case] = crossing.run(case)
        except Exception as error:  # noqa: BLE001  # whatever a client says is the outcome
            told[case] = f"{type(error).__name__}: {_NUMBERS.sub('NAME', str(error))[:200]}"
        finally:
            crossing.close()
    return told


def _record(key, told):
    """Add a pair to the evidence, to which runs of other brokers may write."""
    with EVIDENCE.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        evidence = {**json.loads(file.read() or "{}"), key: told}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(evidence, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def main(words=None):
    """Measure pairs, write the evidence; return 1 if a broker or a client is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", choices=BROKERS, action="append")
    parser.add_argument("--pair", help="only pairs whose name contains this text")
    parser.add_argument("--compare", action="store_true", help="compare with the evidence; nothing is written")
    options = parser.parse_args(words)
    evidence = recorded() if EVIDENCE.exists() else {}
    failed = 0
    for broker, sender, receiver in cells(options.broker or BROKERS):
        key = key_of(broker, sender, receiver)
        if options.pair and options.pair not in key:
            continue
        try:
            told = measure(broker, sender, receiver)
        except BrokerMissing as problem:
            print(f"not installed: {key}: {str(problem).splitlines()[0]}", flush=True)
            failed = 1
            continue
        print(f"{key}\n{json.dumps(told, indent=1, ensure_ascii=False)}", flush=True)
        if options.compare and told != evidence.get(key):
            print(f"  recorded: {json.dumps(evidence.get(key), ensure_ascii=False)}", flush=True)
            failed = 1
        if not options.compare:
            _record(key, told)
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        registry.discard_shared()
