"""RabbitMQ 3.10's AMQP 1.0 plugin now and then crashes by itself: such a case is run again, and counted.

About once in a thousand attaches the broker finds a channel of its own gone (``internal error in channel … noproc`` in
its log) and ends the session or the connection. No client can prevent it; a case that failed while the log tells of
such a crash says nothing about us.
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


def run_again_after_crashes(item, nextitem):
    """Run a case; again if it failed and the broker crashed meanwhile."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, ATTEMPTS + 1):
        before = crashes()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if attempt == ATTEMPTS or not any(report.failed for report in reports) or crashes() == before:
            break
        repeated.append(item.nodeid)
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if "rabbitmq" not in item.nodeid:
        return None
    run_again_after_crashes(item, nextitem)
    return True


def pytest_terminal_summary(terminalreporter):
    if repeated:
        terminalreporter.write_line(f"RabbitMQ's AMQP 1.0 plugin crashed by itself; run again: {', '.join(repeated)}")
