"""Response selectors: the examples of the documents, and paths."""

import pytest

from jmsjca.connector import BusinessObject
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.outcomes import FeedbackCodes, ReturnCode
from jmsjca.connector.request_processing import response_selector
from jmsjca.errors import ConfigurationError, InvalidSelectorError

OBJECT = BusinessObject(
    "A",
    "V",
    {
        "PrimaryID": "P1",
        "Foo": "{A:B};{C:D}",
        "MyDynamicMO": BusinessObject("M", "", {"CorrelationID": "123ABC"}),
        "Address": [BusinessObject("Address", "", {"AddressID": number}) for number in range(6)],
        "quote": "it's",
    },
)


def selector(information, *, raw=False):
    definitions = BusinessObjectDefinitions({"A": {"attributes": {}, "verbs": {"V": information}}})
    return response_selector(OBJECT, definitions, raw=raw)


@pytest.mark.parametrize(
    ("information", "expected"),
    [
        ("response_selector=JMSType = 'xmlResponse'", "JMSType = 'xmlResponse'"),
        ("response_selector=JMSCorrelationID LIKE '{1}':MyDynamicMO.CorrelationID", "JMSCorrelationID LIKE '123ABC'"),
        (
            "response_selector=Name LIKE '{1}'AND Zip LIKE '{2}':PrimaryID,Address[4].AddressID",
            "Name LIKE 'P1'AND Zip LIKE '4'",
        ),
        ("response_selector=PrimaryID LIKE {{1}", "PrimaryID LIKE {1}"),
        ("Response_selector=PrimaryID = '{1}':Foo", "PrimaryID = '{A:B};{C:D}'"),
        ("other=1;response_selector=a = 'x:y' AND b = {1}: PrimaryID", "a = 'x:y' AND b = 'P1'"),
        ("response_selector=a = 'x:y;z'", "a = 'x:y;z'"),
        ("response_selector=a = '{1}':quote", "a = 'it''s'"),
        ("other=1", None),
        ("", None),
    ],
)
def test_examples(information, expected):
    assert selector(information) == expected


def test_raw_values():
    assert selector("response_selector=a = '{1}':quote", raw=True) == "a = 'it's'"


@pytest.mark.parametrize("paths", ["", ":Address", ":MyDynamicMO"])
def test_a_value_that_is_no_scalar(paths):
    with pytest.raises(InvalidSelectorError):
        selector(f"response_selector=a = '{{1}}'{paths}")


def test_without_definitions_there_is_none():
    assert response_selector(OBJECT, None, raw=False) is None


def test_feedback_codes():
    codes = FeedbackCodes({"MQFB_APPL_FIRST": "VALDUPES", "MQFB_NAN + 2": "success", "7": "FAIL"})
    assert [codes.result(value) for value in (65536, 278, "7", 275, 9, None, True, "valchange")] == [
        ReturnCode.VALDUPES,
        ReturnCode.SUCCEED,
        ReturnCode.FAIL,
        ReturnCode.SUCCEED,
        None,
        None,
        None,
        ReturnCode.VALCHANGE,
    ]
    assert (codes.code(ReturnCode.VALDUPES), codes.code(ReturnCode.SUCCEED)) == (65536, None)


@pytest.mark.parametrize("changes", [{"MQFB_OTHER": "FAIL"}, {"MQFB_PAN + x": "FAIL"}, {"7": "PERHAPS"}, {"": "FAIL"}])
def test_wrong_feedback_codes(changes):
    with pytest.raises(ConfigurationError):
        FeedbackCodes(changes)
