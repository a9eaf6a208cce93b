"""The configuration file."""

import re

import pytest

from jmsjca import ActivationSpec, Queue, Topic
from jmsjca.config.configuration_file import Configuration, load_handler, read_configuration
from jmsjca.errors import ConfigurationError

COMPLETE = """
[adapters.default]
connection_url = "embedded://shop"
user_name = "shop"
password = "${env:SHOP_PASSWORD}"
options = { "JMSJCA.concurrencymode" = "cc" }

[listeners.orders]
handler = "os.path:join"
destination = "orders"
endpoint_pool_max_size = 3

[factories."jms/CF"]
kind = "queue"
client_id = "shop-1"
idle_timeout = 5

[destinations]
"jms/orders" = { queue = "orders" }
"jms/prices" = { topic = "prices" }
"""


def read(folder, text, name="jmsjca.toml"):
    path = folder / name
    path.write_text(text, "utf-8")
    return read_configuration(path)


def test_all_sections_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "geheim")
    found = read(tmp_path, COMPLETE)
    assert found.adapters["default"].password.get_secret_value() == "geheim"
    assert found.adapters["default"].options == {"JMSJCA.concurrencymode": "cc"}
    assert found.listeners["orders"].handler == "os.path:join"
    assert found.listeners["orders"].spec == ActivationSpec(destination="orders", endpoint_pool_max_size=3)
    assert found.factories["jms/CF"].client_id == "shop-1"
    assert [section.destination for section in found.destinations.values()] == [Queue("orders"), Topic("prices")]
    assert "geheim" not in repr(found)


def test_pyproject_has_it_in_a_table_of_its_own(tmp_path):
    text = '[project]\nname = "shop"\n[tool.jmsjca.adapters.default]\nconnection_url = "embedded://a"\n'
    assert read(tmp_path, text, "pyproject.toml").adapters["default"].connection_url == "embedded://a"


def test_a_pyproject_whose_tool_is_no_table_has_no_adapter(tmp_path):
    assert read(tmp_path, "tool = 3\n", "pyproject.toml").adapters == {}


def test_variables_that_are_not_set_are_named_all_at_once(tmp_path):
    text = '[adapters.a]\nuser_name = "${env:NO_SUCH_1}"\npassword = "x${env:NO_SUCH_2}"\n'
    with pytest.raises(
        ConfigurationError, match=r"adapters\.a\.user_name.*'NO_SUCH_1'.*adapters\.a\.password.*NO_SUCH_2"
    ):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[adapters.a]\nusername = 'secret'",
            r"a\.username: there is no such entry \(did you mean user_name",
        ),
        ("[listener.a]\ndestination = 'q'", r"listener: there is no such entry \(did you mean listeners"),
        ("[listeners.a]\nhandler = 'f'", "destination"),
        ("[listeners.a]\ndestination = 'q'\nbatchsize = 1", "batchsize"),
        ("[adapters.a]\nconnection_url = 'host'", "must begin with a scheme"),
        ("[destinations.a]", "either a queue or a topic"),
        ("[adapters.a]\npassword = [1, 2]", "password: Input should be a valid string"),
        ("[adapters", "is no TOML file"),
    ],
)
def test_problem_is_named_without_secrets(tmp_path, text, problem):
    with pytest.raises(ConfigurationError, match=problem) as raised:
        read(tmp_path, text)
    assert "secret" not in str(raised.value)
    assert "[1, 2]" not in str(raised.value)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.toml cannot be read"):
        read_configuration(tmp_path / "none.toml")


def test_adapter_is_found_by_name_or_as_the_only_one(tmp_path):
    two = read(tmp_path, "[adapters.a]\n[adapters.b]\n[listeners.x]\ndestination = 'q'\nadapter = 'b'\n")
    assert two.adapter_name("b") == "b"
    assert list(two.listeners_of("b")) == ["x"]
    assert not two.listeners_of("a")
    with pytest.raises(ConfigurationError, match=r"no adapter 'default'; name one \(it has: a, b\)"):
        two.adapter_name()
    with pytest.raises(ConfigurationError, match=r"no adapter 'c'"):
        two.adapter_name("c")
    assert read(tmp_path, "[adapters.a]").adapter_name() == "a"
    with pytest.raises(ConfigurationError, match=r"no adapter 'hbu' \(it has: none; connectors: hub\)"):
        read(tmp_path, "[connectors.hub]").adapter_name("hbu")


def test_schema_describes_each_field():
    schema = Configuration.model_json_schema()
    assert {"adapters", "factories", "listeners", "destinations", "connectors"} == set(schema["properties"])
    assert "batch_size" in schema["$defs"]["ListenerSection"]["properties"]


def test_handler_is_loaded_by_its_name():
    assert load_handler("json:JSONDecoder.decode").__name__ == "decode"
    with pytest.raises(ConfigurationError, match="'no_module:f': no_module cannot be imported"):
        load_handler("no_module:f")
    with pytest.raises(ConfigurationError, match="json has no function 'nothing'"):
        load_handler("json:nothing")


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Modules that cannot be imported, or have no such function."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mistaken_handlers.py").write_text("\n\nx = undefined_name\n")
    (tmp_path / "wordy_handlers.py").write_text("raise ValueError('no shop\\nat all')\n")
    (tmp_path / "broken_handlers.py").write_text("def (\n")
    (tmp_path / "lazy_handlers.py").write_text("def __getattr__(name):\n    raise RuntimeError(name)\n")


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("", "The handler '' must be module:function."),
        (":f", "The handler ':f' must be module:function."),
        ("foo", "The handler 'foo' must be module:function."),
        (".:f", "The handler '.:f' must be module:function."),
        ("..a:f", "The handler '..a:f' must be module:function."),
        ("a\nb:f", r"The handler 'a\nb:f': a\nb cannot be imported: ModuleNotFoundError: No module named 'a\nb'."),
        ("os..path:f", "os..path cannot be imported: ModuleNotFoundError: No module named 'os.'"),
        (
            "mistaken_handlers:f",
            "mistaken_handlers cannot be imported: NameError: name 'undefined_name' is not defined (",
        ),
        ("mistaken_handlers:f", "mistaken_handlers.py, line 3)."),
        ("wordy_handlers:f", r"wordy_handlers cannot be imported: ValueError: no shop\nat all ("),
        ("broken_handlers:f", "broken_handlers cannot be imported: SyntaxError: "),
        ("lazy_handlers:f", "lazy_handlers cannot be imported: RuntimeError: f ("),
    ],
)
@pytest.mark.usefixtures("modules")
def test_a_handler_that_cannot_be_loaded_is_one_line(reference, text):
    with pytest.raises(ConfigurationError, match=re.escape(text)) as caught:
        load_handler(reference)
    assert str(caught.value).isprintable()
