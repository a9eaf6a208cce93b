"""Names of distributed durable subscriptions."""

import pytest

from jmsjca.config import DistributedSubscription
from jmsjca.errors import InvalidOptionError, InvalidURLError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jmsjca://?distribution=1&subscribername=s", DistributedSubscription("s")),
        ("jmsjca://distribution=1&subscribername=s", DistributedSubscription("s")),
        ("jmsjca://?distributed=1&subscribername=mysub", DistributedSubscription("mysub")),
        ("jmsjca://distributed=1&subscribername=mysub", DistributedSubscription("mysub")),
        (
            "jmsjca://?subscribername=a%26b&distribution=1&queue=x%2Fy&mbeanname=m:n&batchsize=7",
            DistributedSubscription("a&b", "x/y", "m:n", 7),
        ),
        ("jmsjca://?distribution=1&amp;subscribername=s&queue=&batchsize=", DistributedSubscription("s")),
    ],
)
def test_distributed(text, expected):
    assert DistributedSubscription.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "distribution=1&subscribername=s",
        "JMSJCA://?distribution=1&subscribername=s",
        "jmsjca://",
        "jmsjca://?subscribername=s",
        "jmsjca://?distribution=0&subscribername=s&x=y",
    ],
)
def test_usual_name(text):
    assert DistributedSubscription.parse(text) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jmsjca://?distribution=1", "needs subscribername"),
        ("jmsjca://?distribution=1&subscribername=", "needs subscribername"),
        ("jmsjca://?distribution=true&subscribername=s", "distribution is 0 or 1, not 'true'"),
        ("jmsjca://?distribution=1&distributed=2&subscribername=s", "distribution is 0 or 1, not '2'"),
        ("jmsjca://?distribution=1&distributed=0&subscribername=s", "distribution is 0 or 1, not '0'"),
        ("jmsjca://?distribution=1&subscribername=s&quue=q", "did you mean queue"),
        *[
            (f"jmsjca://?distribution=1&subscribername=s&batchsize={n}", "batchsize")
            for n in ("0", "-1", "x", "9" * 10)
        ],
    ],
)
def test_wrong(text, told):
    with pytest.raises(InvalidOptionError, match=told):
        DistributedSubscription.parse(text)


def test_pair_without_a_value():
    with pytest.raises(InvalidURLError):
        DistributedSubscription.parse("jmsjca://?distribution")


def test_names():
    plain, named = DistributedSubscription("s"), DistributedSubscription("s", "q", "m")
    assert (plain.queue_name("T"), named.queue_name("T")) == ("LOADBALQ_T_s", "q")
    assert (plain.topic_mbean_name("a"), named.topic_mbean_name("a")) == ("a-LOADBALQ", "m")
    assert (plain.topic_mbean_name(None), named.topic_mbean_name(None)) == (None, "m")
