"""The conformance cases about configuration, from the folder that JMSJCA_CONFORMANCE names."""

from tests.unit.selectors.conformance_cases import rows


def rows_of(name, *kinds):
    """Those rows of a file that have one of these kinds; without the folder, the parameter of `rows`."""
    return [row for row in rows(name) if row.values[0] is None or row.values[0]["kind"] in kinds]


def rows_at(*places):
    """The rows of ``options`` at these places; without the folder, the parameter of `rows`."""
    return [row for row in rows("options") if row.values[0] is None or place_of(row) in places]


def place_of(row):
    """The place of a row in its file, from 0 on."""
    return int(row.id.split()[0])
