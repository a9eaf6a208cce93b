"""The conformance cases about configuration, from the folder that JMSJCA_CONFORMANCE names."""

from tests.unit.selectors.conformance_cases import rows


def rows_of(name, *kinds):
    """Those rows of a file that have one of these kinds; one that is skipped if there is no such folder."""
    return [row for row in rows(name) if row.values[0] is None or row.values[0]["kind"] in kinds]
