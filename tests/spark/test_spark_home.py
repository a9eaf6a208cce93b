"""The tests start the Spark that they import."""

import sys

from spark_home import spark_home


def test_each_installed_spark_has_a_home_of_its_own(tmp_path, monkeypatch):
    """As `make earlier-spark` installs a second one: the workers of one do not understand the JVM of the other."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    for name in ("site-packages", "spark-4.2"):
        package = tmp_path / name / "pyspark"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "jars").write_text(name)
        monkeypatch.syspath_prepend(package.parent)
        assert (spark_home() / "jars").read_text() == name
