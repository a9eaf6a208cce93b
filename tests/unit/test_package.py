"""What ``import jmsjca`` offers, and what it leaves alone."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import architecture_files
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
    script = f"import sys, {module}; print([m for m in {[*_HEAVY, 'msgspec']!r} if m in sys.modules])"
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


# The list of the layers stands in the documentation, once.
_ARCHITECTURE = (Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md").read_text("utf-8")
_LAYERS = re.findall(r"^\| `(\w+)` \|", _ARCHITECTURE.partition("## Layers")[2].partition("\n## ")[0], re.MULTILINE)
# Packages of providers that hold a docstring only: Python runs them before any of their modules, which closes cycles.
_BARE_PACKAGES = (".engine", ".links", ".brokers", ".codec", ".protocol", ".store")


def _sources():
    """Return the source of each module by its name."""
    root = Path(jmsjca.__file__).parent
    named = {".".join(path.relative_to(root.parent).with_suffix("").parts): path for path in root.rglob("*.py")}
    return {name.removesuffix(".__init__"): path.read_text("utf-8") for name, path in named.items()}


@cache
def _imported_names(source):
    """Return the names that a module imports, at run time or for types, at its top or in functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def _imported(module, sources):
    """Return the modules of the package that a module imports, without the packages that contain it."""
    names = _imported_names(sources[module])
    return {name for name in names & sources.keys() if not f"{module}.".startswith(f"{name}.")}


def _family(module):
    """Return the provider that a module belongs to; of brokers by the end of its name: another library is missing."""
    if module[2:3] != ["brokers"]:
        return (module[2:3] or ["common"])[0]
    protocol = module[-1].rpartition("_")[2]
    return protocol if protocol in {"amqp", "stomp"} else "common"


def _violations(sources):
    imports = {module: _imported(module, sources) for module in sources}
    for module, imported in ((m.split("."), i.split(".")) for m, found in imports.items() for i in sorted(found)):
        if module[1:] and _LAYERS.index(imported[1]) < _LAYERS.index(module[1]):
            yield f"{'.'.join(module)} imports {'.'.join(imported)}, which is in a higher layer"
        is_of_provider = module[1:2] == imported[1:2] == ["providers"] and module[2:]
        if is_of_provider and _family(imported) not in {"common", _family(module)}:
            yield f"{'.'.join(module)} imports {'.'.join(imported)}: providers import only their own and common modules"
    for module in {m.rpartition(".")[0] for m in sources}:
        if module.endswith(_BARE_PACKAGES) and len(ast.parse(sources[module]).body) > 1:
            yield f"{module}/__init__.py has more than a docstring"
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield f"import cycle: {error.args[1]}"


# Calls that Linux has and macOS lacks, and the files that have a fallback: the table of docs/contributing.md.
_LINUX_ONLY = re.compile(
    r"posix_fallocate|posix_fadvise|O_TMPFILE|O_DIRECT\b|O_PATH|/proc|memfd_create|eventfd|timerfd|pidfd|signalfd"
    r"|SO_PEERCRED|sched_[gs]etaffinity|copy_file_range|fdatasync|epoll|inotify|prctl|accept4|SOCK_CLOEXEC"
    r"|SOCK_NONBLOCK|MSG_NOSIGNAL|TCP_KEEPIDLE|TCP_USER_TIMEOUT|MADV_|sem_open|getrandom|os\.fork\("
    r"""|bind\(f?b?["']\\0"""
)
_WITH_FALLBACK = dict.fromkeys(("posix_fallocate", "/proc"), "providers/embedded/store/shared_file.py")


def test_calls_that_only_linux_has_are_few_and_have_a_fallback():
    package = Path(jmsjca.__file__).parent
    found = {
        (call, path.relative_to(package).as_posix())
        for path in package.rglob("*.py")
        for call in _LINUX_ONLY.findall(path.read_text())
    }
    assert found == set(_WITH_FALLBACK.items())


def test_the_architecture_page_has_each_layer_and_names_only_files_that_exist():
    package = Path(jmsjca.__file__).parent
    assert {name.split(".")[1] for name in _sources() if "." in name} == set(_LAYERS)
    files = re.findall(r"(?<![\w*./])(\w+/[\w/]+\.py)", _ARCHITECTURE)
    gone = [file for file in files if not any(path.is_file() for path in (package / file, package.parent / file))]
    assert [file for file in gone if not list(package.rglob(file))] == []


def test_the_architecture_page_lists_each_file_with_its_docstring():
    """Else run ``python -m tests.support.architecture_files``."""
    assert architecture_files.section() in _ARCHITECTURE


def test_modules_import_only_lower_layers_and_no_cycle():
    assert list(_violations(_sources())) == []


@pytest.mark.parametrize(
    ("module", "statement", "violation"),
    [
        ("jmsjca.spi", "from jmsjca.outbound import session", "higher layer"),
        ("jmsjca.spi", "def f():\n    import jmsjca.outbound.session", "higher layer"),
        ("jmsjca.spi", "if TYPE_CHECKING:\n    from jmsjca.outbound.session import Session", "higher layer"),
        ("jmsjca.providers.common.unit", "from jmsjca.providers.amqp import unit", "only their own"),
        ("jmsjca.providers.stomp.unit", "from jmsjca.providers.amqp.unit import AMQPUnit", "only their own"),
        ("jmsjca.providers.brokers.qpid_amqp", "from jmsjca.providers.stomp.unit import STOMPUnit", "only their own"),
        ("jmsjca.providers.brokers.artemis", "from jmsjca.providers.amqp.unit import AMQPUnit", "only their own"),
        ("jmsjca.providers.amqp.codec.sections", "from jmsjca.providers.amqp.unit import AMQPUnit", "import cycle"),
        ("jmsjca.providers.amqp.engine", "from jmsjca.providers.amqp.engine.engine import Engine", "than a docstring"),
        ("jmsjca.providers.stomp.protocol", "X = 1", "than a docstring"),
    ],
)
def test_planted_import_is_a_violation(module, statement, violation):
    sources = _sources()
    sources[module] += f"\n{statement}\n"
    assert any(violation in found for found in _violations(sources))
