"""The brokers of a developer: ``python -m brokers provision|start|stop|kill|restart|status [NAME …]``."""

import argparse
import sys

from brokers import BROKERS, BrokerDied, BrokerMissing
from brokers.provisioning import cache_folder

ACTIONS = {
    "provision": lambda broker: broker.install(),
    "start": lambda broker: broker.start(usual_ports=True),
    "stop": lambda broker: broker.stop(),
    "kill": lambda broker: broker.kill(),
    "restart": lambda broker: broker.restart(),
    "status": lambda broker: None,
}


def developers_broker(name):
    """Return the one broker of this name that outlives its starter."""
    return BROKERS[name](_folder(name))


def _folder(name):
    folder = cache_folder().parent / "running" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _carry_out(action, name):
    """Say whether it worked: one broker that is missing keeps nobody from the others."""
    try:
        ACTIONS[action](developers_broker(name))
    except (BrokerMissing, BrokerDied) as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return False
    return True


def _print_table(names):
    for broker in map(developers_broker, names):
        known = f"pid {broker.process.pid}" if broker.running else "stopped"
        print(f"{broker.name:<10}{broker.release:<9}{known:<12}{broker.folder}/{{data,broker.log}}")
        for protocol in broker.ports if broker.running else ():
            print(f"{'':<10}{protocol:<12}{broker.url(protocol)}")


def main(words):
    """Carry out an action for the brokers named, else for all."""
    parser = argparse.ArgumentParser(prog="python -m brokers", description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BROKERS)}")
    told = parser.parse_args(words)
    names = told.names or list(BROKERS)
    if unknown := set(names) - set(BROKERS):
        parser.error(f"there is no broker {', '.join(sorted(unknown))}")
    worked = [_carry_out(told.action, name) for name in names]
    _print_table(names)
    return 0 if all(worked) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
