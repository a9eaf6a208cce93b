"""Deployment descriptors of Java, read into one configuration and a report."""

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from jmsjca import Queue, ResourceAdapter
from jmsjca.config.configuration_file import read_configuration
from jmsjca.descriptors import read, to_toml
from jmsjca.errors import ConfigurationError
from tests.unit.inbound.listeners import Inbox

RA = """<?xml version="1.0"?>
<connector xmlns="http://java.sun.com/xml/ns/j2ee"><display-name>Shop</display-name><resourceadapter>
  <config-property><config-property-name>ConnectionURL</config-property-name>
    <config-property-value>{url}</config-property-value></config-property>
  <config-property><config-property-name>Password</config-property-name>
    <config-property-value>{password}</config-property-value></config-property>
  <config-property><config-property-name>Options</config-property-name>
    <config-property-value>{options}</config-property-value></config-property>
  <config-property><config-property-name>TransformerMBeanName</config-property-name>
    <config-property-value>t</config-property-value></config-property>
  <outbound-resourceadapter><connection-definition>
    <config-property><config-property-name>IdleTimeout</config-property-name>
      <config-property-value>30000</config-property-value></config-property>
    <config-property><config-property-name>ProducerPooling</config-property-name>
      <config-property-value>TRUE</config-property-value></config-property>
    <connectionfactory-interface>javax.jms.QueueConnectionFactory</connectionfactory-interface>
  </connection-definition></outbound-resourceadapter>
  <adminobject><adminobject-interface>javax.jms.Queue</adminobject-interface>
    <config-property><config-property-name>Name</config-property-name>
      <config-property-value>q1234</config-property-value></config-property></adminobject>
</resourceadapter></connector>"""
EJB = """<ejb-jar><enterprise-beans><message-driven>
  <ejb-name>orders</ejb-name><ejb-class>shop.Orders</ejb-class><transaction-type>Container</transaction-type>
  <activation-config>
    <activation-config-property><activation-config-property-name>destinationType</activation-config-property-name>
      <activation-config-property-value>javax.jms.Queue</activation-config-property-value>
    </activation-config-property>{more}
  </activation-config>
  <resource-ref><res-ref-name>jms/CF</res-ref-name><res-type>javax.jms.QueueConnectionFactory</res-type></resource-ref>
  <resource-ref><res-ref-name>jdbc/DB</res-ref-name><res-type>javax.sql.DataSource</res-type></resource-ref>
  <message-destination-ref><message-destination-ref-name>jms/out</message-destination-ref-name>
    <message-destination-type>javax.jms.Queue</message-destination-type></message-destination-ref>
</message-driven></enterprise-beans></ejb-jar>"""
MORE = """<activation-config-property><activation-config-property-name>{}</activation-config-property-name>
      <activation-config-property-value>{}</activation-config-property-value></activation-config-property>"""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text, "utf-8")
        return tmp_path / name

    return write


def ra(url="embedded://shop", options="JMSJCA.sep=,JMSJCA.NoXA=true,secret=x"):
    return RA.format(url=url, options=options, password="geheim")  # noqa: S106  # no secret


def ejb(**more):
    return EJB.format(more="".join(MORE.format(*pair) for pair in more.items()))


def reported(deployment):
    return {entry.name: entry.reason for entry in deployment.report}


def test_adapter_factories_and_destinations_are_read(write):
    found = read(write("ra.xml", ra()))
    adapter, factory = found.adapters["default"], found.factories["javax.jms.QueueConnectionFactory"]
    assert adapter.connection_url == "embedded://shop"
    assert adapter.password.get_secret_value() == "geheim"
    assert adapter.options == {"JMSJCA.NoXA": "true", "secret": "x"}
    assert (factory.kind, factory.idle_timeout, factory.producer_pooling) == ("queue", 30.0, True)
    assert found.destinations == {"q1234": Queue("q1234")}
    assert "no such property" in reported(found)["TransformerMBeanName"]


def test_bean_has_its_spec_and_references(write):
    found = read(write("ejb-jar.xml", ejb(destination="Queue1", concurrencyMode="cc", Foo="1")), write("ra.xml", ra()))
    spec = found.specs["orders"]
    assert (spec.destination, spec.destination_type, spec.concurrency_mode) == ("Queue1", "queue", "cc")
    assert found.factories["jms/CF"].producer_pooling is True
    assert reported(found).keys() >= {"Foo", "ejb-class", "transaction-type", "jdbc/DB", "jms/out"}


def test_companion_of_sun_names_destination_pool_and_references(write):
    sun = write(
        "sun-ejb-jar.xml",
        '<!DOCTYPE sun-ejb-jar PUBLIC "-//Sun//DTD" "http://localhost/none.dtd"><sun-ejb-jar><enterprise-beans><ejb>'
        "<ejb-name>orders</ejb-name><jndi-name>jms/in</jndi-name><gen-classes/>"
        "<message-destination-ref><message-destination-ref-name>jms/out</message-destination-ref-name>"
        "<jndi-name>global/out</jndi-name></message-destination-ref>"
        "<bean-pool><max-pool-size>7</max-pool-size></bean-pool></ejb></enterprise-beans></sun-ejb-jar>",
    )
    found = read(sun, write("ejb-jar.xml", ejb()))
    assert found.specs["orders"].destination == "lookup://jms/in"
    assert found.specs["orders"].endpoint_pool_max_size == 7
    assert found.destinations == {"jms/out": Queue("lookup://global/out")}
    assert "gen-classes" in reported(found)


def test_companion_of_weblogic_names_destination_and_client_id(write):
    weblogic = write(
        "weblogic-ejb-jar.xml",
        '<weblogic-ejb-jar xmlns="http://xmlns.oracle.com/weblogic/weblogic-ejb-jar"><weblogic-enterprise-bean>'
        "<ejb-name>orders</ejb-name><message-driven-descriptor><pool><max-beans-in-free-pool>3"
        "</max-beans-in-free-pool></pool><destination-jndi-name>jms/in</destination-jndi-name>"
        "<jms-client-id>c1</jms-client-id><jms-polling-interval-seconds>5</jms-polling-interval-seconds>"
        "</message-driven-descriptor></weblogic-enterprise-bean></weblogic-ejb-jar>",
    )
    spec = (found := read(write("ejb-jar.xml", ejb()), weblogic)).specs["orders"]
    assert (spec.destination, spec.client_id, spec.endpoint_pool_max_size) == ("lookup://jms/in", "c1", 3)
    assert "jms-polling-interval-seconds" in reported(found)


def test_pool_of_sun_is_in_the_options_of_each_factory(write):
    sun = write(
        "sun-ra.xml",
        '<sun-connector><resource-adapter jndi-name="" idle-timeout-in-seconds="1" max-pool-size="32"'
        ' max-wait-time-in-millis="10000" steady-pool-size="1"/></sun-connector>',
    )
    found = read(sun, write("ra.xml", ra()))
    options = found.factories["javax.jms.QueueConnectionFactory"].options
    assert options == {"JMSJCA.poolmaxsize": "32", "JMSJCA.poolminsize": "1", "JMSJCA.pooltimeout": "10000"}
    assert reported(found).keys() >= {"jndi-name", "idle-timeout-in-seconds"}


@pytest.mark.parametrize("scheme", ["stcms", "mq", "wmq5", "t3", "jboss", "stream", "stcms453"])
def test_url_of_a_family_is_kept_and_its_successor_reported(write, scheme):
    found = read(write("ra.xml", ra(f"{scheme}://host:1")))
    assert found.adapters["default"].connection_url == f"{scheme}://host:1"
    assert "://" in reported(found)["ConnectionURL"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><connector/>', "is refused"),
        ("<!DOCTYPE a [<!ELEMENT a ANY>]><connector/>", "declares a DTD of its own"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><connector>&b;</connector>', "is refused"),
        ("<connector>", "is refused"),
        ("<connector/>", "no element 'resourceadapter'"),
        ("<other/>", "<other> is not a known descriptor"),
    ],
)
def test_dangerous_or_unknown_file_is_refused(write, text, problem):
    with pytest.raises(ConfigurationError, match=problem):
        read(write("ra.xml", text))


def test_invalid_property_names_file_and_bean(write):
    with pytest.raises(ConfigurationError, match=r"ejb-jar\.xml: message-driven orders: .*endpoint_pool_max_size"):
        read(write("ejb-jar.xml", ejb(destination="q", endpointPoolMaxSize="0")))


def test_same_name_in_two_files_is_refused(write):
    toml = '[adapters.Shop]\nconnection_url = "embedded://a"\n'
    with pytest.raises(ConfigurationError, match=r"Two files define adapters\.Shop"):
        read(write("a.toml", toml), write("ra.xml", ra()))


def test_toml_holds_everything_but_secrets_and_is_read_again(write, monkeypatch):
    found = read(write("ra.xml", ra()), write("ejb-jar.xml", ejb(destination="Queue1", endpointPoolMaxSize="4")))
    text = to_toml(found.configuration)
    assert "geheim" not in text
    assert '"secret" = "x"' not in text
    monkeypatch.setenv("JMSJCA_ADAPTERS_DEFAULT_PASSWORD", "geheim")
    monkeypatch.setenv("JMSJCA_ADAPTERS_DEFAULT_SECRET", "x")
    assert read_configuration(write("jmsjca.toml", text)) == found.configuration


def test_toml_holds_the_variables_of_selectors(write):
    variables = {"selector": "region = ${region}", "selectorVariables": "region=EU"}
    found = read(write("ejb-jar.xml", ejb(destination="Queue1", **variables)))
    again = read_configuration(write("jmsjca.toml", to_toml(found.configuration)))
    assert again.listeners["orders"].selector_variables == {"region": "EU"}


def bean(*elements, assembly=""):
    """The text of an ejb-jar.xml with one bean, of elements as text or pairs of name and text."""
    inside = "".join(each if isinstance(each, str) else f"<{each[0]}>{each[1]}</{each[0]}>" for each in elements)
    return (
        f"<ejb-jar><enterprise-beans><message-driven><ejb-name>orders</ejb-name>{inside}</message-driven>"
        f"</enterprise-beans><assembly-descriptor>{assembly}</assembly-descriptor></ejb-jar>"
    )


def active(**properties):
    """The text of an activation config."""
    return f"<activation-config>{''.join(MORE.format(*pair) for pair in properties.items())}</activation-config>"


EJB20 = (
    ("message-selector", "a = 1"),
    ("acknowledge-mode", "Dups-ok-acknowledge"),
    (
        "<message-driven-destination><destination-type>javax.jms.Topic</destination-type>"
        "<subscription-durability>Durable</subscription-durability></message-driven-destination>"
    ),
)
SUN = (
    "<sun-ejb-jar><enterprise-beans><ejb><ejb-name>orders</ejb-name><jndi-name>jms/in</jndi-name>{}</ejb>{}"
    "</enterprise-beans></sun-ejb-jar>"
)


@pytest.mark.parametrize("companion", [SUN.format("", ""), None])
def test_elements_of_ejb_20_are_read(write, companion):
    texts = (bean(*EJB20, ("mapped-name", "jms/in")), companion)
    spec = read(*(write(f"{number}.xml", text) for number, text in enumerate(texts) if text)).specs["orders"]
    assert (spec.destination, spec.destination_type, spec.selector) == ("lookup://jms/in", "topic", "a = 1")
    assert (spec.acknowledge_mode.name, spec.durable, spec.subscription_name) == ("DUPS_OK", True, "orders")


def test_companion_names_the_subscription_of_ejb_20(write):
    name = "<jms-durable-subscription-name>s1</jms-durable-subscription-name>"
    found = read(write("ejb-jar.xml", bean(*EJB20)), write("sun-ejb-jar.xml", SUN.format(name, "")))
    assert found.specs["orders"].subscription_name == "s1"


MAPPINGS = {
    "none": ("", "in"),
    "ejb-jar": ("", "global"),
    "sun-ejb-jar": (
        SUN.format(
            "",
            "<message-destination><message-destination-name>in</message-destination-name>"
            "<jndi-name>global</jndi-name></message-destination>",
        ).replace("<jndi-name>jms/in</jndi-name>", ""),
        "global",
    ),
    "weblogic-ejb-jar": (
        (
            "<weblogic-ejb-jar><message-destination-descriptor><message-destination-name>in</message-destination-name>"
            "<destination-jndi-name>global</destination-jndi-name></message-destination-descriptor></weblogic-ejb-jar>"
        ),
        "global",
    ),
    "jboss-ejb3": (
        (
            '<ejb-jar xmlns="http://www.jboss.com/xml/ns/javaee"><assembly-descriptor><message-destination>'
            "<message-destination-name>in</message-destination-name><lookup-name>global</lookup-name>"
            "</message-destination></assembly-descriptor></ejb-jar>"
        ),
        "global",
    ),
}


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_link_leads_to_the_destination_of_the_server(write, mapping):
    text, wanted = MAPPINGS[mapping]
    own = (
        "<message-destination><message-destination-name>in</message-destination-name><lookup-name>global</lookup-name>"
        "</message-destination>"
    )
    types = ("message-destination-type", "jakarta.jms.Queue"), ("message-destination-link", "in")
    reference = (
        "<message-destination-ref><message-destination-ref-name>jms/r</message-destination-ref-name>"
        "<message-destination-type>javax.jms.Queue</message-destination-type>"
        "<message-destination-link>in</message-destination-link></message-destination-ref>"
    )
    jar = write("ejb-jar.xml", bean(*types, reference, assembly=own if mapping == "ejb-jar" else ""))
    found = read(*((jar, write(f"{mapping}.xml", text)) if text else (jar,)))
    assert found.specs["orders"].destination == f"lookup://{wanted}"
    assert wanted in reported(found)  # to be named under [destinations]
    assert found.destinations.get("jms/r") == (Queue("lookup://global") if wanted == "global" else None)


def test_lookups_of_jakarta_are_read(write):
    lookups = {
        "destinationLookup": "jms/in",
        "connectionFactoryLookup": "jms/CF",
        "acknowledgeMode": "AUTO_ACKNOWLEDGE",
    }
    found = read(write("ejb-jar.xml", bean(active(destinationType="jakarta.jms.Queue", **lookups))))
    spec = found.specs["orders"]
    assert (spec.destination, spec.connection_url) == ("lookup://jms/in", "lookup://jms/CF")
    assert reported(found).keys() >= {"jms/in", "jms/CF"}


@pytest.mark.parametrize(("text", "mode"), [("AUTO_ACKNOWLEDGE", "AUTO"), ("DUPS_OK_ACKNOWLEDGE", "DUPS_OK")])
def test_acknowledge_mode_may_be_a_constant_of_jms(write, text, mode):
    found = read(write("ejb-jar.xml", ejb(destination="q", acknowledgeMode=text)))
    assert found.specs["orders"].acknowledge_mode.name == mode


def test_values_that_do_not_count_are_reported(write):
    given = active(
        destination="q", destinationLookup="jms/other", destinationType="javax.jms.Queue", messageSelector="a"
    )
    elements = ("message-selector", "b"), ("message-destination-type", "javax.jms.Queue"), ("mapped-name", "m")
    found = read(write("ejb-jar.xml", bean(given, *elements)), write("sun-ejb-jar.xml", SUN.format("", "")))
    assert (found.specs["orders"].destination, found.specs["orders"].selector) == ("q", "a")
    told = {name: reason for name, reason in reported(found).items() if "counts instead" in reason}
    assert told == {
        "destinationLookup": "destination counts instead",
        "jndi-name": "destination counts instead",
        "mapped-name": "destination counts instead",
        "message-selector": "messageSelector counts instead",
    }


def test_defaults_of_the_adapters_activation_spec_count_where_a_bean_has_no_other(write):
    inbound = (
        "<inbound-resourceadapter><messageadapter><messagelistener><messagelistener-type>javax.jms.MessageListener"
        "</messagelistener-type><activationspec><activationspec-class>c</activationspec-class>"
        "<config-property><config-property-name>concurrencyMode</config-property-name>"
        "<config-property-type>java.lang.String</config-property-type>"
        "<config-property-value>cc</config-property-value></config-property>"
        "<config-property><config-property-name>messageSelector</config-property-name>"
        "<config-property-value>a = 1</config-property-value></config-property>"
        "<config-property><config-property-name>Colour</config-property-name>"
        "<config-property-value>red</config-property-value></config-property>"
        "</activationspec></messagelistener></messageadapter></inbound-resourceadapter></resourceadapter>"
    )
    text = ra().replace("</resourceadapter>", inbound)
    found = read(write("ra.xml", text), write("ejb-jar.xml", ejb(destination="q", messageSelector="b = 2")))
    spec = found.specs["orders"]
    assert (spec.concurrency_mode, spec.selector) == ("cc", "b = 2")
    assert reported(found).keys() >= {"Colour", "messageSelector", "activationspec-class"}


def test_filled_name_of_an_administered_destination_is_read(write):
    text = ra().replace("<config-property-name>Name<", "<config-property-name>PhysicalName<")
    assert read(write("ra.xml", text)).destinations == {"q1234": Queue("q1234")}
    other = ra().replace("<config-property-name>Name<", "<config-property-name>Label<")
    assert "template" not in reported(read(write("ra.xml", other)))["Label"]


JBOSS = """<jboss:ejb-jar xmlns:jboss="http://www.jboss.com/xml/ns/javaee" xmlns="http://java.sun.com/xml/ns/javaee"
  xmlns:r="urn:resource-adapter-binding:1.0" xmlns:d="urn:delivery-active:1.1"><enterprise-beans><message-driven>
  <ejb-name>{name}</ejb-name>{inside}</message-driven></enterprise-beans><assembly-descriptor>
  <r:resource-adapter-binding><ejb-name>*</ejb-name><r:resource-adapter-name>none.rar</r:resource-adapter-name>
  </r:resource-adapter-binding><d:delivery><ejb-name>orders</ejb-name><d:active>false</d:active></d:delivery>
  </assembly-descriptor></jboss:ejb-jar>"""


def test_jboss_overrides_the_bean_and_binds_its_adapter(write):
    text = JBOSS.format(name="orders", inside=active(destination="q2", concurrencyMode="cc"))
    jar = write("ejb-jar.xml", ejb(destination="q1", endpointPoolMaxSize="4"))
    found = read(write("jboss-ejb3.xml", text), jar, write("ra.xml", ra()))
    spec = found.specs["orders"]
    assert (spec.destination, spec.concurrency_mode, spec.endpoint_pool_max_size) == ("q2", "cc", 4)
    assert "none.rar" in reported(found)["resource-adapter"]
    assert "stop" in reported(found)["delivery"]


def test_a_bean_of_jboss_needs_no_ejb_jar(write):
    inside = f"<ejb-class>A</ejb-class>{active(destination='q', destinationType='javax.jms.Queue')}"
    assert read(write("jboss-ejb3.xml", JBOSS.format(name="other", inside=inside))).specs["other"].destination == "q"


@pytest.mark.parametrize(("method", "transaction"), [("onMessage", "none"), ("*", "none"), ("ejbTimeout", "local")])
def test_transaction_attribute_is_that_of_the_method_that_gets_messages(write, method, transaction):
    assembly = (
        f"<container-transaction><method><ejb-name>orders</ejb-name><method-name>{method}</method-name></method>"
        "<trans-attribute>NotSupported</trans-attribute></container-transaction>"
    )
    given = active(destination="q", destinationType="javax.jms.Queue")
    found = read(write("ejb-jar.xml", bean(given, assembly=assembly)))
    assert found.specs["orders"].transaction == transaction


def test_two_companions_add_to_one_bean(write):
    one, other = SUN.format("", ""), SUN.format("<bean-pool><max-pool-size>3</max-pool-size></bean-pool>", "")
    jar = write("ejb-jar.xml", bean(("message-destination-type", "javax.jms.Queue")))
    spec = read(jar, write("a.xml", one), write("b.xml", other.replace("<jndi-name>jms/in</jndi-name>", ""))).specs[
        "orders"
    ]
    assert (spec.destination, spec.endpoint_pool_max_size) == ("lookup://jms/in", 3)


def test_additions_to_other_beans_and_annotations_are_reported(write):
    jar = write("ejb-jar.xml", ejb(destination="q").replace("<ejb-jar>", '<ejb-jar version="3.2">'))
    found = read(jar, write("sun-ejb-jar.xml", SUN.format("", "").replace("orders", "cart")))
    assert "not a message-driven bean" in reported(found)["ejb"]
    assert "annotations" in reported(found)["metadata-complete"]


def test_login_of_a_connection_factory_is_read_and_in_no_text(write):
    login = (
        "<mdb-connection-factory><jndi-name>jms/CF</jndi-name><default-resource-principal><name>shop</name>"
        "<password>geheim</password></default-resource-principal></mdb-connection-factory>"
    )
    found = read(write("ejb-jar.xml", ejb(destination="q")), write("sun-ejb-jar.xml", SUN.format(login, "")))
    spec = found.specs["orders"]
    assert (spec.connection_url, spec.user_name) == ("lookup://jms/CF", "shop")
    assert spec.password.get_secret_value() == "geheim"
    assert "geheim" not in f"{found.report}{to_toml(found.configuration)}"


KINDS = {"javax.jms.Queue": "destination_type='queue'", "javax.jms.Topic": "destination_type='topic'"}


@pytest.fixture(scope="module")
def deployed():
    """The folder with descriptors of real deployments."""
    if not os.environ.get("JMSJCA_DATA"):
        pytest.skip("JMSJCA_DATA names no folder with descriptors.")
    return Path(os.environ["JMSJCA_DATA"], "descriptors")


def test_each_property_of_deployed_descriptors_is_carried_over_or_reported(deployed):
    files = sorted(deployed.glob("*.xml"))
    assert len(files) == 7
    for file in files:
        found = read(file)
        told = {entry.name for entry in found.report}
        kept = f"{to_toml(found.configuration)}{found.configuration!r}{found.specs!r}"
        for name, value in properties_of(file):
            forms = {value, f"{int(value) / 1000}" if value.isdigit() else value, KINDS.get(value, value)} - {""}
            assert name in told or any(form in kept for form in forms), f"{file.name}: {name} = {value!r}"


def properties_of(file):
    """The names and values of all properties and environment entries of a descriptor."""
    for prefix in ("config-property", "activation-config-property", "env-entry"):
        for each in ET.parse(file).iterfind(f".//{{*}}{prefix}"):  # noqa: S314  # a file that we were given
            yield each.findtext(f"{{*}}{prefix}-name").strip(), (each.findtext(f"{{*}}{prefix}-value") or "").strip()


def with_url(path, url):
    """The text of a resource adapter's descriptor with another ConnectionURL."""
    root = ET.parse(path).getroot()  # noqa: S314  # a file that we were given
    prefix = ".//{*}resourceadapter/{*}config-property"
    (found,) = (each for each in root.iterfind(prefix) if each.findtext("{*}config-property-name") == "ConnectionURL")
    value = found.find("{*}config-property-value")
    if value is None:
        value = ET.SubElement(found, "config-property-value")
    value.text = url
    return ET.tostring(root, "unicode")


@pytest.mark.parametrize("family", ["stcms", "unifiedjms", "wmq", "jndi"])
def test_deployed_descriptors_start_an_adapter_that_receives_and_sends(deployed, write, family):
    """Only the URL is another: that of the embedded broker."""
    own = write("ra.xml", with_url(deployed / f"{family}--ra.xml", f"embedded://deployed-{family}"))
    found = read(own, *(deployed / f"core-test--{name}.xml" for name in ("ejb-jar", "sun-ejb-jar", "sun-ra")))
    adapter, inbox = ResourceAdapter.from_configuration(found.configuration), Inbox()
    activation = adapter.activate(found.specs["mdbtest"], inbox)
    assert (activation.spec.concurrency_mode, activation.spec.endpoint_pool_max_size) == ("cc", 10)
    with adapter:
        adapter.send("Queue1", "sent")
        factory = adapter.naming.lookup("queuefact")
        factory.send("Queue1", "sent by its factory")
        assert sorted(body for body, _ in inbox.take(2)) == ["sent", "sent by its factory"]
    factory.close()
