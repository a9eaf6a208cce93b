"""The spec as text."""

import pytest

from jmsjca import ActivationSpec, Topic

HIDDEN = "s3cr3t"


def test_dump():
    spec = ActivationSpec(
        destination=Topic("news"),
        connection_url=f"p://ann:{HIDDEN}@h:1/x?token={HIDDEN}",
        user_name="ann",
        password=HIDDEN,
        options={"JMSJCA.NoXA": "true", "token": HIDDEN},
        subscription_durability="Durable",
        subscription_name="s",
        selector="a = 1",
        concurrency_mode="sync",
        hold_until_ack=True,
    )
    assert spec.dump().split("\n") == [
        "ActivationSpec:",
        "\tDestinationType = javax.jms.Topic",
        "\tDestination = news",
        "\tMessageSelector = a = 1",
        "\tAcknowledgeMode = Auto-acknowledge",
        "\tDelivery concurrency mode = sync",
        "\tSubscriptionDurability = Durable",
        "\tClientId = null",
        "\tSubscriptionName = s",
        "\tEndpointPoolMaxSize = 15",
        "\tConnectionURL = p://ann@h:1/x?…",
        "\tUserName = ann",
        "\tPassword = ###",
        "\tContextName = null",
        "\tMBeanName = null",
        "\tOptionsStr = JMSJCA.NoXA=true; token=###",
        "\tRedeliveryHandling = 3:25; 5:50; 10:100; 20:1000; 50:5000",
        "\tBatchSize = 0",
        "\tSplitFailedBatches = False",
        "\tHoldUntilAck = True",
        "\tAcknowledgementTimeout = null",
        "\tMaxOutstanding = 150",
        "\tTransaction = local",
    ]


@pytest.mark.parametrize(("password", "shown"), [(None, "null"), ("", "zero-length"), ("x", "###")])
def test_password(password, shown):
    assert f"\tPassword = {shown}\n" in ActivationSpec(destination="q", user_name="ann", password=password).dump()


@pytest.mark.parametrize("end", ["\n", "\r", "\v", "\x1c", "\x85", "\u2028"])
def test_value_cannot_make_lines_of_its_own(end):
    lines = ActivationSpec(destination=f"q{end}\tPassword = x", context_name=f"a{end}b").dump().splitlines()
    assert len(lines) == 23
    assert lines[2].startswith("\tDestination = q\\")
