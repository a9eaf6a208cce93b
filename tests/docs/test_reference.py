"""The reference names every public object, option and command; the index for language models names every page."""

import ast
import inspect
import pkgutil
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

import jmsjca
from tests.support import llms_text, reference

ROOT = Path(jmsjca.__file__).parent
NAVIGATION = (reference.FOLDER.parents[1] / "mkdocs.yml").read_text()
FOLDERS = {"tutorial", "how-to", "migration", "reference", "explanation"}  # a section of the navigation each
# Rooms without public names of their own: their names are public elsewhere, or they are programs.
INTERNAL = {"__main__", "adapter", "arguments", "demo", "destinations", "forking", "log_records", "reconnection"}


def rooms():
    return {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {
        "__init__"
    }


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_every_room_is_in_the_reference_or_internal():
    assert rooms() - INTERNAL <= {module.split(".")[1] for module in reference.MODULES if "." in module}


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_public_name_is_in_the_reference(module, pages):
    everywhere = "\n".join(pages.values())
    for name in import_module(module).__all__:
        documented = f"::: {module}.{name}\n" in everywhere or f"::: jmsjca.{name}\n" in everywhere
        assert documented or name.startswith("__"), name


def documented(module, name):
    """Return whether a module of the reference has the same object under this name."""
    value = getattr(import_module(module), name)
    if inspect.ismodule(value):
        return value.__name__ in reference.MODULES
    holders = [import_module(each) for each in reference.MODULES]
    return any(getattr(each, name) is value for each in holders if name in each.__all__)


def test_every_public_name_of_a_package_is_in_the_reference():
    packages = [each.name for each in pkgutil.walk_packages(jmsjca.__path__, "jmsjca.") if each.ispkg]
    public = {name: getattr(import_module(name), "__all__", ()) for name in packages}
    assert len([name for name in public if public[name]]) > 12
    assert [f"{module}.{name}" for module in public for name in public[module] if not documented(module, name)] == []


def imports(page):
    """Yield the module and the name of each import from jmsjca in the examples of a page."""
    for block in re.findall(r"^```(?:python|py|text)[^\n]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        with suppress(SyntaxError):  # a text that is not Python
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jmsjca":
                    yield from ((node.module, each.name) for each in node.names)


def test_every_name_that_an_example_imports_is_in_the_reference():
    found = {each for page in (llms_text.DOCS.parent / "README.md", *llms_text.pages()) for each in imports(page)}
    assert len(found) > 100
    missing = [
        f"{module}.{name}"
        for module, name in sorted(found)
        if not (module in reference.MODULES if name == "*" else documented(module, name))
    ]
    assert missing == []


def test_every_public_name_has_a_docstring():
    for module in reference.MODULES:
        for name in reference.public_names(module):
            value = getattr(import_module(module), name)
            assert not (inspect.isclass(value) or inspect.isroutine(value)) or inspect.getdoc(value), f"{module}.{name}"


def test_every_option_is_in_the_settings(pages):
    for name in ("connect_timeout", "queue_type", "java_maps", "prefetch_bytes", "receive_timeout", "JMSJCA.selector"):
        assert re.search(rf"^\| `{re.escape(name)}` \|", pages["settings"], flags=re.MULTILINE), name


def test_every_field_of_a_configuration_file_is_in_the_reference(pages):
    for title, name in (
        ("adapters", "user_name"),
        ("listeners", "handler"),
        ("factories", "kind"),
        ("destinations", "topic"),
    ):
        section = pages["configuration"].partition(f"## `[{title}.NAME]`")[2].partition("## ")[0]
        assert re.search(rf"^\| `{name}` \| [^|]+ \|.*\| \S.* \|$", section, flags=re.MULTILINE), title


def test_every_command_is_in_the_reference(pages):
    for command in ("demo", "queues", "dlq list", "selector test", "relay"):
        assert f"## jmsjca {command}\n" in pages["commands"]


def test_the_navigation_has_every_page():
    written = {page.relative_to(llms_text.DOCS).as_posix() for page in llms_text.DOCS.rglob("*.md")}
    named = set(re.findall(r": ([\w/.-]+\.md)$", NAVIGATION, flags=re.MULTILINE))
    assert {name for name in written if not name.startswith("reference/api/")} <= named
    assert {f"reference/api/{module}.md" for module in reference.MODULES} <= named


def test_the_first_page_has_six_doors_and_leads_to_each_section():
    page = (llms_text.DOCS / "index.md").read_text()
    doors = re.findall(r"^\| \*\*[^|]+\*\* \|.*\]\(([\w/.-]+\.md)", page, flags=re.MULTILINE)
    assert len(doors) == 6
    assert {link.partition("/")[0] for link in re.findall(r"\]\(([\w/.-]+\.md)", page)} == FOLDERS | {"contributing.md"}


def test_every_page_lies_in_the_folder_of_its_section():
    sections = llms_text.sections()
    assert [page.name for page in sections.pop("Pages")] == ["index.md", "contributing.md"]
    folders = {
        section.lower().replace(" ", "-"): {page.parent.name for page in sections[section]} for section in sections
    }
    assert folders == {folder: {folder} for folder in FOLDERS}


def test_the_index_for_language_models_describes_every_page():
    lines = llms_text.text().splitlines()
    assert len([line for line in lines if line.startswith("- [")]) == len(llms_text.pages()) > 40
    assert [line for line in lines if line.startswith("- [") and len(line.split("): ")[1]) < 20] == []


def test_a_name_that_the_site_lacks_is_found(tmp_path):
    page = tmp_path / "reference" / "api" / "jmsjca.hooks" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<h2 id="jmsjca.hooks.DeadLetter">')
    missing = reference.missing_in(tmp_path)
    assert "jmsjca.hooks.HookChain" in missing
    assert "jmsjca.hooks.DeadLetter" not in missing


def test_a_dead_link_of_the_site_is_found(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "index.html").write_text('<a href="../#top"><h2 id="here"><img src="../picture.png">')
    (tmp_path / "index.html").write_text(
        '<a href="guide/"><a href="guide/#here"><a href=guide/#gone>'
        '<a href="https://elsewhere"><h1 id=top><a href="#top">'
    )
    assert reference.dead_links_in(tmp_path) == ["guide/index.html: ../picture.png", "index.html: guide/#gone"]


def test_a_picture_of_another_site_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<img alt="x" src="https://elsewhere/1f517.svg"><a href="https://elsewhere"><img src="own.png">'
    )
    assert reference.foreign_pictures_in(tmp_path) == ["index.html: https://elsewhere/1f517.svg"]
