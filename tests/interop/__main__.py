"""Runs what is installed of the clients and brokers against each other, and says what is not: ``make interop``.

With the folder ``shims`` of Apache's interop suite its clients take part, too: ``make interop SHIMS=…/shims``.
"""

import argparse
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from brokers import BrokerMissing, registry

from tests.interop.cases import GROUPS
from tests.interop.clients import Own, Shim, find_shims
from tests.interop.matrix import BROKERS, exchange, run


def main(words=None):
    """Run all brokers; return 1 if a client of this project's received something else than was sent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shims", type=Path, help="a folder with more shims")
    parser.add_argument("--broker", choices=BROKERS, action="append", help="one of the brokers, or several")
    options = parser.parse_args(words)
    try:
        good = [_run(name, options.shims) for name in options.broker or BROKERS]
    finally:
        registry.discard_shared()
    if options.shims is None:
        print("not installed: the clients of Apache's interop suite (--shims names their folder)")
    return 0 if all(good) else 1


def _run(name, shims):
    with ExitStack() as stack:
        clients = list(_connect(name, stack))
        if shims is not None and "qpid-jms" in BROKERS[name].clients:
            url = registry.url_of(f"{name}-amqp")
            clients += _those_that_run([Shim(folder, url) for folder in find_shims(shims)], clients[0])
        groups = [group for group in GROUPS if group not in BROKERS[name].not_carried]
        return _tell(name, run(clients, groups=groups, with_only=None if shims is None else "jmsjca"))


def _connect(broker, stack):
    for name, protocol in BROKERS[broker].clients.items():
        try:
            url = registry.url_of(f"{broker}-{protocol}")
            yield Own(name, _for(name, url), stack, BROKERS[broker].queue_names.get(name, "{}"))
        except BrokerMissing as problem:
            print(f"not installed: {name} on {broker}: {str(problem).splitlines()[0]}")


def _those_that_run(shims, ours):
    """Return the shims that can exchange a text with themselves."""
    for shim in shims:
        if problem := exchange(shim, shim, GROUPS["type"], declare=ours.declare):
            print(f"not installed: {shim.name}: {' '.join(problem.split())}", flush=True)
        else:
            yield shim


def _for(name, url):
    if name == "openwire":
        return url.replace("openwire:", "tcp:")
    return f"{url}?java_maps=true" if url.startswith("stomp") else url


def _tell(broker, outcomes):
    pairs = defaultdict(list)
    for outcome in outcomes:
        pairs[outcome.sender, outcome.receiver].append(outcome)
    for (sender, receiver), each in pairs.items():
        wrong = [outcome for outcome in each if outcome.problem]
        print(f"{broker}: {sender} → {receiver}: {len(each) - len(wrong)} of {len(each)} groups equal", flush=True)
        for outcome in wrong:
            print(f"    {outcome.group}: {outcome.problem}")
    return not any(outcome.problem for each in pairs.values() for outcome in each)


if __name__ == "__main__":
    sys.exit(main())
