"""Writes the tables of docs/how-to/transactions.md from the tests: ``python -m tests.support.failure_tables``."""

import ast
import re
from itertools import groupby
from pathlib import Path

from tests.brokers import test_postgresql
from tests.unit.inbound import test_container_transactions, test_inbox
from tests.unit.transactions import test_data_managers
from tests.unit.transactions.failures import CASES, Left

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "transactions.md"
MODULES = (test_container_transactions, test_data_managers, test_inbox, test_postgresql)


def page():
    """The page with its tables."""
    text = PAGE.read_text()
    for name, table in (("failures", failures()), ("kills", kills())):
        text = re.sub(rf"(<!-- {name}.*? -->\n).*?(<!-- end -->)", rf"\1\n{table}\n\2", text, flags=re.DOTALL)
    return text


def failures():
    """What each failure leaves at once."""
    rows = [["Failure", "Database", "Broker", "Rows", "Messages", "Shown by"], ["---"] * 6]
    for test, database, left in sorted(marked(), key=order):
        rows.append([left.failure, database, "embedded", left.rows, left.messages, f"`{test}`"])
    return lines(rows)


def order(found):
    """The failures without an effect first, those in doubt last."""
    _, _, left = found
    return left.messages.startswith("in doubt"), left.rows != "none"


def marked():
    """Yield each test that shows what a failure leaves: its name, its databases, and what is left."""
    on_postgresql = imported_cases(ROOT / "tests" / "brokers" / "test_postgresql.py")
    for module in MODULES:
        file = module.__name__.removeprefix("tests.").replace(".", "/") + ".py"
        for name, test in tests_of(module):
            found = getattr(test, "leaves", None)
            if isinstance(found, Left):
                is_both = name.partition("::")[0] in on_postgresql
                database = "PostgreSQL" if module is test_postgresql else "SQLite"
                yield f"{file}::{name}", "SQLite, PostgreSQL" if is_both else database, found


def tests_of(module):
    """Yield the tests of a module with their names, those of its own classes with the class before them."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).items() if isinstance(value, type) else ()
        yield from ((f"{name}::{each}", test) for each, test in members)
        yield name, value


def imported_cases(path):
    """Return the names of the classes that a module imports from other tests, to run them as well."""
    imports = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom))
    return {alias.name for node in imports for alias in node.names if alias.name.startswith("Test")}


def kills():
    """What is there at the end, after kills at each step."""
    rows = [["The listener has", "Killed", "Database", "Broker", "Rows", "Messages", "Shown by"], ["---"] * 7]
    for key, group in groupby(sorted(CASES, key=kind_of), kind_of):
        cases = list(group)
        (_, listener), is_exact = key, cases[0].is_exact
        shown = sorted({f"`{case.test}`" for case in cases}, reverse=True)
        where = [", ".join(dict.fromkeys(getattr(case, name) for case in cases)) for name in ("database", "broker")]
        if is_exact:
            rows.append([listener, "at any step", *where, "once", "once", "<br>".join(shown)])
            continue
        rows.append([listener, "between the two commits", *where, "twice", "once", "<br>".join(shown)])
        rows.append([listener, "at any other step", *where, "once", "once", "<br>".join(shown)])
    return lines(rows)


def kind_of(case):
    """Group the cases: first the listeners with duplicates, then all of one kind."""
    return case.is_exact, case.listener


def lines(rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(page())
