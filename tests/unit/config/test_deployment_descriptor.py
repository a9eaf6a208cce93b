"""Activation specs in the manual's spelling: read from properties, and dumped."""

import re
from pathlib import Path

import pytest

from jmsjca import AcknowledgeMode, ActivationSpec, Queue, Topic
from jmsjca.config.activation_spec import field_of
from jmsjca.destinations import Subscription
from jmsjca.errors import InvalidActivationSpecError

HIDDEN = "s3cr3t"
QUEUE = {"destination": "orders", "destinationType": "javax.jms.Queue"}
TOPIC = {"destination": "news", "destinationType": "javax.jms.Topic"}


def explanation(properties, **flags):
    with pytest.raises(InvalidActivationSpecError) as caught:
        ActivationSpec.from_properties(properties, **flags)
    return str(caught.value)


def test_least():
    assert ActivationSpec.from_properties(QUEUE) == ActivationSpec(destination=Queue("orders"))
    assert ActivationSpec.from_properties(TOPIC) == ActivationSpec(destination=Topic("news"))
    assert ActivationSpec.from_properties({**QUEUE, "destinationType": "jakarta.jms.Queue"}).source() == Queue("orders")


def test_everything():
    spec = ActivationSpec.from_properties(
        {
            **TOPIC,
            "ConnectionURL": "p://h",
            "UserName": "ann",
            "Password": HIDDEN,
            "ClientId": "c",
            "subscriptionDurability": "Durable",
            "subscriptionName": "s",
            "ConcurrencyMode": "CC",
            "endpointPoolMaxSize": "7",
            "MBeanName": "m",
            "selector": "a = 1",
            "selectorVariables": "JMSJCA.sep=;region=EU;least=3",
            "Options": "JMSJCA.sep=,JMSJCA.NoXA=true,x=y",
            "RedeliveryHandling": "5:delete",
            "BatchSize": "10",
            "HoldUntilAck": "1",
            "ContextName": "ctx",
            "acknowledgeMode": "Dups-ok-acknowledge",
            "acknowledgementTimeout": "2.5",
            "maxOutstanding": "9",
            "splitFailedBatches": "1",
            "transaction": "none",
            "endpointPoolSteadySize": "0",
            "endpointPoolResizeCount": "1",
            "endpointPoolResizeTimeout": "1",
            "endpointExceptionRedeliveryAttempts": "0",
            "endpointExceptionRedeliveryInterval": "1",
        }
    )
    assert spec == ActivationSpec(
        destination=Topic("news"),
        connection_url="p://h",
        user_name="ann",
        password=HIDDEN,
        client_id="c",
        subscription_durability="Durable",
        subscription_name="s",
        concurrency_mode="cc",
        endpoint_pool_max_size=7,
        mbean_name="m",
        selector="a = 1",
        selector_variables={"region": "EU", "least": "3"},
        options={"JMSJCA.NoXA": "true", "x": "y"},
        redelivery_handling="5:delete",
        batch_size=10,
        hold_until_ack=True,
        context_name="ctx",
        acknowledge_mode=AcknowledgeMode.DUPS_OK,
        acknowledgement_timeout=2.5,
        max_outstanding=9,
        split_failed_batches=True,
        transaction="none",
    )


@pytest.mark.parametrize("field", ActivationSpec.model_fields)
def test_every_field_has_a_property_that_is_documented(field):
    page = Path(__file__).parents[3].joinpath("docs", "reference", "activation-spec.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `") and f"`{field}`" in line.split("|")[1]]
    fields, properties = re.findall("`(\\w+)`", row.split("|")[1]), re.findall("`(\\w+)`", row.split("|")[2])
    assert field_of(properties[fields.index(field)]) == field


def test_capitals_of_names_do_not_count():
    spec = ActivationSpec.from_properties({"Destination": "q", "DESTINATIONTYPE": "javax.jms.Queue", "clientid": "c"})
    assert (spec.source(), spec.client_id) == (Queue("q"), "c")


@pytest.mark.parametrize("name", ["selector", "messageSelector", "MessageSelector"])
def test_both_names_of_the_selector(name):
    assert ActivationSpec.from_properties({**QUEUE, name: "a = 1"}).selector == "a = 1"


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_is_as_if_left_out(blank):
    names = ["ConnectionURL", "UserName", "ClientId", "subscriptionName", "MBeanName", "selector", "ContextName"]
    assert ActivationSpec.from_properties(QUEUE | dict.fromkeys(names, blank)) == ActivationSpec(destination="orders")
    durable = {**TOPIC, "subscriptionDurability": "Durable", "subscriptionName": "s", "ClientId": blank}
    assert ActivationSpec.from_properties(durable).source() == Subscription(Topic("news"), "s", "CLIENTID-s")


def test_empty_redelivery_handling_is_none_at_all():
    assert ActivationSpec.from_properties({**QUEUE, "RedeliveryHandling": ""}).redelivery_policy.highest_index == 0


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"destination": "q"}, "destinationType is missing"),
        ({"destinationType": "javax.jms.Queue"}, "destination: "),
        ({**QUEUE, "destination": ""}, "destination: "),
        ({**QUEUE, "destinationType": ""}, "destinationType: it must be javax.jms.Queue or javax.jms.Topic"),
        ({**QUEUE, "destinationType": "javax.jms.queue"}, "destinationType: "),
        ({**QUEUE, "destinationType": "Queue"}, "destinationType: "),
        ({**QUEUE, "subscriptionDurability": "Durable"}, "a queue keeps its messages without a subscription"),
        ({**TOPIC, "subscriptionDurability": "durable", "subscriptionName": "s"}, "'Durable' or 'NonDurable'"),
        ({**TOPIC, "subscriptionDurability": "nondurable"}, "'Durable' or 'NonDurable'"),
        ({**TOPIC, "subscriptionDurability": ""}, "'Durable' or 'NonDurable'"),
        ({**TOPIC, "subscriptionDurability": "Durable"}, "subscription_name: it is missing"),
        ({**TOPIC, "subscriptionDurability": "Durable", "subscriptionName": " "}, "subscription_name: it is missing"),
        ({**QUEUE, "ConcurrencyMode": "multi-receiver"}, "concurrency_mode: 'multi-receiver'"),
        ({**QUEUE, "ConcurrencyMode": ""}, "concurrency_mode: "),
        ({**QUEUE, "endpointPoolMaxSize": "0"}, "endpoint_pool_max_size: "),
        ({**QUEUE, "endpointPoolMaxSize": "many"}, "endpoint_pool_max_size: "),
        ({**QUEUE, "BatchSize": ""}, "batch_size: "),
        ({**QUEUE, "BatchSize": "5"}, "use 'sync' or 'cc'"),
        ({**QUEUE, "HoldUntilAck": "TRUE"}, "use 'sync' or 'cc'"),
        ({**QUEUE, "destination": " "}, "destination: it is blank"),
        ({**QUEUE, "destination": " \t\n"}, "destination: it is blank"),
        ({**QUEUE, "destinationLookup": "jms/in"}, "destinationLookup: it is given twice"),
        ({**QUEUE, "acknowledgeMode": "auto-acknowledge"}, "acknowledgeMode: it must be Auto-acknowledge or Dups-ok"),
        ({**QUEUE, "RedeliveryHandling": "x"}, "redelivery_handling: "),
        ({**QUEUE, "Options": "JMSJCA.sep="}, "options: "),
        ({**QUEUE, "endpointPoolSteadySize": "-1"}, "endpointPoolSteadySize: it must be a whole number from 0 on"),
        ({**QUEUE, "endpointPoolResizeCount": "0"}, "endpointPoolResizeCount: it must be a whole number from 1 on"),
        ({**QUEUE, "endpointPoolResizeTimeout": "0"}, "endpointPoolResizeTimeout: it must be a whole number from 1 on"),
        ({**QUEUE, "endpointPoolResizeTimeout": "2147483648"}, "endpointPoolResizeTimeout"),
        ({**QUEUE, "endpointExceptionRedeliveryAttempts": "x"}, "endpointExceptionRedeliveryAttempts"),
        ({**QUEUE, "endpointExceptionRedeliveryInterval": "0"}, "endpointExceptionRedeliveryInterval: it must be"),
        ({**QUEUE, "endpointExceptionRedeliveryInterval": ""}, "endpointExceptionRedeliveryInterval"),
        ({**QUEUE, "selector": "a", "messageSelector": "a"}, "messageSelector: it is given twice"),
        ({**QUEUE, "Destination": "r"}, "Destination: it is given twice"),
        ({**QUEUE, "destinationtyp": "x"}, "destinationtyp: there is no such property (did you mean destinationType?)"),
        ({**QUEUE, "batch_size": "5"}, "batch_size: there is no such property (did you mean BatchSize?)"),
        ({**QUEUE, "colour": "red"}, "colour: there is no such property (there are destination, destinationType, "),
    ],
)
def test_wrong_property(properties, told):
    assert told in explanation(properties)


def test_every_wrong_property_is_reported_at_once():
    text = explanation(
        {"destination": "", "ConcurrencyMode": "x", "endpointPoolSteadySize": "-1", "colour": "red", "BatchSize": "x"}
    )
    for name in (
        "destination: ",
        "destinationType",
        "concurrency_mode",
        "endpointPoolSteadySize",
        "colour",
        "batch_size",
    ):
        assert name in text


def test_known_property_hides_no_unknown_one():
    assert "batch_size: there is no such property" in explanation(
        {**QUEUE, "ConcurrencyMode": "cc", "batch_size": "5", "BatchSize": "5"}
    )


def test_values_that_are_no_texts():
    spec = ActivationSpec.from_properties(
        {**QUEUE, "ConcurrencyMode": "cc", "endpointPoolMaxSize": 7, "HoldUntilAck": True, "ClientId": None}
    )
    assert (spec.endpoint_pool_max_size, spec.hold_until_ack, spec.client_id) == (7, True, None)


def test_no_error_shows_a_password():
    assert HIDDEN not in explanation({**QUEUE, "Pasword": HIDDEN, "password": "x", "PASSWORD": HIDDEN})


@pytest.mark.parametrize(
    ("name", "value", "field", "off"),
    [("BatchSize", "5", "batch_size", 0), ("HoldUntilAck", "1", "hold_until_ack", False)],
)
def test_descriptor_only_gets_a_warning_of_what_serial_has_not(caplog, name, value, field, off):
    spec = ActivationSpec.from_properties({**QUEUE, name: value}, from_descriptor=True)
    assert type(spec) is ActivationSpec
    assert spec == ActivationSpec(destination="orders")
    assert getattr(spec, field) is off or getattr(spec, field) == off
    assert [(r.levelname, f"{field} is ignored for orders" in r.message) for r in caplog.records] == [("WARNING", True)]


def test_descriptor_keeps_what_its_mode_has(caplog):
    properties = {**QUEUE, "BatchSize": "5", "HoldUntilAck": "1", "Options": "JMSJCA.concurrencymode=sync"}
    spec = ActivationSpec.from_properties(properties, from_descriptor=True)
    assert (spec.batch_size, spec.hold_until_ack, caplog.records) == (5, True, [])


def test_descriptor_is_checked_like_everything():
    text = explanation({**QUEUE, "BatchSize": "x", "colour": "red"}, from_descriptor=True)
    assert "batch_size" in text
    assert "colour" in text


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
        "\tSelectorVariables = null",
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
    assert len(lines) == 24
    assert lines[2].startswith("\tDestination = q\\")
