"""The wheel and the sdist: reproducible, complete, without what does not belong there, and installable alone."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import jmsjca

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
HEAVY = ("spark", "demo", "all")  # hundreds of megabytes
INSTALLS = re.compile(r"pip install (?:--\S+ )*\"(?:jmsjca|\.)\[([a-z,]+)\]\"")

# What an extra makes possible, as a program in an environment that has nothing else.
PROGRAMS = {
    "": """
import jmsjca.transactions
from jmsjca import ConnectionFactory, Queue, ResourceAdapter
from jmsjca.errors import ProviderNotInstalledError
adapter = ResourceAdapter("embedded://minimal")
@adapter.listener("quotes")
def quote(body: str) -> str:
    return f"{body} costs 1"
with adapter:
    assert adapter.request("quotes", "a pear", timeout=60).body == "a pear costs 1"
for scheme in ("amqp", "stomp"):
    try:
        ConnectionFactory(f"{scheme}://127.0.0.1:1").create_connection()
    except ProviderNotInstalledError as error:
        assert f'pip install "jmsjca[{scheme}]"' in str(error), error
    else:
        raise AssertionError(scheme)
try:
    jmsjca.transactions.Outbox
except ProviderNotInstalledError as error:
    assert 'pip install "jmsjca[transactions]"' in str(error), error
""",
    "amqp": "from jmsjca.providers import find_provider; find_provider('amqp'); find_provider('amqps')",
    "stomp": "from jmsjca.providers import find_provider; find_provider('stomp'); find_provider('stomp+ssl')",
    "cli": "from jmsjca.__main__ import run; assert run(['explain', '3:25; 5:move(queue:dlq.$)']) == 0",
    "descriptors": """
import pathlib, jmsjca.descriptors
pathlib.Path("ejb-jar.xml").write_text("<ejb-jar><enterprise-beans/></ejb-jar>")
assert jmsjca.descriptors.read("ejb-jar.xml").specs == {}
""",
    "connector": "import defusedxml, sqlalchemy; from jmsjca.connector import Connector, ConnectorConfig",
    "metrics": """
from prometheus_client import CollectorRegistry
from jmsjca.management.metrics import Metrics
Metrics(CollectorRegistry())
""",
    "tracing": "from jmsjca.management.tracing import Tracing; Tracing()",
    "console": "from jmsjca.management.console import Console; Console('embedded://x')",
    "mcp": "import jmsjca, mcp",
    "transactions": """
import sqlalchemy
from transaction import TransactionManager
from jmsjca.transactions import JoinedTransactionManager, Outbox, Relay, SqlInbox, joined_session
Outbox(sqlalchemy.MetaData())
manager = TransactionManager(explicit=True)
manager.begin()
session = joined_session(sqlalchemy.create_engine("sqlite://"), manager)
assert session.execute(sqlalchemy.text("SELECT 1")).scalar() == 1
manager.commit()
""",
    "spark": "from jmsjca.spark import SCHEMA, register",
    "objectstore": "import jmsjca; from obstore.store import MemoryStore; MemoryStore()",
    "demo": "from jmsjca.__main__ import run; assert run(['demo', '--help']) == 0; import matplotlib, psutil",
    "all": "import jmsjca.spark, jmsjca.connector, jmsjca.management.console",
}


def build(source, folder):
    """Build both distributions of a source tree; return their paths."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=240)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built[0]) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode())


def test_a_second_build_has_the_same_bytes(built, tmp_path):
    again = build(ROOT, tmp_path)
    assert [each.name for each in again] == [each.name for each in built]
    assert [each.read_bytes() for each in again] == [each.read_bytes() for each in built]


def test_the_sdist_makes_the_same_wheel(built, tmp_path):
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    (tmp_path / "wheel").mkdir()
    wheel, _ = build(source, tmp_path / "wheel")
    assert wheel.read_bytes() == built[0].read_bytes()


def pip(*arguments):
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True, timeout=240)


@pytest.mark.parametrize("place", ["repository", "wheel", "clone"])
def test_the_package_is_installed_as_the_readme_says_until_it_is_on_an_index(built, tmp_path, place):
    """Without the packages of the extra, which other tests install."""
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [clone] = (tmp_path / "source").iterdir()
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.com"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *arguments], cwd=clone, check=True, timeout=240)
    where = {
        "repository": f"jmsjca[cli] @ git+{clone.as_uri()}",
        "wheel": f"jmsjca[cli] @ {built[0].as_uri()}",
        "clone": f"{clone}[cli]",
    }[place]
    pip("install", "--no-deps", "--no-build-isolation", "--target", str(tmp_path), where)
    command = [sys.executable, "-P", "-c", "import jmsjca; print(jmsjca.__file__)"]
    found = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == tmp_path / "jmsjca" / "__init__.py"


def test_the_pages_that_come_first_say_how_to_install_it_until_then():
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text()
        assert "not on PyPI yet" in text
        assert 'pip install "jmsjca[cli] @ git+REPOSITORY"' in text


def test_the_wheel_has_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as archive:
        names = archive.namelist()
    kinds = {Path(name).suffix for name in names if ".dist-info/" not in name} - {".jar"}
    assert kinds <= {".py", ".typed", ".html", ".css", ".js", ".lark", ".toml", ".json", ".java", ".txt"}
    assert {name for name in names if name.endswith(".jar")} == {"jmsjca/providers/java/bridge.jar"}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"jmsjca", "pyspark_jmsjca.py"}
    for needed in (
        "jmsjca/py.typed",
        "jmsjca/testing/contract/sessions.py",
        "jmsjca/management/console/static/live.js",
    ):
        assert needed in names


def test_the_sdist_has_no_artifacts_of_builds_or_tests(built):
    with tarfile.open(built[1]) as archive:
        names = archive.getnames()
    made = {".png", ".svg", ".so", ".pyc", ".jar", ".db", ".class"}
    found = [name for name in names if Path(name).suffix in made]
    assert [name for name in found if "/docs/figures/readme/" not in name] == []
    assert {Path(name).name for name in found} == {"console.png", "delays.png"}  # those that README shows


def test_the_changelog_begins_with_this_version_and_has_an_entry_a_line():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert next(line for line in lines if line.startswith("## ")).startswith(f"## [{jmsjca.__version__}] - 20")
    assert [line for line in lines if line.startswith(" ") or len(line) > 150] == []


def test_the_documentation_installs_only_extras_that_exist(metadata):
    named = {extra for page in PAGES for line in INSTALLS.findall(page.read_text()) for extra in line.split(",")}
    assert len(named) > 8
    assert named <= set(metadata.get_all("Provides-Extra"))


def test_every_extra_has_a_program(metadata):
    assert set(metadata.get_all("Provides-Extra")) | {""} == set(PROGRAMS)


def test_the_readme_describes_every_extra(metadata):
    table = (ROOT / "README.md").read_text()
    assert [extra for extra in metadata.get_all("Provides-Extra") if f"`{extra}`" not in table] == []


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param(each, id=each or "minimal", marks=[pytest.mark.torture] if each in HEAVY else [])
        for each in PROGRAMS
    ],
)
def test_it_works_in_an_environment_of_its_own(built, extra, tmp_path):
    run_alone(built[0], extra, tmp_path, sys.executable)


def interpreter(version):
    """Return the Python of a version, from the PATH or from pyenv; None if the machine has none that starts."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for python in filter(None, found):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(python)
    return None


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_it_works_with_another_python(built, version, tmp_path):
    if (python := interpreter(version)) is None:
        pytest.skip(f"This machine has no Python {version}: install one, for instance with pyenv.")
    run_alone(built[0], "", tmp_path, python)


def run_alone(wheel, extra, tmp_path, interpreter):
    """Install the wheel into an empty environment, and run the program of the extra there."""
    subprocess.run([interpreter, "-m", "venv", "--without-pip", "venv"], cwd=tmp_path, check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    target = f"{wheel}[{extra}]" if extra else str(wheel)
    installed = subprocess.run(
        [*pip, "install", "--quiet", target], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert installed.returncode == 0, installed.stderr
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    done = subprocess.run(
        [str(python), "-W", "error", "-c", PROGRAMS[extra]],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "venv" / "bin" / "jmsjca").exists()
