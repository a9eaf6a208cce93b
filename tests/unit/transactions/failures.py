"""What a failure leaves: the cases of the tests, from which ``tests.support.failure_tables`` writes its tables."""

from typing import NamedTuple

__all__ = ["BETWEEN", "CASES", "KillCase", "Left", "cases_of", "leaves"]

BETWEEN = {"after the database's commit", "before the broker's commit"}
"""The steps at which a kill leaves the row of a message that is redelivered."""


class Left(NamedTuple):
    """What a failure leaves at once, before anything is redelivered.

    Attributes:
        failure: What fails.
        rows: What is left of the handler's rows.
        messages: What is left of its messages.
    """

    failure: str
    rows: str
    messages: str


def leaves(failure, rows, messages):
    """Return a decorator for the test that shows what a failure leaves."""

    def mark(test):
        test.leaves = Left(failure, rows, messages)
        return test

    return mark


class KillCase(NamedTuple):
    """A listener that writes a row and sends a message for each of its messages, and is killed.

    Attributes:
        test: The test that kills it.
        database: The database of the row.
        broker: The broker of the messages.
        listener: What the listener has against duplicates.
        fields: What makes it that listener: fields of `Place`.
        is_exact: Whether a kill between the two commits leaves one row for each message; else it leaves two.
    """

    test: str
    database: str
    broker: str
    listener: str
    fields: dict[str, object]
    is_exact: bool

    def fault(self, kind, wrong):
        """Return what is wrong after a kill and the redelivery, but for what the table says.

        Args:
            kind: The kind of the step at which the listener was killed.
            wrong: What is not there once, as `verdict_on` says it.
        """
        if self.is_exact or kind not in BETWEEN:
            return wrong
        return (
            [] if [text.partition(" of ")[0] for text in wrong] == ["2 rows"] else ["not the documented window", *wrong]
        )


_NO_INBOX = ("no inbox", {"has_inbox": False}, False)
_INBOX = ("an inbox", {"has_inbox": True}, True)
_AFTER = ('an inbox, `insert="after"`', {"has_inbox": True, "insert": "after"}, True)
_TWO_PHASES = ("an inbox, two phases", {"has_inbox": True, "two_phase": True}, True)
_ON_A_LOOP = ("an inbox, asynchronous", {"has_inbox": True, "is_asynchronous": True}, True)
_TWO_ON_A_LOOP = (
    "an inbox, two phases, asynchronous",
    {"has_inbox": True, "two_phase": True, "is_asynchronous": True},
    True,
)
_DECIDES = ("a last resource", {"has_inbox": False, "decides": True}, True)
_FILES = "unit/transactions/test_two_resources.py::test_a_killed_listener_leaves_what_its_case_says"
_POSTGRESQL = "brokers/test_postgresql.py::test_a_listener_killed_leaves_what_its_case_says"
_NETWORK = "brokers/test_two_resources.py::test_database_destination_and_source_agree"
_JAVA = "brokers/test_java_xa_kills.py::test_a_killed_listener_with_a_last_resource"
_ARTEMIS, _ACTIVEMQ = "Artemis over AMQP", "ActiveMQ over STOMP"

CASES = (
    *(KillCase(_FILES, "SQLite", "embedded", *listener) for listener in (_NO_INBOX, _INBOX, _AFTER, _ON_A_LOOP)),
    KillCase(_FILES, "the broker's file", "embedded", *_AFTER),
    *(
        KillCase(_POSTGRESQL, "PostgreSQL", "embedded", *listener)
        for listener in (_NO_INBOX, _INBOX, _AFTER, _ON_A_LOOP, _TWO_PHASES, _TWO_ON_A_LOOP)
    ),
    *(
        KillCase(_NETWORK, database, broker, *listener)
        for database in ("SQLite", "PostgreSQL")
        for broker in (_ARTEMIS, _ACTIVEMQ)
        for listener in (_NO_INBOX, _INBOX)
    ),
    *(
        KillCase(_JAVA, database, broker, *_DECIDES)
        for database in ("PostgreSQL", "SQLite")
        for broker in ("Artemis over Core",)
    ),
)


def cases_of(test):
    """Return the cases of a test, by the end of its name."""
    return [case for case in CASES if case.test.endswith(f"::{test}")]
