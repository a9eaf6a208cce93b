"""The choices of the state machine and their weights."""

from itertools import product

from hypothesis import strategies as st

from jmsjca import Queue, Topic
from jmsjca.config import DestinationSettings
from jmsjca.destinations import Subscription, TemporaryQueue
from jmsjca.spi import Order
from tests.model.operations import SELECTORS, Letter, Source, Way, key

QUEUES = [Queue("a"), Queue("b")]
TOPICS = [Topic("t"), Topic("u")]
NAMED = [
    *(Subscription(topic, "durable", "client") for topic in TOPICS),
    *(Subscription(TOPICS[0], "common", shared=shared) for shared in (True, True, False)),
    Subscription(TOPICS[0], "brief", shared=True, volatile=True),
]
TEMPORARY = TemporaryQueue("any")  # one of those that were made
DEAD, EXPIRED = Queue("dead"), Queue("expired")
ALL: list[Source] = [*QUEUES, *NAMED, DEAD, EXPIRED]
SEEN = list({key(source): source for source in ALL}.values())

NOTHING_SPECIAL = [None] * 4
LETTERS = [
    Letter("", *fields)
    for fields in product(
        [4, 4, 4, 0, 9],  # priority
        [0, 0, 0, 1000],  # delay
        [0, 0, 0, 500, 2000],  # time to live
        [*NOTHING_SPECIAL, "red", "red", "blue"],
        [*NOTHING_SPECIAL, "g", "h"],
        [*NOTHING_SPECIAL, "x", "y"],
    )
]
SETTINGS = [
    DestinationSettings(*fields) for fields in product([3, 2, 1], [None, DEAD], [None, EXPIRED], [False, False, True])
]
WAYS = [Way(*fields) for fields in product(Order, [None, None, *SELECTORS], [False, False, True])]

numbers = st.integers(0, 11)
subsets = st.integers(1, 15)
letters = st.integers(0, len(LETTERS) - 1).map(lambda n: LETTERS[n])
destinations = st.sampled_from([*QUEUES, *QUEUES, *TOPICS, TEMPORARY])
sources = st.sampled_from([*QUEUES, *QUEUES, *TOPICS, *NAMED, TEMPORARY])
boxes = st.sampled_from([*QUEUES, *NAMED, TEMPORARY])
addresses = st.sampled_from([*QUEUES, *TOPICS])
ways = st.sampled_from(WAYS)
settings = st.sampled_from(SETTINGS)
