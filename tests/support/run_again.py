"""Cases that are run again when they fail, as the failure may say nothing about us; each time is told at the end.

- RabbitMQ 3.10's AMQP 1.0 plugin now and then crashes by itself: about once in a thousand attaches the broker finds a
  channel of its own gone (``internal error in channel … noproc`` in its log) and ends the session or the connection. No
  client can prevent it.
- Cases that are marked ``by_hand`` have none of our code in them: they show by the protocol itself what a broker does.
  Now and then its threads cross, and it does it later than usual; what it never does fails every time.
- Of all others, few in a run may fail once and then pass, on a machine that is busy with four brokers and more. Their
  first failure is printed whole: it may be our fault. Those that are marked ``torture`` may not.
"""

import pytest
from _pytest.runner import runtestprotocol
from brokers import registry

SIGN = "closing: internal error in channel"
ATTEMPTS = 3
UNSTEADY = 2  # cases of a run; more are no accident

repeated: list[str] = []
unsteady: dict[str, str] = {}


def crashes():
    broker = registry.known().get("rabbitmq")
    return broker.log.read_text(errors="replace").count(SIGN) if broker and broker.log.exists() else 0


def excuse(item, failure, crashed):
    """Note why a case may be run again; False if it may not."""
    if item.get_closest_marker("by_hand") or ("rabbitmq" in item.nodeid and crashes() != crashed):
        repeated.append(item.nodeid)
    elif not item.get_closest_marker("torture") and item.nodeid not in unsteady and len(unsteady) < UNSTEADY:
        unsteady[item.nodeid] = failure.longreprtext
    else:
        return False
    return True


def run(item, nextitem):
    """Run a case; again if it failed and is excused."""
    for left in reversed(range(ATTEMPTS)):
        crashed = crashes()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failure = next((report for report in reports if report.failed), None)
        if failure is None or not left or not excuse(item, failure, crashed):
            break
        item._initrequest()
    return reports


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter):
    if repeated:
        terminalreporter.write_line(f"Run again for what brokers did by themselves: {', '.join(repeated)}")
    for name, failure in unsteady.items():
        terminalreporter.section(f"failed, and was run again: {name}")
        terminalreporter.write_line(failure)
