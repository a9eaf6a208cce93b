"""Writes the tables of docs/explanation/spark-failures.md: ``python -m tests.support.spark_failures``.

A table has what fails, and the tests with a real Spark that show what happens then. Which brokers each test has, and
which of them in every run, is what pytest collects.
"""

import re
import subprocess
import sys
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from brokers import PAIRS

__all__ = ["FAILURES", "PAGE", "PROPERTIES", "Shown", "cases_of", "page", "visited"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "spark-failures.md"
CONTROLS = ROOT / "tests" / "torture" / "spark_controls.toml"
BROKERS = ("embedded", *PAIRS, "artemis", "rabbitmq4")  # as the cases name them
CRASHES, OTHERS = "brokers/test_spark_crashes.py", "brokers/test_spark_failures.py"
WORKER = f"{CRASHES}::test_a_worker_that_dies_loses_and_doubles_nothing"
DRIVER = f"{CRASHES}::test_a_driver_that_dies_with_all_workers_loses_and_doubles_nothing"
PLANNER = f"{CRASHES}::test_a_planner_that_dies_loses_and_doubles_nothing"
COMMIT = f"{CRASHES}::test_a_commit_that_dies_writes_each_row_once_with_exactly_once"
EXECUTOR = f"{CRASHES}::test_an_executor_that_dies_loses_and_doubles_nothing"
POWER = f"{CRASHES}::test_a_machine_that_loses_power_loses_and_doubles_nothing"
SHARED = f"{CRASHES}::test_two_queries_share_a_queue_although_a_worker_dies"
CONSUMERS = f"{OTHERS}::test_a_batch_has_a_consumer_for_each_partition_and_none_stays"
LATE = f"{OTHERS}::test_a_late_attempt_at_an_epoch_that_is_over_takes_nothing"
REPLAYS = "brokers/test_spark_replays.py"
STREAM, TASKS = "spark/test_stream.py", "spark/test_stream_tasks.py"
FAILS_ONCE = f"{STREAM}::test_a_sink_that_fails_once_gets_the_same_rows_again"
SINK_FAILS = f"{REPLAYS}::test_a_sink_that_fails_once_gets_the_same_rows_in_the_same_partitions"


NAMES = {
    WORKER: "a worker is killed",
    DRIVER: "everything is killed",
    PLANNER: "the planner is killed",
    COMMIT: "the commit of the sink is killed",
    EXECUTOR: "an executor is killed",
    SHARED: "a worker of two queries is killed",
}


class Shown(NamedTuple):
    """A test that shows something.

    Args:
        test: The test, below ``tests``.
        step: The step of its crash; empty for all of its cases.
    """

    test: str
    step: str = ""


class Row(NamedTuple):
    """A failure, its result, and the tests."""

    failure: str
    result: str
    shown: list[Shown]


def task(failure: str, result: str, step: str, *more: Shown) -> Row:
    """Return the row of a step of a task, at which a worker dies, or everything."""
    return Row(failure, result, [Shown(WORKER, step), Shown(DRIVER, step), *more])


def driver(failure: str, result: str, step: str) -> Row:
    """Return the row of a step of the driver, at which everything dies, or its process that plans epochs."""
    return Row(failure, result, [Shown(DRIVER, step), Shown(PLANNER, step)])


def row(failure: str, result: str, *tests: str | Shown) -> Row:
    """Return a row with tests that have no steps."""
    return Row(failure, result, [Shown(test) if isinstance(test, str) else test for test in tests])


FAILURES = [
    task("a task, before it receives", "the next attempt receives", "receiving"),
    task("a task that has received", "the broker redelivers the messages", "received", Shown(EXECUTOR, "received")),
    task("a task, before its file has its name", "the same; the file is removed later", "linking"),
    task(
        "a task that has staged, and not settled",
        "the next attempt uses the file; redelivered messages are settled and dropped",
        "published",
        Shown(EXECUTOR, "published"),
        Shown(SHARED, "published"),
    ),
    task("a task that has settled, and has not recorded that", "the next attempt uses the file", "settled"),
    task("a task before its decision about duplicates", "the next attempt decides", "confirmed"),
    task("a task that has decided", "the next attempt uses the file", "decided"),
    task("a task that hands its rows over", "the next attempt hands over the same rows", "yielded"),
    row(
        "a task, with `guarantee=at-least-once`",
        "no message is lost; some may be two rows",
        f"{CRASHES}::test_a_worker_that_dies_loses_nothing_with_at_least_once",
    ),
    row("the sink", "the batch is repeated with the same rows", FAILS_ONCE, SINK_FAILS),
    row(
        "the driver, before Spark notes that the sink is done",
        "the batch is repeated with the same rows; the sink recognises its number",
        f"{CRASHES}::test_a_driver_that_dies_before_spark_notes_that_the_sink_is_done",
        "brokers/test_spark.py::test_a_stream_takes_each_message_once",
    ),
    row(
        "the commit of a sink with `guarantee=exactly-once`, before the broker has it",
        "the broker rolls it back; the next run writes the batch",
        Shown(COMMIT, "putting the token"),
        Shown(COMMIT, "token put"),
        Shown(COMMIT, "committing"),
    ),
    row(
        "the commit of a sink with `guarantee=exactly-once`, after the broker has it",
        "the next run finds the token, and writes nothing again",
        Shown(COMMIT, "committed"),
    ),
    driver("the driver that has made an epoch", "the next run uses it", "epoch created"),
    driver("the driver, before its clean-up", "the next clean-up removes the files", "offset logged"),
    driver("the driver, after its clean-up", "nothing is left to do", "cleaned up"),
    row(
        "a task or the driver, with staging in a bucket",
        "the same as with a folder",
        f"{CRASHES}::test_a_worker_that_dies_with_a_bucket_loses_and_doubles_nothing",
        f"{CRASHES}::test_a_driver_that_dies_with_all_workers_and_a_bucket_loses_and_doubles_nothing",
    ),
    row(
        "the driver that stages the next batch early",
        "it is the next batch of the next run",
        f"{CRASHES}::test_a_driver_that_dies_in_a_prefetch_loses_and_doubles_nothing",
    ),
    row("the power of the machine", "the flushed files are enough", POWER),
    row(
        "a task that hangs; its second attempt stages first",
        "it releases its messages, and returns the rows of the second attempt",
        f"{OTHERS}::test_of_two_attempts_at_a_partition_the_second_releases_its_messages",
        f"{CRASHES}::test_speculation_leaves_nothing_behind",
    ),
    row("a task that wakes up when its epoch is over", "it takes nothing", LATE),
    row(
        "a consumer that the broker takes for dead",
        "two partitions have its messages; exactly one keeps them",
        f"{OTHERS}::test_one_of_two_partitions_keeps_a_message_that_both_have_staged",
    ),
    row(
        "the broker, while a task reads",
        "the query fails; the next run reads everything",
        f"{OTHERS}::test_a_broker_that_dies_while_a_task_reads_fails_the_query_and_loses_nothing",
    ),
    row(
        "the broker, while the query waits",
        "the query goes on when it is back",
        f"{OTHERS}::test_a_query_goes_on_when_an_idle_broker_is_back",
    ),
    row(
        "the broker, with trigger `AvailableNow`",
        "the query fails; it never succeeds with messages left",
        f"{OTHERS}::test_available_now_fails_if_it_loses_the_broker",
    ),
    row(
        "the disk: it is full",
        "the query fails, and nothing is settled",
        f"{OTHERS}::test_a_full_disk_fails_the_query_and_takes_nothing",
    ),
    row(
        "the staging folder: it is lost",
        "an error names the folder",
        f"{OTHERS}::test_a_lost_epoch_is_named",
        f"{STREAM}::test_a_lost_epoch_is_named_and_its_loss_can_be_accepted",
    ),
    row(
        "a staged file: it is altered",
        "an error names the file",
        f"{TASKS}::test_altered_rows_end_the_query_and_do_not_change_its_result",
        f"{REPLAYS}::test_a_staged_file_that_was_altered_is_named",
    ),
    row(
        "the checkpoint: it is lost",
        "an error names the messages",
        f"{OTHERS}::test_messages_of_a_lost_checkpoint_are_named",
        f"{STREAM}::test_staged_messages_of_a_lost_checkpoint_are_not_passed_over",
    ),
    row(
        "the checkpoint: two queries use it",
        "the second one is refused",
        f"{TASKS}::test_a_copied_checkpoint_may_not_go_on_with_the_same_files",
        f"{REPLAYS}::test_a_copied_checkpoint_with_the_same_staging_is_refused",
    ),
    row("one of two queries of a queue", "each message is a row of one of them", SHARED),
    row(
        "a machine of a cluster, with two queries of a queue",
        "another machine does the rest; each message is a row of one of them",
        f"{CRASHES}::test_a_machine_that_dies_loses_and_doubles_nothing_of_two_queries_of_a_queue",
    ),
    row(
        "a message: it cannot be decoded",
        "it is a row with an error",
        f"{STREAM}::test_a_message_that_cannot_be_decoded_hides_nothing",
        "brokers/test_spark.py::test_a_stream_takes_whatever_other_clients_send",
        f"{REPLAYS}::test_a_stomp_message_that_cannot_be_decoded_is_a_row_with_an_error",
    ),
]
PROPERTIES = [
    row(
        "a reader that is made or copied",
        "opens no connection",
        f"{STREAM}::test_readers_open_nothing_until_they_must",
        "spark/test_reader.py::test_readers_and_writers_open_no_connection_until_they_must",
    ),
    row("a batch", "has one consumer for each partition; all are closed at its end", CONSUMERS),
    row(
        "a batch that Spark has not recorded in its log",
        "is repeated with equal rows",
        f"{STREAM}::test_a_repeated_batch_has_the_same_rows_and_new_messages_wait",
        f"{REPLAYS}::test_a_batch_without_its_note_in_sparks_log_has_the_same_rows_again",
    ),
    row("a batch with two actions in `foreachBatch`", "has equal rows for both", FAILS_ONCE, SINK_FAILS),
    row(
        "a stream that a query uses two times",
        "has each row two times",
        f"{TASKS}::test_a_table_used_twice_in_one_query_gives_each_row_twice",
        f"{REPLAYS}::test_a_stream_that_a_query_uses_twice_has_each_row_twice",
    ),
    row(
        "`AvailableNow`, while messages keep coming",
        "ends",
        f"{STREAM}::test_available_now_ends_although_messages_keep_coming",
        f"{REPLAYS}::test_available_now_ends_while_messages_keep_coming",
    ),
    row(
        "another number of partitions in the next run",
        "changes no batch that is repeated",
        f"{STREAM}::test_a_repeated_batch_keeps_its_partitions_whatever_the_options_say",
        SINK_FAILS,
    ),
    row(
        "messages of three killed workers",
        "are counted by the broker, and not moved away",
        f"{CRASHES}::test_messages_of_three_killed_workers_are_counted_and_not_moved_away",
    ),
    row(
        "a query that is stopped",
        "leaves no consumer, and goes on when it is started again",
        f"{REPLAYS}::test_a_query_that_is_stopped_leaves_no_consumer_and_goes_on",
    ),
    row(
        "a query of a client of Spark Connect",
        "has each message once; its exactly-once sink writes it once",
        "spark/test_connect.py::test_a_client_reads_and_writes_through_a_server",
    ),
    row("redelivered messages that are dropped", "are settled, so that the queue is empty", Shown(WORKER, "published")),
]


def page() -> str:
    """Return the page with its tables."""
    text = PAGE.read_text()
    tables = {"failures": table("fails", FAILURES), "properties": table("case", PROPERTIES), "controls": controls()}
    for name, lines in tables.items():
        text = re.sub(rf"(<!-- {name}.*? -->\n).*?(<!-- end -->)", rf"\1\n{lines}\n\2", text, flags=re.DOTALL)
    return text


def table(title: str, rows: list[Row]) -> str:
    """Return a table with a line for each row, and in it a line for each test."""
    lines = [[title, "then", "shown by", "in every run", "in `make torture`"], ["---"] * 5]
    for each in rows:
        found = [brokers_of(shown) for shown in each.shown]
        tests = [named(shown) for shown in each.shown]
        columns = [tests, *([", ".join(some) or "-" for some in column] for column in zip(*found, strict=True))]
        lines.append([each.failure, each.result, *("<br>".join(column) for column in columns)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def named(shown: Shown) -> str:
    """Return the name of a test, with the step of its crash."""
    name = NAMES.get(shown.test) or f"`{shown.test.partition('::')[2]}`"
    return f"{name}: *{shown.step}*" if shown.step else name


def controls() -> str:
    """Return the table of the faults, each with the test that must fail."""
    found = tomllib.loads(CONTROLS.read_text())["control"]
    lines = [
        ["fault", "the test that fails"],
        ["---"] * 2,
        *([each["fault"], checked(each["check"])] for each in found),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def checked(check: str) -> str:
    """Return the name of a test of one case."""
    test, _, values = check.removeprefix("tests/").removesuffix("]").partition("[")
    return named(Shown(test, values.partition("-")[2]))


def brokers_of(shown: Shown) -> tuple[list[str], list[str]]:
    """Return the brokers of a test in every run, and the others."""
    every, others = list[str](), list[str]()
    for case, is_in_every_run in cases_of(shown).items():
        (every if is_in_every_run else others).append(case)
    return every, others


def cases_of(shown: Shown) -> dict[str, bool]:
    """Return the brokers of a test, and whether each is in every run."""
    in_every_run, found = collected("not torture"), dict[str, bool]()
    for case in collected(""):
        test, _, values = case.removesuffix("]").partition("[")
        if test == f"tests/{shown.test}" and values.endswith(shown.step):
            broker = next((name for name in BROKERS if values.startswith(name)), "embedded")
            found[broker] = found.get(broker, False) or case in in_every_run
    return found


def visited() -> tuple[int, int]:
    """Return how many cases of crashes and failures are in every run, and how many there are."""
    files = tuple(f"tests/{file}::" for file in (CRASHES, OTHERS, REPLAYS))
    return tuple(sum(case.startswith(files) for case in collected(marks)) for marks in ("not torture", ""))


@cache
def collected(marks: str) -> list[str]:
    """Return the cases of all tests of the tables that have some marks, as pytest names them."""
    rows = chain(FAILURES, PROPERTIES)
    files = sorted({f"tests/{shown.test.partition('::')[0]}" for each in rows for shown in each.shown})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", marks, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


if __name__ == "__main__":
    PAGE.write_text(page())
