"""The reader of one partition: receive, stage, settle, resolve duplicates, return rows. Replays have the same rows.

The order of the steps is essential:

- messages are staged before they are settled: a crash in between causes redelivery, never loss;
- a redelivered message is detected by the keys of staged, unconfirmed messages; it is settled and dropped;
- staging is exclusive: of two attempts at a partition one defines its rows, the other releases its messages;
- duplicates are resolved after staging: if a broker delivered one message to two partitions, exactly one keeps it.

**Connections.** The tasks of an executor's process use the same connections, one task after the other: Spark keeps the
Python processes of its executors for the next task, and opening a connection costs several round trips. Between two
tasks a connection has no consumer, so it holds no messages.

**Partitions.** If the broker delivered a message to several partitions or queries, exactly one of them keeps it. Each
partition decides after it is published, and a written decision is final. A partition leaves a message to a smaller
partition that has it, and to a larger partition that has decided to keep it. No partition waits: if the larger
partition has not decided, for instance because its attempt crashed, its decision is made here, from the same files.

If a partition keeps all its messages, it does not flush this decision to disk: if a power failure removes the decision,
the batch is repeated, and the same decision is made from the same files. But if another partition has relied on the
decision, it must stay. So the other partition flushes it before its own.

At least one partition keeps the message: the smallest partition that has it leaves it only to a partition that keeps
it. At most one partition keeps it: of two, the one published later sees the other, and either leaves the message to it
or records that the other left it.

**Queries.** If one query of a staging location has staged a message, no other query of the location returns it. If a
task fails between staging and settling, the broker redelivers its messages to any consumer of the queue, perhaps of
another query. The other query recognises them by the keys in doubt of all queries of the queue in its staging location.
It settles and drops them, because the query that staged them has their rows. A query that is never run again leaves
orphans.
"""

import atexit
import gc
import os
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from jmsjca import spi
from jmsjca.config.clock import SYSTEM_CLOCK, Clock
from jmsjca.destinations import Destination, Subscription
from jmsjca.errors import InvalidOptionError, JMSError, StoreError
from jmsjca.log_records import get_logger
from jmsjca.reconnection import ConnectionSettings, connect
from jmsjca.spark.body_columns import BodyColumns
from jmsjca.spark.columns import ColumnBuilder, key_reader
from jmsjca.spark.epoch_plans import Offset
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.part_file import StagedPart
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import EpochPartition, Origin, Staging, StaleEpochError, generations
from jmsjca.spark.store import Store

__all__ = [
    "JmsPartition",
    "Lease",
    "PartitionReader",
    "close_connections",
    "count_kept_by_others",
    "keys_in_doubt",
    "leased",
    "orphans",
    "plan_partitions",
    "resolve_duplicates",
    "without_garbage_collection",
]

logger = get_logger("jmsjca.spark")

_MAX_IDLE = 30.0  # seconds: shorter than Spark keeps an idle process, and than most firewalls forget a connection

_GRACE = 0.1  # of maxBatchLatency
_FIRST = 100  # messages: their average size limits the number of the next ones
_CHUNK_BYTES = 1 << 24  # received at a time: these are in memory as messages beside the rows so far


class Lease:
    """A connection in use.

    Args:
        settings: The settings of the connection.

    Attributes:
        connection: The connection.
        used: The time of the end of the last use.

    Raises:
        JMSError: The broker cannot be reached.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._usable = True
        self.connection: spi.Connection = connect(settings, self._on_lost)
        self.used = time.monotonic()

    def drop(self) -> None:
        """Close the connection after this use, because it failed, or may have released messages."""
        self._usable = False

    @property
    def is_usable(self) -> bool:
        """True if the connection may be used again."""
        return self._usable and time.monotonic() - self.used < _MAX_IDLE

    def _on_lost(self, error: JMSError) -> None:
        """Record that the connection broke, perhaps between two tasks."""
        del error
        self._usable = False


_idle: dict[tuple[int, ConnectionSettings], Lease] = {}


@contextmanager
def leased(settings: ConnectionSettings) -> Generator[Lease]:
    """Lend the connection that an earlier task used, or a new one. It is kept unless the task fails.

    Args:
        settings: The settings of the connection.

    Raises:
        JMSError: The broker cannot be reached.
    """
    key = (os.getpid(), settings)  # a forked process does not have the connections of its parent
    lease = _take(key) or Lease(settings)
    with ExitStack() as at_end, ExitStack() as on_failure:
        at_end.callback(_put_back, key, lease)
        on_failure.callback(lease.drop)
        yield lease
        on_failure.pop_all()


def close_connections() -> None:
    """Close the connections that no task uses."""
    for key in [key for key in _idle if key[0] == os.getpid()]:
        _close(_idle.pop(key))


def _take(key: tuple[int, ConnectionSettings]) -> Lease | None:
    lease = _idle.pop(key, None)
    if lease is not None and not lease.is_usable:
        _close(lease)
        return None
    return lease


def _put_back(key: tuple[int, ConnectionSettings], lease: Lease) -> None:
    lease.used = time.monotonic()
    if lease.is_usable and key not in _idle:
        _idle[key] = lease
    else:
        _close(lease)


def _close(lease: Lease) -> None:
    with suppress(JMSError):  # at the end of the process the provider may have closed it
        lease.connection.close()


atexit.register(close_connections)


class JmsPartition(InputPartition):
    """One consumer's share of an epoch.

    Args:
        gen: The generation of staged files.
        part: The epoch, and the number of the partition in it. With an attempt, its rows are read, and nothing else.
        quota: The maximum number of messages.
        queue: The name of the queue; empty for the only one of the stream.
        counted: True if so many messages were waiting when the epoch was planned.
        max_bytes: The maximum size of the messages.
    """

    def __init__(
        self,
        gen: str,
        part: EpochPartition,
        quota: int,
        *,
        queue: str = "",
        counted: bool = False,
        max_bytes: int = 1 << 28,
    ) -> None:
        super().__init__(part.number)
        self.queue = queue
        self.counted = counted
        self.gen = gen
        self.max_bytes = max_bytes
        self.part = part
        self.quota = quota


def plan_partitions(options: SourceOptions, plan: Offset, epoch: int) -> list[JmsPartition]:
    """Return the partitions of an epoch.

    Args:
        options: The options of the source.
        plan: The plan of the epoch.
        epoch: The number of the epoch.
    """
    size = options.maxBytesPerBatch // max(sum(share.parts for share in plan.plan), 1)
    shares = [(share, n) for share in plan.plan for n in range(share.parts)]
    again = [JmsPartition(str(plan.gen), EpochPartition(*part), 0) for part in plan.again]
    return again + [
        JmsPartition(
            str(plan.gen),
            EpochPartition(epoch, number),
            share.quota(n),
            queue=share.queue,
            counted=bool(share.counted),
            max_bytes=size,
        )
        for number, (share, n) in enumerate(shares)
    ]


class PartitionReader:
    """One attempt at one partition.

    Args:
        options: The options of the source.
        partition: The partition to read.
        clock: The clock for the time that the partition stays open.
        body: The columns that come out of the bodies; None without them.
    """

    def __init__(
        self,
        options: SourceOptions,
        partition: JmsPartition,
        clock: Clock = SYSTEM_CLOCK,
        *,
        body: BodyColumns | None = None,
    ) -> None:
        self._options = options
        self._clock = clock
        self._counted = partition.counted
        self._queue = partition.queue
        self._max_bytes = partition.max_bytes
        self._part = partition.part
        self._quota = partition.quota
        self._staging = Staging(options.staging(), partition.gen)
        self._is_repeated = bool(partition.part.attempt)
        if self._staging.at_least_once and not self._is_repeated:
            self._part = partition.part._replace(attempt=uuid.uuid4().hex)
        source = options.sources.get(partition.queue)
        origin = source.topic if isinstance(source, Subscription) else source
        self._columns = ColumnBuilder(options.columns, key_reader(options.dedupKey), body, origin)

    def read(self) -> Iterator[Any]:
        """Yield the partition's rows as Arrow batches; the same ones in every replay.

        Raises:
            StaleEpochError: The batch is committed already.
            StoreError: A staged file is damaged or missing, or this executor does not see the staging location.
            JMSError: The broker failed before messages were staged.
        """
        staged, foreign = (None, set[str]()) if self._is_repeated else self._stage_unless_done()
        yield from _without(staged or self._replay(), foreign)

    def stage(self) -> None:
        """Stage the partition, unless an earlier attempt did, so that an attempt that reads it finds its rows.

        Raises:
            StaleEpochError: The batch is committed already.
            StoreError: A staged file is damaged or missing.
            JMSError: The broker failed before messages were staged.
        """
        self._stage_unless_done()

    def _stage_unless_done(self) -> tuple[StagedPart | None, set[str]]:
        """Return the rows that this attempt staged, if it did, and the keys of messages that other partitions keep."""
        staged = None
        if not self._staging.is_published(self._part):
            self._staging.check_live(self._part)
            self._claim()
            if self._staging.is_lost(self._part):
                self._staging.publish(self._part, self._no_rows())
            else:
                with without_garbage_collection():
                    staged = self._receive_and_stage()
        # The attempt that staged the rows has them in memory; all others read them from the file.
        known = None if staged is None else {key for key in staged.keys if key is not None}
        return staged, resolve_duplicates(self._staging, self._part, known)

    def _replay(self) -> StagedPart:
        """Return the rows of an earlier attempt.

        Raises:
            StoreError: The file is damaged, or has other columns because the option was changed after that attempt.
        """
        staged = self._staged_before()
        names, wanted = staged.table.column_names, self._columns.schema
        if staged.table.schema != wanted:
            found = {field.name: field.type for field in staged.table.schema}
            missing = sorted(field.name for field in wanted if found.get(field.name) != field.type)
            if missing:
                raise StoreError(
                    f"Epoch {self._part.epoch} was staged with the columns {', '.join(names)}, and is processed again"
                    f" with others, or with other types: {', '.join(missing)} cannot be read, because the messages are"
                    " settled. Start the query with its earlier columns until this batch is committed, and change them"
                    " then."
                )
            return replace(staged, table=staged.table.select(wanted.names))
        return staged

    def _staged_before(self) -> StagedPart:
        """Return the rows of the file of this partition, or of the first of several attempts at it."""
        if self._is_repeated:
            try:
                return self._staging.content(self._part)
            except FileNotFoundError:
                if self._staging.is_lost(self._part):
                    return self._no_rows()
                raise self._staging.missing(self._part.file("arrow"), self._part.epoch) from None
        return self._staging.content(self._staging.attempts(self._part)[0] if self._part.attempt else self._part)

    def _no_rows(self) -> StagedPart:
        return self._columns.staged(*self._part[:2], set())

    def _claim(self) -> None:
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        if query:
            self._staging.claim(query)

    def _receive_and_stage(self) -> StagedPart | None:
        """Return the rows that this attempt staged; None if another attempt was first."""
        with leased(self._options.settings) as lease:
            # With exact credit, unreceived messages stay available for the other partitions. Without, the broker
            # prefetches up to the quota here, and requeues the rest when the connection closes.
            exact = lease.connection.capabilities.exact_credit
            consumer = lease.connection.consumer(
                self._source(),
                selector=self._options.selector,
                order=spi.Order.PREFIX,
                window=0 if exact else self._quota,
                **spi.together(lease.connection, self._quota),
            )
            if not exact:
                lease.drop()
            try:
                return self._stage_and_settle(lease, consumer, self._receive(lease, consumer))
            finally:
                self._close(lease, consumer)

    def _close(self, lease: Lease, consumer: spi.Consumer) -> None:
        try:
            consumer.close()
        except JMSError:  # the connection is lost, and with it the consumer
            lease.drop()

    def _source(self) -> Destination | Subscription:
        sources = self._options.sources
        if self._queue not in sources:
            raise InvalidOptionError(
                f"Epoch {self._part.epoch} was planned for {self._queue or 'a single destination'}, which the options"
                f" do not name: {self._options.described}. Start the query with its earlier options until this batch is"
                " committed, and change them then."
            )
        return sources[self._queue]

    def _patience(self, first: float | None) -> float:
        """Return how long to wait for the next message, in seconds.

        A slow inflow must not keep the first message waiting for the last one. Once the first message has waited for
        ``maxBatchLatency``, only messages that are there already are received. If the driver has counted the messages
        of the quota, their flow is given a moment, because a broker on a network sends with pauses.

        Args:
            first: The time when the first message was received; None before.
        """
        idle = self._options.receiveIdleTimeout
        if first is None:
            return idle
        left = first + self._options.maxBatchLatency - self._clock.monotonic()
        grace = _GRACE * self._options.maxBatchLatency if self._counted else 0.0
        return min(idle, max(left, grace))

    def _stage_and_settle(
        self, lease: Lease, consumer: spi.Consumer, received: Sequence[spi.Delivery]
    ) -> StagedPart | None:
        staged = self._stage(consumer, received)
        if staged is None:
            lease.drop()
        else:
            self._settle(lease, received)
            self._log(staged)
        return staged

    def _receive(self, lease: Lease, consumer: spi.Consumer) -> list[spi.Delivery]:
        """Receive until the quota is reached, no message comes for a time, or the partition was open long enough."""
        received: list[spi.Delivery] = []
        begin, first = self._clock.monotonic(), None
        while self._clock.monotonic() - begin < self._options.batchTimeout:
            limit = self._next_limit(len(received))
            if not limit:
                break
            chunk = consumer.receive(limit, self._patience(first))
            if not chunk:
                break
            first = self._clock.monotonic() if first is None else first
            received += chunk
            self._columns.extend(chunk)  # while the broker sends the next ones
        late = consumer.drain()
        room = self._quota - len(received)
        self._columns.extend(late[:room])
        received += late[:room]
        if surplus := late[room:]:
            consumer.release(surplus)
            lease.drop()
        return received

    def _next_limit(self, received: int) -> int:
        """Return how many messages to ask for; 0 if the quota or the size is reached."""
        left, size = self._quota - received, self._columns.size
        if not received:
            return min(left, _FIRST)
        room = min(self._max_bytes - size, _CHUNK_BYTES)
        return 0 if room <= 0 else min(left, 1 + room * received // max(size, 1))

    def _stage(self, consumer: spi.Consumer, received: Sequence[spi.Delivery]) -> StagedPart | None:
        """Publish the received messages. If another attempt was first, release them and return None."""
        consumer.hand_over(received)  # from now on another attempt may read the rows
        try:
            # Only now: a message that is redelivered to this attempt was staged before, so its key is in doubt by now.
            staged = self._columns.staged(*self._part[:2], keys_in_doubt(self._staging))
            self._staging.check_live(self._part)
            published = self._staging.publish(self._part, staged)
            if published:
                self._check_still_read()
        except Exception:  # any other exception ends the connection, in `leased`
            consumer.release(received)
            raise
        if published:
            return staged
        consumer.release(received)
        return None

    def _check_still_read(self) -> None:
        """Raise an error if Spark may never read the published rows.

        With ``guarantee=at-least-once`` this happens if the epoch is committed: the driver may have listed its files
        before this file was published.

        Otherwise it happens if the epoch was removed. Then the rows are withdrawn. If the epoch is committed but not
        removed, another attempt may have read these rows, and Spark has committed them. Spark cannot have committed
        other rows of the partition, because those would have been published first.
        """
        if self._staging.at_least_once:
            self._staging.check_live(self._part)
        elif not self._staging.has_epoch(self._part.epoch):
            self._staging.withdraw(self._part)
            raise StaleEpochError(
                f"Epoch {self._part.epoch} was removed while partition {self._part.number} was staged."
            )

    def _settle(self, lease: Lease, received: Sequence[spi.Delivery]) -> None:
        """Settle all messages, including duplicates. If that fails, their redelivery is detected."""
        try:
            unit = lease.connection.unit(atomic=False)  # the unit sends nothing
            unit.take(received)  # fails if the broker took the consumer for dead
            unit.commit(confirmed=True)
        except JMSError as error:
            lease.drop()
            logger.warning(
                "Epoch %d, partition %d: the settlement of %d messages is in doubt. Redelivered ones %s: %s",
                *(*self._part[:2], len(received)),
                "are rows again" if self._staging.at_least_once else "are recognised by their keys",
                error,
            )
            return  # not confirmed: the messages remain in doubt
        self._staging.confirm(self._part)

    def _log(self, staged: StagedPart) -> None:
        """Log what a user must know about the rows: Spark shows it in the log of its workers."""
        counts = staged.counts
        logger.info(
            "Epoch %d, partition %d: %d messages received, %d rows, %d of them redelivered, %d duplicates dropped",
            *(*self._part[:2], counts.received, counts.rows, counts.redelivered, counts.duplicates),
        )
        if counts.same_key:
            logger.warning(
                "Epoch %d, partition %d: %d messages were dropped, because each has the same %s as an earlier message"
                " of the batch. If they are different messages, choose another dedupKey.",
                *(*self._part[:2], counts.same_key, self._options.dedupKey),
            )
        if counts.unmarked:
            logger.warning(
                "Epoch %d, partition %d: %d messages were dropped as redelivered, because each has the same %s as a"
                " staged message in doubt, but the broker does not mark them. If they are different messages, choose"
                " another dedupKey.",
                *(*self._part[:2], counts.unmarked, self._options.dedupKey),
            )
        if counts.without_key and self._options.dedupKey != "none":
            logger.warning(
                "Epoch %d, partition %d: %d messages have no %s. They are read at least once: if their settlement"
                " fails, a redelivery is not recognised. The option dedupKey names another key.",
                *(*self._part[:2], counts.without_key, self._options.dedupKey),
            )


def _without(staged: StagedPart, foreign: set[str]) -> Iterator[Any]:
    table = staged.table
    if foreign:
        table = table.filter(pa.array([key not in foreign for key in staged.keys], pa.bool_()))
    for batch in table.to_batches():
        if batch.num_rows:
            yield batch


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Pause the collection of cycles: it would traverse all messages again and again, a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def resolve_duplicates(staging: Staging, part: EpochPartition, keys: set[str] | None = None) -> set[str]:
    """Return the keys of messages of a published partition that other partitions keep. Decide it if necessary.

    Args:
        staging: The staged files.
        part: The partition.
        keys: The keys of its messages; None reads them from its file.

    Returns:
        The keys; none with ``guarantee=at-least-once``.
    """
    if staging.at_least_once:  # the other partition may be an attempt with rows that are never read
        return set()
    decision = staging.decision(part)
    return staging.record_decision(part, _find_foreign(staging, part, keys)) if decision is None else decision


def count_kept_by_others(staging: Staging, epoch: int) -> int:
    """Return how many messages the partitions of an epoch received that other partitions keep.

    Args:
        staging: The staged files.
        epoch: The number of the epoch.
    """
    published = staging.published(epoch)
    if staging.at_least_once or all(published.values()):  # the messages of a confirmed partition are settled
        return 0
    return sum(len(staging.decision(part) or ()) for part in published)


def _find_foreign(staging: Staging, part: EpochPartition, keys: set[str] | None) -> set[str]:
    published = staging.published()
    # The messages of a confirmed partition are settled; two have the same message only if one is unconfirmed.
    others = [other for other, sure in published.items() if other != part and not (sure and published.get(part))]
    if not others:
        return set()
    mine = staging.keys(part) if keys is None else keys
    foreign: set[str] = set()
    for other in others:
        common = mine & _keys_of(staging, other)
        if common and other < part:
            foreign |= common
        elif kept := common and common - resolve_duplicates(staging, other):
            staging.flush_decision(other)
            foreign |= kept
    return foreign


def _keys_of(staging: Staging, part: EpochPartition) -> set[str]:
    """Return the keys of a partition. The result is empty if its epoch was removed: then the epoch is decided."""
    try:
        return staging.keys(part)
    except FileNotFoundError:
        return set()


def keys_in_doubt(staging: Staging) -> set[str]:
    """Return the keys of staged messages that may be redelivered to a query.

    Args:
        staging: The staged files of the query. Other queries of its queue count if they have another ``stagingName``;
            without a name, a query does not share its queue.

    Raises:
        StoreError: A file is damaged.
    """
    return staging.keys_in_doubt().union(*(other.keys_in_doubt() for other in _others(staging)))


def orphans(location: Store | Path, origin: Origin | None = None) -> Iterator[str]:
    """Yield the addresses of the published files that may be unprocessed.

    Args:
        location: The staging location.
        origin: The source: only its generations are searched. None searches all.
    """
    for staging in generations(location):
        if origin is None or staging.may_concern(origin):
            low = staging.low
            unsure = staging.unsure(low)
            for part in staging.published():
                if (part.epoch > low or part in unsure) and staging.counts(part).rows:
                    yield staging.store.address(part.file("arrow"))


def _others(staging: Staging) -> Iterator[Staging]:
    mine = staging.origin()
    if mine is None or not mine.name:
        return
    for other in generations(staging.location):
        theirs = other.origin()
        if theirs is not None and theirs.identity == mine.identity and theirs.name not in ("", mine.name):
            yield other
