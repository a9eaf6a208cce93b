"""The conformance cases about AMQP and JMS, from the folder that JMSJCA_CONFORMANCE names."""

from collections import Counter

import pytest

from tests.unit.providers.amqp.codec import body_cases as body_rows
from tests.unit.providers.amqp.codec import field_cases as field_rows
from tests.unit.providers.amqp.codec import header_cases as header_rows
from tests.unit.selectors.conformance_cases import rows

CHECKS = {
    "constant": header_rows.constant,
    "send": body_rows.send,
    "receive": body_rows.receive,
    "read_body": body_rows.read_body,
    "content_type": body_rows.content_type,
    "element_type": body_rows.element_type,
    "destination": header_rows.destination,
    "destination_send": header_rows.destination_send,
    "legacy_attributes": header_rows.legacy_attributes,
    "id": header_rows.id_,
    "id_to_amqp": header_rows.id_to_amqp,
    "id_prefix": header_rows.id_prefix,
    "field": field_rows.field,
    "application_property": header_rows.application_property,
}

# What is different here on purpose, by the name of the test that a case comes from;
# docs/reference/compatibility.md says why.
DIFFERENT = {
    "testJMSMessageWithNoToMessageAnnotationValidity": "a message is always sent to a destination",
    "testSetTimestampZeroOnNewMessageDoesNotCreatePropertiesSection": "which the section of properties names",
    "testReceivedMessageWithoutDeliveryTimeAnnotation": "no delivery time is none, not that of sending",
    "testReceiveMessageWithInvalidPropertyName": "what others sent is shown, whatever its name",
}

run = Counter()


@pytest.mark.parametrize("row", rows("amqp_jms_mapping"))
def test_row(row):
    run["different" if row["test"] in DIFFERENT else "same"] += 1
    if row["test"] in DIFFERENT:
        with pytest.raises(AssertionError):
            CHECKS[row["kind"]](row)
    else:
        CHECKS[row["kind"]](row)


@pytest.mark.parametrize("first", rows("amqp_jms_mapping")[:1])
def test_every_row_was_run(first):
    total = len(rows("amqp_jms_mapping"))
    print(f"AMQP and JMS: {run.total()} of {total} cases run, {run['different']} of them different on purpose")
    assert run["different"] <= len(DIFFERENT)
