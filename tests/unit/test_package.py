"""What ``import jmsjca`` offers, and what it leaves alone."""

import inspect
import subprocess
import sys

import pytest

import jmsjca

_HEAVY = ["jmsjca.inbound", "proton", "stomp", "pyspark", "pyarrow", "typer", "rich", "pydantic", "tenacity", "lark"]


def test_public_names_are_sorted_and_there():
    assert list(jmsjca.__all__) == sorted(set(jmsjca.__all__))
    assert [name for name in jmsjca.__all__ if not hasattr(jmsjca, name)] == []


def test_public_names_are_complete():
    public = {name for name, value in vars(jmsjca).items() if inspect.isclass(value) and not name.startswith("_")}
    assert public <= set(jmsjca.__all__)


def test_rooms_are_there_without_being_imported():
    script = "import jmsjca; print(jmsjca.inbound.current_context, jmsjca.redelivery, jmsjca.adapter)"
    subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        _ = jmsjca.Nothing


def test_public_names_are_shown_before_they_are_loaded():
    script = "import jmsjca; print(*sorted(set(jmsjca.__all__) - set(dir(jmsjca))))"
    assert not subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("module", ["jmsjca", "jmsjca.testing.pytest_plugin", "jmsjca.spi"])
def test_importing_loads_nothing_heavy(module):
    script = f"import sys, {module}; print([m for m in {_HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_making_a_factory_loads_nothing_heavy():
    script = f"""
import sys, jmsjca
with jmsjca.ConnectionFactory("embedded://x").create_connection() as connection:
    connection.create_session().create_producer(jmsjca.Queue("q")).send(jmsjca.TextMessage("a"))
print([m for m in {_HEAVY!r} if m in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
