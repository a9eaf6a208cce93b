"""The frames of one commit, written at once, and what became of them."""

from collections.abc import Mapping, Sequence

from jmsjca.errors import ConnectionLostError, JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsjca.providers.stomp.channel import WriteError
from jmsjca.providers.stomp.dialect import TRANSACTION, Dialect
from jmsjca.providers.stomp.receipts import Refusal, Wait
from jmsjca.providers.stomp.wire import Wire

__all__ = ["Burst"]


class Burst:
    """BEGIN, ACKs, SENDs, COMMIT in one write: transactions of one connection never overlap.

    ActiveMQ loses messages when they do. They share one name, too: Artemis keeps a session for every name it has seen.

    Args:
        wire: The connection.
        dialect: What the broker calls things.
        receipt: The receipt that the sends ask for.
        acks: The headers of the acknowledgements.
        sends: The SEND frames.
        later: True if other bursts of the same unit have succeeded before: nothing can be undone any more.
    """

    def __init__(
        self,
        wire: Wire,
        dialect: Dialect,
        receipt: str,
        acks: Sequence[Mapping[str, str]],
        sends: Sequence[bytes],
        *,
        later: bool = False,
    ) -> None:
        self._wire = wire
        self._dialect = dialect
        self._acks = acks
        self._sends = sends
        self._later = later
        self._receipts = [receipt] * len(sends)
        self._last = f"{receipt}c"

    def execute(self, timeout: float | None) -> None:
        """Write it, and wait until the broker has confirmed all of it.

        Raises:
            TransactionRolledBackError: It did not happen.
            TransactionInDoubtError: It may or may not have happened.
            ConnectionLostError: The connection was gone before anything was written.
        """
        if not (self._acks or self._sends):
            return
        transacted = bool(self._sends) or self._dialect.acknowledges_in_transaction
        head, decision = self._transacted() if transacted else self._plain()
        wait = self._wire.receipts.expect(*self._receipts, self._last)
        try:
            self._write(head, decision)
            self._confirm(wait, self._wire.reply_timeout if timeout is None else timeout)
        finally:
            self._wire.receipts.forget(wait)

    def _transacted(self) -> tuple[bytes, bytes]:
        """Everything before the frame that decides, and that frame."""
        encode = self._wire.encode
        begin = encode("BEGIN", TRANSACTION)
        acks = (encode("ACK", {**ack, **TRANSACTION}) for ack in self._acks)
        return b"".join((begin, *acks, *self._sends)), encode("COMMIT", {**TRANSACTION, "receipt": self._last})

    def _plain(self) -> tuple[bytes, bytes]:
        """Acknowledgements that the broker takes one by one: the first one decides already."""
        last = {**self._acks[-1], "receipt": self._last}
        frames = [self._wire.encode("ACK", ack) for ack in (*self._acks[:-1], last)]
        return b"", b"".join(frames)

    def _write(self, head: bytes, decision: bytes) -> None:
        try:
            self._wire.write(head + decision)
        except WriteError as error:
            self._wire.end(ConnectionLostError(f"The connection broke: {error}"))
            if error.written <= len(head) and not self._later:
                raise TransactionRolledBackError("The connection broke before the broker could commit.") from error
            raise self._doubt(error) from error

    def _confirm(self, wait: Wait, timeout: float) -> None:
        try:
            wait.result(timeout)
        except JMSError as error:
            self._wire.end(ConnectionLostError(f"The outcome of a commit is not known: {error}"))
            refused = isinstance(error, Refusal) and error.receipt == self._last
            if refused and self._dialect.broker.capabilities.atomic:
                raise TransactionRolledBackError(f"The broker refused to commit: {error}") from error
            raise self._doubt(error) from error

    def _doubt(self, error: Exception) -> TransactionInDoubtError:
        return TransactionInDoubtError(f"The commit may or may not have happened: {error}")
