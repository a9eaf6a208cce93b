"""Takes what is left at the broker for the account, and keeps it in files: an account can be taken twice."""

import json
from collections.abc import Callable, Iterable, Iterator

from jmsjca.config import Limits
from jmsjca.destinations import Queue, Subscription
from jmsjca.management.demo.findings import Findings
from jmsjca.management.demo.settings import DemoSettings
from jmsjca.messages import DUPLICATE_ID, Message
from jmsjca.outbound import ConnectionFactory, MessageConsumer, Session

__all__ = ["collect_dead_letters", "collect_results", "collect_unprocessed"]

_UNIT = 100
_LIMITS = Limits(prefetch_messages=_UNIT)  # some brokers deliver no more than that before something is settled
_QUIET = 1.0  # seconds without a message after which a broker that does not count them has no more
_PATIENCE = 10.0  # the same, as long as something is missing

_Events = Callable[[Message], list[str]]


def collect_results(settings: DemoSettings, expected: set[str]) -> Findings:
    """The events in the results of the topic, of which so many are expected."""
    return _collect(settings, settings.audit, "results", expected, lambda message: json.loads(message.body)["ids"])


def collect_dead_letters(settings: DemoSettings, expected: set[str]) -> Findings:
    """The events in the dead-letter queue. A broker of the run's own keeps them."""
    if settings.shared:
        return _collect(settings, settings.dead_letters, "dead-letters", expected, _event)
    findings = Findings()
    with ConnectionFactory(settings.url).create_connection() as connection, connection.create_session() as session:
        for message in session.create_browser(settings.dead_letters):
            findings.add(message.get_string_property(DUPLICATE_ID), _event(message))
    return findings


def collect_unprocessed(settings: DemoSettings, expected: set[str]) -> Findings:
    """The events that the query has left in its queue."""
    return _collect(settings, settings.flights, "unprocessed", expected, _event)


def _event(message: Message) -> list[str]:
    return [str(message.properties["event_id"])]


def _collect(
    settings: DemoSettings, source: Subscription | Queue, name: str, expected: set[str], events: _Events
) -> Findings:
    client_id = source.client_id if isinstance(source, Subscription) else None
    factory = ConnectionFactory(settings.url, client_id=client_id, limits=_LIMITS)
    with (
        Findings.kept_in(settings.path(f"{name}.jsonl")) as findings,
        factory.create_connection() as connection,
        connection.create_session(transacted=True) as session,
    ):
        quiet, patience = (0.0, 0.0) if connection.admin else (_QUIET, _PATIENCE)
        consumer = _consumer(session, source)
        while unit := list(_receive(consumer, quiet if findings.hold(expected) else patience)):
            _add(findings, unit, events)
            session.commit()
    return findings


def _add(findings: Findings, messages: Iterable[Message], events: _Events) -> None:
    for message in messages:
        findings.add(message.get_string_property(DUPLICATE_ID), events(message))
    findings.flush()


def _consumer(session: Session, source: Subscription | Queue) -> MessageConsumer:
    if isinstance(source, Queue):
        return session.create_consumer(source)
    return session.create_durable_consumer(source.topic, str(source.name))


def _receive(consumer: MessageConsumer, timeout: float) -> Iterator[Message]:
    """One unit's worth: wait for the first message, then take those that are there."""
    for position in range(_UNIT):
        message = consumer.receive(0.0 if position else timeout)
        if message is None:
            return
        yield message
