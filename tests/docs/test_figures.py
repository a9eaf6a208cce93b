"""The figures that were measured are those of the page of speeds, and they can be drawn."""

from tests.benchmarks import plot, tables


def test_the_tables_are_up_to_date():
    assert tables.PAGE.read_text() == tables.page(), "python -m tests.benchmarks.tables"


def test_every_table_is_on_the_page():
    assert all(f"<!-- {name} -->" in tables.PAGE.read_text() for name in tables.TABLES)


def test_the_curve_can_be_drawn(tmp_path):
    plot.draw(plot.FIGURES, tmp_path / "curve.svg")
    assert "</svg>" in (tmp_path / "curve.svg").read_text()
