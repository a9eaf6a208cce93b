"""The command ``jmsjca convert``."""

import json

from jmsjca.__main__ import run
from jmsjca.config.configuration_file import read_configuration
from tests.unit.descriptors.test_deployment import ejb, ra


def test_descriptors_become_a_configuration_file_and_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("JMSJCA_ADAPTERS_DEFAULT_PASSWORD", "x")
    (tmp_path / "ra.xml").write_text(ra(options=""))
    (tmp_path / "ejb-jar.xml").write_text(ejb(destination="Queue1", Foo="1"))
    written = tmp_path / "jmsjca.toml"
    assert run(["convert", str(tmp_path / "ra.xml"), str(tmp_path / "ejb-jar.xml"), "-o", str(written)]) == 0
    assert read_configuration(written).listeners["orders"].destination == "Queue1"
    assert "geheim" not in written.read_text()
    assert "ejb-jar.xml: message-driven orders: Foo: jmsjca has no such property" in capsys.readouterr().err


def test_without_an_output_file_the_configuration_is_printed(tmp_path, capsys):
    (tmp_path / "ra.xml").write_text(ra(options=""))
    assert run(["convert", str(tmp_path / "ra.xml")]) == 0
    assert '[adapters.default]\nconnection_url = "embedded://shop"' in capsys.readouterr().out


def test_configuration_and_report_as_json(tmp_path, capsys):
    (tmp_path / "ra.xml").write_text(ra(options=""))
    (tmp_path / "ejb-jar.xml").write_text(ejb(destination="Queue1", Foo="1"))
    assert run(["convert", str(tmp_path / "ra.xml"), str(tmp_path / "ejb-jar.xml"), "--json"]) == 0
    written = capsys.readouterr()
    found = json.loads(written.out)
    assert found["configuration"]["adapters"]["default"]["connection_url"] == "embedded://shop"
    entry = next(each for each in found["report"] if each["name"] == "Foo")
    assert (entry["file"], entry["where"]) == ("ejb-jar.xml", "message-driven orders")
    assert "jmsjca has no such property" in entry["reason"]
    assert (written.err, "geheim" in written.out) == ("", False)


def test_file_that_is_no_descriptor_is_a_usage_error(tmp_path, capsys):
    (tmp_path / "ra.xml").write_text("<other/>")
    assert run(["convert", str(tmp_path / "ra.xml")]) == 2
    assert "<other> is not a known descriptor" in capsys.readouterr().err
