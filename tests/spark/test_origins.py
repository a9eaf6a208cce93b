"""The source of a checkpoint: other texts of the same source are equal."""

import json
from pathlib import Path

import pytest

from jmsjca.errors import InvalidOptionError
from jmsjca.providers.amqp import provider as provider_module
from jmsjca.providers.stomp import provider
from jmsjca.spark.options import SourceOptions
from jmsjca.spark.part_file import Counts, StagedPart
from jmsjca.spark.partition import keys_in_doubt
from jmsjca.spark.schema import pa
from jmsjca.spark.staging import DEFAULT_PORTS, EpochPartition, Origin, Staging
from jmsjca.spark.store import Store, create_sealed


def origin(url: str, **changes: str) -> Origin:
    given = {"url": url} | (changes or {"destination": "orders"})
    return Origin(SourceOptions.parse(given).described)


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("amqp://Broker:5672", "amqp://broker"),
        ("amqps://broker", "amqps://broker:5671/"),
        ("stomp://broker", "stomp://broker:61613"),
        ("stomp+ssl://broker", "stomp+ssl://broker:61614"),
        ("amqp://b1,b2:1", "amqp://b2:1,B1:5672"),
        ("amqp://[::1]", "amqp://[::1]:5672"),
        ("amqp://me:secret@broker", "amqp://broker?idle_timeout=5"),
    ],
)
def test_other_texts_of_one_broker(url: str, same: str) -> None:
    assert origin(url) == origin(same)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("amqp://broker", "amqps://broker"),
        ("amqp://broker", "amqp://broker:5673"),
        ("amqp://b1,b2", "amqp://b1"),
        ("embedded:///data/Broker.db", "embedded:///data/broker.db"),
        ("acme://broker", "acme://broker:5672"),  # a provider of others
    ],
)
def test_other_brokers(url: str, other: str) -> None:
    assert origin(url) != origin(other)


def test_the_order_of_queues_is_no_difference() -> None:
    assert origin("embedded:///b.db", destinations="b,a") == origin("embedded:///b.db", destinations="a,b")
    one = origin("amqp://b", destinations="orders, a at b, bills")
    assert one == origin("amqp://b", destinations="bills,orders,a at b")
    assert one != origin("amqp://b", destinations="orders,a at b")
    assert one != origin("amqp://b", destinations="Orders,a at b,bills")
    assert origin("amqp://b", destination="a, b") != origin("amqp://b", destination="b, a")


def test_a_name_is_a_difference() -> None:
    assert Origin("queue:orders at amqp://b", "one") != Origin("queue:orders at amqp://b", "two")


def test_the_default_ports_are_those_of_the_providers() -> None:
    assert DEFAULT_PORTS == provider_module._DEFAULT_PORTS | provider._PORTS


def test_queries_of_one_queue_know_each_other_by_other_texts(location: Store) -> None:
    mine, theirs = Staging(location, "a"), Staging(location, "b")
    mine.begin(Origin("queue:orders at amqp://Broker", "one"))
    theirs.begin(Origin("queue:orders at amqp://broker:5672/", "two"))
    theirs.create_epoch(1)
    theirs.publish(EpochPartition(1, 0), StagedPart(pa.table({"text": ["t"]}), ["key"], Counts(1, 1)))
    assert keys_in_doubt(mine) == {"key"}


def test_a_checkpoint_has_the_text_of_an_earlier_release(tmp_path: Path) -> None:
    staging = Staging(tmp_path, "g")
    staging.store.add_folder()
    source = "queue:orders, queue:bills at amqp://Two:5672,one/"
    create_sealed(staging.store, "SOURCE", json.dumps({"source": source, "name": ""}))
    staging.begin(origin("amqp://Two:5672,one/", destinations="orders,bills"))
    staging.begin(origin("amqp://one,two", destinations="bills,orders"))
    assert staging.origin() == origin("amqp://one,two", destinations="bills,orders")
    with pytest.raises(InvalidOptionError, match="belongs to queue:orders, queue:bills at amqp://Two:5672,one/, and"):
        staging.begin(origin("amqp://one", destinations="bills,orders"))
