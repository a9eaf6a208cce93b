"""The redelivery language, and the action in force for each redelivery."""

import contextlib
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca import Queue, Topic
from jmsjca.errors import ConfigurationError, InvalidRedeliveryHandlingError
from jmsjca.redelivery import DEFAULT_REDELIVERY_HANDLING, Delay, Delete, Deliver, Move, RedeliveryPolicy
from tests.unit.config.conformance_cases import rows_of
from tests.unit.redelivery.strategies import ladders, printed

LONGEST_DELAY, HIGHEST_INDEX = 2147483647, 50_000_000


def actions(text, destination="Queue1", destination_type="queue"):
    return dict(RedeliveryPolicy.parse(text, destination, destination_type).rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" ", {}),
        ("\t\r\n", {}),
        (";", {}),
        (" ;; ; ", {}),
        ("1:0", {1: Delay(0)}),
        ("1:10;", {1: Delay(10)}),
        ("1:10;2:20", {1: Delay(10), 2: Delay(20)}),
        ("1:10;2:20;;", {1: Delay(10), 2: Delay(20)}),
        ("1:10;2:20; ; \t", {1: Delay(10), 2: Delay(20)}),
        ("1:10 \n ;\t\v\f\r 2:20", {1: Delay(10), 2: Delay(20)}),
        ("1:10; 2: 20 ; 3:500", {1: Delay(10), 2: Delay(20), 3: Delay(500)}),
        ("1:\t5", {1: Delay(5)}),
        ("007:0010", {7: Delay(10)}),
        ("1:2s; 3: 1s; 5:1500", {1: Delay(2000), 3: Delay(1000), 5: Delay(1500)}),
        ("1:5000;2:5001", {1: Delay(5000), 2: Delay(5001)}),
        (f"{HIGHEST_INDEX}:{LONGEST_DELAY}", {HIGHEST_INDEX: Delay(LONGEST_DELAY)}),
        (f"{'0' * 5000}1:{'0' * 4000}2", {1: Delay(2)}),
        ("1:delete", {1: Delete()}),
        ("1:10; 30: delete;", {1: Delay(10), 30: Delete()}),
        ("30:move(queue:qname)", {30: Move("queue", "qname")}),
        ("30:move(topic:tname)", {30: Move("topic", "tname")}),
        ("30:move(same:dname)", {30: Move("queue", "dname")}),
        ("1: move(queue : a)", {1: Move("queue", "a")}),
        ("1:move(queue:  a )", {1: Move("queue", " a ")}),
        ("1:move(queue: )", {1: Move("queue", " ")}),
        ("1:move(queue:a:b)", {1: Move("queue", "a:b")}),
        ("1:move(queue:a))", {1: Move("queue", "a)")}),
        ("1:move(queue:dlq($-$))", {1: Move("queue", "dlq(Queue1-Queue1)")}),
        ("50:move(queue:dlq$oops)", {50: Move("queue", "dlqQueue1oops")}),
    ],
)
def test_valid(text, expected):
    assert actions(text) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("1;", 0), (":1;", 0), ("x;", 0), ("1:1052:20;", 0), ("1::10;20:49;", 0), ("1:10;52:", 1), ("1:10;:20", 1)],
        *[("1:2;30:move(queue)", 1), ("1:2;30:move(queue:)", 1), ("1:2;30:move(same:)", 1), ("1:move()", 0)],
        *[("0:10", 0), ("2:10;1:20", 1), ("1:10;1:20", 1), ("1:delete;2:10", 1), ("1:move(queue:a);2:10", 1)],
        *[(f"{HIGHEST_INDEX + 1}:10", 0), (f"1:{LONGEST_DELAY + 1}", 0), ("99999999999:10", 0), ("1:99999999999", 0)],
        *[(" 1:10", 0), ("1:10 ", 0), ("1:10; 2:20 ", 1), ("1:  10", 0), ("1 :10", 0), ("1:10;;2:20", 1), (";1:10", 0)],
        *[
            ("1:10; ;2:20", 1),
            (" ;1:10", 0),
            ("1:1\n", 0),
            ("\u00a01:10", 0),
            ("1:10;\u00a02:5", 1),
            ("1:10;\u00a0", 1),
        ],
        *[("1:Delete", 0), ("1:Move(queue:a)", 0), ("1:move(Queue:a)", 0), ("1:-5", 0), ("1:+5", 0), ("-1:5", 0)],
        *[("1:10,2:20", 0), ("1:move (queue:a)", 0), ("1:move( queue:a)", 0), ("1:move(queue:a;b)", 0)],
        *[
            ("1:move(queue:a) ", 0),
            ("1:move(queue:a)x", 0),
            ("1:deleted", 0),
            ("1:delete x", 0),
            ("1:move(queues:a)", 0),
        ],
        *[("1:1 s", 0), ("1:s", 0), ("1:1S", 0), ("1:1ms", 0), (f"1:{LONGEST_DELAY // 1000 + 1}s", 0)],
        *[("1:1.5", 0), ("1:1_0", 0), ("1_0:1", 0), ("\u0661:5", 0), ("1:\u0665", 0), ("1:\u00b2", 0), ("1:1e3", 0)],
        *[("1:move(queue:a\nb)", 0), ("1:move(queue:a\u2028b)", 0), ("1:move(queue:a\x85b)", 0), ("1:\u20035", 0)],
    ],
)
def test_invalid(text, number):
    with pytest.raises(InvalidRedeliveryHandlingError) as caught:
        RedeliveryPolicy.parse(text)
    assert f"in element {number}, " in str(caught.value)


def test_what_is_wrong_is_told_with_the_text_the_element_and_the_remedy():
    with pytest.raises(
        ConfigurationError, match=r"^The redelivery handling '1:5; 2:x' is wrong in element 1, '2:x': it"
    ):
        RedeliveryPolicy.parse("1:5; 2:x")
    with pytest.raises(ValueError, match="its delay must be from 0 to 2147483647, but it is 3000000000"):
        RedeliveryPolicy.parse("1:3000000000")
    with pytest.raises(ValueError, match="its index must be from 1 to 50000000, but it is 00"):
        RedeliveryPolicy.parse("00:1")
    with pytest.raises(ValueError, match="its index must be greater than 7"):
        RedeliveryPolicy.parse("7:1;7:2")
    with pytest.raises(ValueError, match="must be the last one"):
        RedeliveryPolicy.parse("7:delete;8:2")


@pytest.mark.parametrize("text", ["x" * 9_999, "\x1b[2J", "1:move(queue:" + "a" * 20_000 + ")", "9" * 9_000 + ":1"])
def test_what_is_told_is_short_and_on_one_line(text):
    with pytest.raises(InvalidRedeliveryHandlingError) as caught:
        RedeliveryPolicy.parse(text)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


def test_text_has_a_bound():
    most = "1:move(queue:" + "a" * (10_000 - 14) + ")"
    assert len(most) == 10_000
    RedeliveryPolicy.parse(most)
    with pytest.raises(InvalidRedeliveryHandlingError, match="10001 characters; shorten it to 10000"):
        RedeliveryPolicy.parse(most + ";")


# The name of the source may hold what means something in a template of regular expressions.
@pytest.mark.parametrize("name", ["a$b", "$", "$1", r"\1", r"\g<0>", "\\", "${x}", "%s", "{0}", "a.*", "&"])
def test_the_name_of_the_source_is_put_in_as_it_is(name):
    assert actions("1:move(queue:x$y$)", name) == {1: Move("queue", f"x{name}y{name}")}


@pytest.mark.parametrize(
    ("source", "template", "name"),
    [
        ("lookup://jms/myQueue", "dlq($)", "lookup://jms/dlq(myQueue)"),
        ("lookup://a/b/c", "dlq_$", "lookup://a/b/dlq_c"),
        ("lookup://myQueue", "dlq($-$)", "lookup://dlq(myQueue-myQueue)"),
        ("lookup://jms/myQueue", "dlq", "dlq"),
        ("queues/myQueue", "dlq.$", "dlq.queues/myQueue"),
        ("Lookup://jms/myQueue", "$", "Lookup://jms/myQueue"),
    ],
)
def test_the_path_of_a_source_that_is_looked_up_stays_in_front(source, template, name):
    assert actions(f"1:move(queue:{template})", source) == {1: Move("queue", name)}


def test_same_is_the_kind_of_the_source():
    assert actions("1:move(same:d)", "T1", "topic") == {1: Move("topic", "d")}
    assert actions("1:move(queue:d)", "T1", "topic") == {1: Move("queue", "d")}


@pytest.mark.parametrize("kind", ["queue", "topic", "same"])
def test_a_move_needs_to_know_the_kind_of_the_source(kind):
    with pytest.raises(InvalidRedeliveryHandlingError, match="whether messages come from a 'queue' or a 'topic'"):
        RedeliveryPolicy.parse(f"1:move({kind}:d)", "Q", "javax.jms.Queue")
    assert actions("1:delete", "Q", "javax.jms.Queue") == {1: Delete()}


def test_a_move_to_nowhere_is_refused():
    with pytest.raises(InvalidRedeliveryHandlingError, match=r"element 1.*name the target"):
        RedeliveryPolicy.parse("1:5;2:move(queue:$)", "")


@given(ladders(), st.data())
def test_what_is_printed_is_read_again(ladder, data):
    assert actions(data.draw(printed(ladder))) == ladder


@given(st.lists(st.sampled_from(["1", "2", ":", ";", " ", "\t", "1:5", "2:0", "3:delete"]), max_size=8).map("".join))
def test_elements_are_those_of_the_original(text):
    pieces = re.split(r"[ \t]*;[ \t]*", text)
    while pieces and not pieces[-1]:
        pieces.pop()
    matches = [re.fullmatch(r"([12]+):[ \t]?([0125]+)|3:[ \t]?(delete)", piece) for piece in pieces if text.strip()]
    good = all(matches)
    indexes = [int(match[1] or 3) for match in matches if match]
    good = good and indexes == sorted(set(indexes)) and all(not match[3] for match in matches[:-1])
    try:
        assert list(actions(text)) == indexes
        assert good
    except InvalidRedeliveryHandlingError:
        assert not good


@given(st.text("0123456789:; \t\ndeletmovquasp()$\u0661\u00a0", max_size=30))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(InvalidRedeliveryHandlingError):
        assert RedeliveryPolicy.parse(text).text == text


@pytest.mark.parametrize("row", rows_of("redelivery", "parse"))
def test_conformance(row):
    arguments = row["input"], row["destination"], row["destination_type"]
    if not row["expect"]["valid"]:
        with pytest.raises(InvalidRedeliveryHandlingError):
            RedeliveryPolicy.parse(*arguments)
        return
    policy = RedeliveryPolicy.parse(*arguments)
    for expected in row["expect"]["actions"]:
        assert policy.action(expected["at"]) == {
            "none": lambda _: Deliver(),
            "delay": lambda action: Delay(action["ms"]),
            "delete": lambda _: Delete(),
            "move": lambda action: Move(action["type"], action["name"]),
        }[expected["action"]](expected)


def test_an_action_is_in_force_until_the_next():
    policy = RedeliveryPolicy.parse("5:1000; 10:5000; 50:move(queue:mydlq)")
    given_actions = [policy.action(n) for n in range(60)]
    assert given_actions == [Deliver()] * 5 + [Delay(1000)] * 5 + [Delay(5000)] * 40 + [Move("queue", "mydlq")] * 10


@pytest.mark.parametrize("text", ["", ";", " "])
def test_no_entry_is_no_action(text):
    policy = RedeliveryPolicy.parse(text)
    assert {policy.action(n) for n in (0, 1, 2, 10**9)} == {Deliver()}
    assert policy.highest_index == 0


def test_the_last_action_is_in_force_for_ever():
    assert RedeliveryPolicy.parse("1:5").action(10**12) == Delay(5)
    assert RedeliveryPolicy.parse("1:delete").action(10**12) == Delete()


def test_the_default_delays_longer_and_longer():
    policy = RedeliveryPolicy.parse(DEFAULT_REDELIVERY_HANDLING)
    assert [policy.action(n) for n in (2, 3, 4, 5, 9, 10, 19, 20, 49, 50)] == [
        *[Deliver(), Delay(25), Delay(25), Delay(50), Delay(50), Delay(100), Delay(100), Delay(1000), Delay(1000)],
        Delay(5000),
    ]
    assert policy.highest_index == 50


def test_policies_are_equal_if_written_alike_for_the_same_source():
    policy = RedeliveryPolicy.parse("1:move(same:$)", "a", "queue")
    assert policy == RedeliveryPolicy.parse("1:move(same:$)", "a", "queue")
    assert hash(policy) == hash(RedeliveryPolicy.parse("1:move(same:$)", "a", "queue"))
    others = [("1:move(queue:$)", "a", "queue"), ("1:move(same:$)", "b", "queue"), ("1:move(same:$)", "a", "topic")]
    assert policy not in [RedeliveryPolicy.parse(*other) for other in others]


def test_the_target_of_a_move_is_a_destination():
    assert Move("queue", "a").destination == Queue("a")
    assert Move("topic", "a").destination == Topic("a")


def test_another_handling_is_read_for_the_same_source():
    policy = RedeliveryPolicy.parse("1:5", "orders", "topic")
    assert policy.with_text("2:move(same:$.dead)").action(2) == Move("topic", "orders.dead")
    with pytest.raises(InvalidRedeliveryHandlingError):
        policy.with_text("2")


@given(ladders(), st.data())
def test_policies_travel_as_pickles(ladder, data):
    policy = RedeliveryPolicy.parse(data.draw(printed(ladder)))
    travelled = pickle.loads(pickle.dumps(policy))  # noqa: S301  # our own
    assert travelled == policy
    assert (travelled.text, travelled.rules, str(travelled)) == (policy.text, policy.rules, policy.text)


@given(ladders(highest=30), st.data())
def test_actions_follow_the_ladder(ladder, data):
    policy = RedeliveryPolicy.parse(data.draw(printed(ladder)))
    in_force = Deliver()
    for n in range(40):
        in_force = ladder.get(n, in_force)
        assert policy.action(n) == in_force
    assert policy.highest_index == max(ladder, default=0)
