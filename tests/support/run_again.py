"""Cases that are run again when they fail, as the failure may say nothing about us; each time is told at the end.

- RabbitMQ 3.10's AMQP 1.0 plugin now and then crashes by itself: about once in a thousand attaches the broker finds a
  channel of its own gone (``internal error in channel … noproc`` in its log) and ends the session or the connection. No
  client can prevent it.
- Cases that are marked ``by_hand`` have none of our code in them: they show by the protocol itself what a broker does.
  Now and then its threads cross, and it does it later than usual; what it never does fails every time.
"""

import pytest
from _pytest.runner import runtestprotocol
from brokers import registry

SIGN = "closing: internal error in channel"
ATTEMPTS = 3

repeated: list[str] = []


def crashes():
    broker = registry.known().get("rabbitmq")
    return broker.log.read_text(errors="replace").count(SIGN) if broker and broker.log.exists() else 0


def run_while_excused(item, nextitem, excused):
    """Run a case; again if it failed and is excused by what happened meanwhile."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, ATTEMPTS + 1):
        excuse = excused()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if attempt == ATTEMPTS or not any(report.failed for report in reports) or not excuse():
            break
        repeated.append(item.nodeid)
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def after_a_crash():
    before = crashes()
    return lambda: crashes() != before


def always():
    return lambda: True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if item.get_closest_marker("by_hand"):
        run_while_excused(item, nextitem, always)
    elif "rabbitmq" in item.nodeid:
        run_while_excused(item, nextitem, after_a_crash)
    else:
        return None
    return True


def pytest_terminal_summary(terminalreporter):
    if repeated:
        terminalreporter.write_line(f"Run again for what brokers did by themselves: {', '.join(repeated)}")
