"""Data handlers for XML and the text formats: round trips, bodies of other systems, errors with attribute and value."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers import (
    DelimitedDataHandler,
    FixedWidthDataHandler,
    NameValueDataHandler,
    XMLDataHandler,
    data_handler,
)
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.errors import ConfigurationError, DataHandlerError, UnknownBusinessObjectError

_SCALARS = {
    "Number": {"type": "integer", "width": 30, "key": True},
    "Name": {"width": 20},
    "Rating": {"type": "float", "width": 30},
    "Active": {"type": "boolean", "width": 5},
}
_FLAT = BusinessObjectDefinitions({"Customer": {"attributes": _SCALARS}})
_TREE = BusinessObjectDefinitions(
    {
        "Customer": {
            "attributes": _SCALARS
            | {
                "Nick": {"cardinality": "multiple"},
                "Bank": {"type": "Account"},
                "Address": {"type": "Address", "cardinality": "multiple"},
            }
        },
        "Account": {"attributes": _SCALARS},
        "Address": {"attributes": {"City": {}, "Bank": {"type": "Account"}}},
    }
)


def _objects(kind, values, verbs):
    return st.builds(BusinessObject, st.just(kind), verbs, st.fixed_dictionaries({}, optional=values))


def _values(texts):
    integers = st.integers(-(10**28), 10**28)
    floats = st.floats(allow_nan=False, allow_infinity=False)
    return {"Number": integers, "Name": texts, "Rating": floats, "Active": st.booleans()}


def _flat(texts, verbs):
    return _objects("Customer", _values(texts), verbs)


def _tree(texts, verbs):
    account = _objects("Account", _values(texts), verbs)
    address = _objects("Address", {"City": texts, "Bank": account}, verbs)
    children = {
        "Nick": st.lists(texts, min_size=1, max_size=3),
        "Bank": account,
        "Address": st.lists(address, min_size=1, max_size=3),
    }
    return _objects("Customer", _values(texts) | children, verbs)


def _texts(special, excluded):
    # An alphabet in st.text would have the special characters only as often as any other character.
    characters = st.sampled_from(special) | st.characters(exclude_categories=excluded)
    return st.lists(characters, max_size=12).map("".join)


_ALL = _texts('\r\n\t"\\,;|=. ', ["Cs"])
_XML = _texts("\r\n\t<>&\"' ", ["Cs", "Cc", "Cn"])
_PADDED = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda text: not text.endswith(" ") and "\n" not in text and "\r" not in text
)
_VERBS = st.sampled_from(["", "Create", "Update"])


def _assert_round_trip(handler, source):
    assert handler.to_business_object(handler.to_content(source)) == source
    assert handler.to_business_object(handler.to_content(source).encode(), type=source.type) == source


@given(_tree(_XML, _VERBS))
def test_xml_round_trip(source):
    _assert_round_trip(XMLDataHandler(_TREE), source)


@given(_tree(_ALL, _VERBS | _ALL))
def test_name_value_round_trip(source):
    _assert_round_trip(NameValueDataHandler(_TREE), source)


@given(_flat(_ALL, _VERBS | _ALL), st.sampled_from(",;|\t^]-\\ e"))
def test_delimited_round_trip(source, delimiter):
    _assert_round_trip(DelimitedDataHandler(_FLAT, delimiter=delimiter), source)


@given(_flat(_PADDED, _VERBS))
def test_fixed_width_round_trip(source):
    _assert_round_trip(FixedWidthDataHandler(_FLAT), source)


@given(_flat(_ALL, st.just("")))
def test_delimited_round_trip_without_type_and_verb(source):
    handler = DelimitedDataHandler(_FLAT, type_and_verb=False)
    assert handler.to_business_object(handler.to_content(source), type="Customer") == source


@pytest.mark.parametrize("handler", [XMLDataHandler(), NameValueDataHandler()])
def test_without_definitions_scalars_are_texts(handler):
    account = BusinessObject("Account", "", {"Number": 5, "Active": True})
    source = BusinessObject("Customer", "Create", {"Rating": 1.5, "Nick": ["a", ""], "Bank": account, "Empty": []})
    source.attributes |= {"None": None, "Child": BusinessObject("Child"), "Blank": ""}
    texts = {
        "Rating": "1.5",
        "Nick": ["a", ""],
        "Bank": BusinessObject("Account", "", {"Number": "5", "Active": "true"}),
    }
    texts |= {"Child": BusinessObject("Child"), "Blank": ""}
    assert handler.to_business_object(handler.to_content(source)) == BusinessObject("Customer", "Create", texts)


def test_xml_of_another_system_is_read():
    body = b"""<?xml version="1.0" encoding="iso-8859-1"?>
    <c:Customer xmlns:c="urn:crm" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">
        <c:Number> 7 </c:Number><!-- the key --><c:Name>J\xf6rg</c:Name>
        <c:Bank><c:Active>true</c:Active></c:Bank>
        <c:Address><c:City>Ulm</c:City></c:Address>
        <c:Address/>
    </c:Customer>"""
    found = XMLDataHandler(_TREE).to_business_object(body)
    account = BusinessObject("Account", "", {"Active": True})
    addresses = [BusinessObject("Address", "", {"City": "Ulm"}), BusinessObject("Address")]
    values = {"Number": 7, "Name": "Jörg", "Bank": account, "Address": addresses}
    assert found == BusinessObject("Customer", "", values)


def test_xml_names_type_and_verb_in_its_root():
    source = BusinessObject("Customer", "Create", {"Number": 7, "Nick": ["a", "b"]})
    assert XMLDataHandler(_TREE).to_content(source) == (
        '<BusinessObject type="Customer" verb="Create"><Number>7</Number><Nick>a</Nick><Nick>b</Nick></BusinessObject>'
    )


def test_children_without_type_have_the_type_of_the_definition():
    expected = BusinessObject("Customer", "", {"Bank": BusinessObject("Account", "", {"Number": 5})})
    for mime_type, body in [
        ("application/json", '{"Bank": {"Number": 5}}'),
        ("text/namevalue", "Bank.Number=5"),
        ("text/xml", "<Customer><Bank><Number>5</Number></Bank></Customer>"),
    ]:
        assert data_handler(mime_type, _TREE).to_business_object(body, type="Customer") == expected


def test_delimited_record_has_the_order_of_the_definition():
    source = BusinessObject("Customer", "Create", {"Active": False, "Name": 'Ada "A", Ltd', "Number": 7})
    record = 'Customer,Create,7,"Ada ""A"", Ltd",,false'
    assert DelimitedDataHandler(_FLAT).to_content(source) == record
    assert DelimitedDataHandler(_FLAT).to_business_object(f"{record}\r\n") == source


def test_fixed_width_record_has_the_widths_of_the_definition():
    source = BusinessObject("Customer", "Create", {"Number": 7, "Name": "Ada", "Active": False})
    handler = FixedWidthDataHandler(_FLAT, type_width=10, verb_width=8)
    record = f"{'Customer':<10}{'Create':<8}{7:>30}{'Ada':<20}{'':30}false"
    assert handler.to_content(source) == record
    assert handler.to_business_object(f"{record}\n") == source


def test_fixed_width_record_without_type_and_verb():
    handler = FixedWidthDataHandler(_FLAT, type_width=0, verb_width=0)
    source = BusinessObject("Customer", "", {"Number": 7})
    assert handler.to_business_object(handler.to_content(source), type="Customer") == source
    with pytest.raises(UnknownBusinessObjectError, match="names no type"):
        handler.to_business_object(handler.to_content(source))


def test_name_value_text_has_paths():
    address = BusinessObject("Address", "", {"City": "Ulm\\\nDonau"})
    source = BusinessObject(
        "Customer", "Create", {"Number": 7, "Address": [address], "Bank": BusinessObject("Account")}
    )
    body = "_type=Customer\n_verb=Create\nNumber=7\nAddress[0].City=Ulm\\\\\\nDonau\nBank._type=Account\n"
    assert NameValueDataHandler(_TREE).to_content(source) == body
    assert NameValueDataHandler(_TREE).to_business_object(body.replace("\n", "\r\n")) == source


_BODIES = [
    ("text/xml", "<Customer><Number>x</Number><Rating>1e999</Rating></Customer>", "Number = 'x' .*; Rating = 'inf'"),
    ("text/xml", "<Customer><Number>1</Number><Number>2</Number></Customer>", "Number = .* single cardinality"),
    ("text/xml", "<Customer Number='5'/>", "Element Customer has the XML attribute Number = '5'"),
    (
        "text/xml",
        "<Customer><Name kind='x'>a</Name></Customer>",
        "Element Customer.Name has the XML attribute kind = 'x'",
    ),
    ("text/xml", "<Customer><Bank>a<Number>1</Number></Bank></Customer>", "Customer.Bank has the text 'a' beside"),
    ("text/xml", "<Customer><Bank>Ulm</Bank></Customer>", "Bank = 'Ulm' is not of type Account"),
    ("text/xml", "<Customer>", "not valid XML"),
    ("text/xml", b"\xff\xff", "not valid XML"),
    ("text/xml", b'<?xml version="1.0" encoding="none"?><a/>', "not valid XML"),
    ("text/xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><Customer><Name>&b;</Name></Customer>", "refused"),
    ("text/xml", "<BusinessObject type='Order'/>", "names type 'Order', but 'Customer'"),
    ("text/xml", "<Customer>" + "<a>" * 5000 + "</a>" * 5000 + "</Customer>", "nested too deeply"),
    ("application/json", '{"a":' * 900 + "1" + "}" * 900, "nested too deeply|recursion"),
    ("text/namevalue", "Number=x\nRating=y", "Number = 'x' .*; Rating = 'y'"),
    ("text/namevalue", "Number", "Line 1 of the body is not path=value.*'Number'"),
    ("text/namevalue", "\nAddress[x].City=Ulm", "Line 2 of the body is not path=value"),
    ("text/namevalue", "Number=1\nNumber=2", "Line 2 sets attribute 'Number' again, to '2'"),
    ("text/namevalue", "Bank.Number=1\nBank=2", "Line 2 sets attribute 'Bank' again"),
    ("text/namevalue", "Bank=2\nBank.Number=1", "Line 2 sets attribute 'Bank.Number' again"),
    ("text/namevalue", "Nick[1]=b", r"elements of attribute Nick are not \[0\] to \[0\]"),
    ("text/namevalue", "Address[0].City=a\nAddress.City=b", "elements of attribute Address"),
    ("text/namevalue", "Name=a\\x", r"Name has the escape '\\\\x'"),
    ("text/namevalue", "Bank._verb.x=1", "Bank._verb is a text"),
    ("text/namevalue", "_type[0]=Customer", "_type is a text"),
    ("text/namevalue", "_type=Order", "names type 'Order', but 'Customer'"),
    ("text/namevalue", ".".join(["a"] * 5000) + "=1", "paths of the body are too long"),
    ("text/namevalue", b"\xff", "not UTF-8"),
]


@pytest.mark.parametrize(("mime_type", "body", "reason"), _BODIES)
def test_invalid_body_names_field_and_value(mime_type, body, reason):
    with pytest.raises(DataHandlerError, match=reason):
        data_handler(mime_type, _TREE).to_business_object(body, type="Customer")


_FIXED = f"{'Customer':<32}{'Create':<16}"


@pytest.mark.parametrize(
    ("mime_type", "body", "reason"),
    [
        ("text/delimited", "Customer,Create,x,,y,", "Number = 'x' .*; Rating = 'y'"),
        ("text/delimited", "Customer,Create,1,a,b,c,d", r"has 5 fields .* Customer has 4 attributes: Number, Name"),
        ("text/delimited", "Customer", "does not begin with a type and a verb: 'Customer'"),
        ("text/delimited", 'Customer,Create,1,5" pipe,,', "'\" pipe,,' after character 19"),
        ("text/delimited", 'Customer,Create,1,"a"b,,', "'b,,' after character 21"),
        ("text/delimited", 'Customer,Create,1,"a', "after character 18"),
        ("text/delimited", "Customer,Create,1,,,\nCustomer,Create,2,,,", "after character 20"),
        ("text/delimited", "Order,Create,1", "names type 'Order', but 'Customer'"),
        ("text/fixedwidth", f"{_FIXED}{'x':>30}{'':20}{'y':>30}{'':5}", "Number = '.*x' .*; Rating = '.*y'"),
        ("text/fixedwidth", f"{_FIXED}{7:>30}", "has 78 characters, and Customer needs 133"),
        ("text/fixedwidth", f"{'Order':<32}", "names type 'Order', but 'Customer'"),
    ],
)
def test_invalid_record_names_field_and_value(mime_type, body, reason):
    with pytest.raises(DataHandlerError, match=reason):
        data_handler(mime_type, _FLAT).to_business_object(body, type="Customer")


@pytest.mark.parametrize("mime_type", ["text/xml", "text/namevalue", "text/delimited", "text/fixedwidth"])
def test_body_without_type_is_an_unknown_business_object(mime_type):
    body = {"text/xml": "<BusinessObject/>", "text/namevalue": "", "text/delimited": ",,1,,,"}.get(mime_type, " " * 133)
    with pytest.raises(UnknownBusinessObjectError, match="names no type"):
        data_handler(mime_type, _FLAT).to_business_object(body)


@pytest.mark.parametrize(
    ("handler", "values", "reason"),
    [
        (XMLDataHandler(), {"Name": "\x00"}, "Name has the character .* XML cannot represent"),
        (XMLDataHandler(), {"Bank": BusinessObject("Account", "", {"a b": "x"})}, "Bank.a b has a name"),
        (XMLDataHandler(), {"Nick": ["a", None]}, r"Nick\[1\] has the value 'None'"),
        (XMLDataHandler(), {"Rating": float("inf")}, "Rating has the value 'inf'"),
        (XMLDataHandler(_FLAT), {"Number": "x", "Fax": "1"}, "Fax = '1' .*; Number = 'x'"),
        (NameValueDataHandler(), {"a=b": "x"}, "a=b has a name that cannot be written"),
        (NameValueDataHandler(), {"Bank": BusinessObject("B", "", {"_verb": "x"})}, "Bank._verb has a name"),
        (NameValueDataHandler(), {"a[0]": "x"}, r"a\[0\] has a name"),
        (NameValueDataHandler(), {"Name": "\ud800"}, "Name has the value"),
        (NameValueDataHandler(), {"Number": 10**5000}, "Number has the value 'an integer of 16610 bits'"),
        (NameValueDataHandler(_FLAT), {"Number": "x"}, "Number = 'x'"),
        (DelimitedDataHandler(_FLAT), {"Number": "x"}, "Number = 'x'"),
        (DelimitedDataHandler(_TREE), {"Number": 1}, "Nick of Customer is a child or a list"),
        (
            FixedWidthDataHandler(_FLAT),
            {"Name": "a" * 21},
            "attribute Name has 21 characters, and its width is 20: 'aaa",
        ),
        (FixedWidthDataHandler(_FLAT), {"Name": "a "}, "attribute Name is empty, ends with a blank .*'a '"),
        (FixedWidthDataHandler(_FLAT), {"Name": ""}, "attribute Name is empty"),
        (FixedWidthDataHandler(_FLAT), {"Name": "a\nb"}, "attribute Name .* line break"),
        (FixedWidthDataHandler(_FLAT, verb_width=3), {}, "the verb has 6 characters, and its width is 3: 'Create'"),
    ],
)
def test_unrepresentable_attribute_is_named(handler, values, reason):
    with pytest.raises(DataHandlerError, match=reason):
        handler.to_content(BusinessObject("Customer", "Create", values))


def test_attribute_without_width_is_named():
    definitions = BusinessObjectDefinitions({"Customer": {"attributes": {"Name": {}, "Number": {"width": 3}}}})
    with pytest.raises(DataHandlerError, match="no width for: Name"):
        FixedWidthDataHandler(definitions).to_content(BusinessObject("Customer"))


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_invalid_delimiter_is_refused(delimiter):
    with pytest.raises(ConfigurationError, match="delimiter is one character"):
        DelimitedDataHandler(_FLAT, delimiter=delimiter)


def test_negative_width_is_refused():
    with pytest.raises(ConfigurationError, match="verb_width -1"):
        FixedWidthDataHandler(_FLAT, verb_width=-1)


@pytest.mark.parametrize("mime_type", ["text/delimited", "Text/FixedWidth"])
def test_records_need_definitions(mime_type):
    with pytest.raises(ConfigurationError, match="needs definitions"):
        data_handler(mime_type)


def test_json_satisfies_the_definitions_in_both_directions():
    handler = data_handler("application/json", _FLAT)
    assert handler.to_business_object('{"Number": 5}', type="Customer").get("Number") == 5
    with pytest.raises(DataHandlerError, match="Number = '5' is not of type integer"):
        handler.to_business_object('{"Number": "5"}', type="Customer")
    with pytest.raises(DataHandlerError, match="Number = '5' is not of type integer"):
        handler.to_content(BusinessObject("Customer", "", {"Number": "5"}))


def test_missing_defusedxml_is_reported_with_the_command_that_installs_it():
    script = """
import sys
sys.modules["defusedxml"] = None
from jmsjca.connector.data_handlers import data_handler
from jmsjca.errors import ConfigurationError
data_handler("application/json")
try:
    data_handler("text/xml")
except ConfigurationError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 'pip install "jmsjca[connector]"' in run.stdout
