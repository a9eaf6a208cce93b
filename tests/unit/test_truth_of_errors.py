"""No exception object is tested for its truth: a class with ``__len__`` or ``__bool__`` may be false, or raise."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsjca

ROOT = Path(jmsjca.__file__).parent
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
OTHERS = {  # attributes that are not exceptions, and have the name of one that is
    *(
        ("inbound/sync_dispatcher.py", "self._lost"),
        ("spark/reader.py", "self._lost"),
        ("inbound/health.py", "worst.reason"),
    ),
    *(("inbound/message_mover.py", "failure"), ("redelivery/moved_copy.py", "facts.failure")),
    *(("management/console/pages.py", "health.reason"), ("management/insight.py", "record.reason")),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def names_an_exception(annotation: ast.expr | None) -> bool:
    """Return True for the annotation of an exception, or of one of several types that is an exception."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return names_an_exception(left) or names_an_exception(right)
        case ast.Constant(value=str() as text):
            return names_an_exception(ast.parse(text, mode="eval").body)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith(("Error", "Exception"))
    return False


def described(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the attributes, properties and functions that are annotated as exceptions."""
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(target=ast.Attribute(attr=name) | ast.Name(id=name), annotation=kind):
                if names_an_exception(kind):
                    yield name
            case ast.FunctionDef(name=name, returns=kind) if names_an_exception(kind):
                yield name


MEMBERS = {name for tree in TREES.values() for name in described(tree)} | {"__cause__", "__context__", "exception"}


class _Scope:
    """The names of exceptions in one function, or at the top of a module."""

    def __init__(self, scope: ast.AST) -> None:
        self._names: set[str] = set()
        for node in ast.walk(scope):
            match node:
                case ast.ExceptHandler(name=str() as name):
                    self._names.add(name)
                case ast.arg(arg=name, annotation=kind) if names_an_exception(kind):
                    self._names.add(name)
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if names_an_exception(kind):
                    self._names.add(name)
        for node in ast.walk(scope):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if self.is_exception(value):
                    self._names.add(name)
                case ast.NamedExpr(target=ast.Name(id=name), value=value) if self.is_exception(value):
                    self._names.add(name)

    def is_exception(self, node: ast.expr) -> bool:
        """Return True if the value may be an exception."""
        match node:
            case ast.Name(id=name):
                return name in self._names
            case ast.Attribute(attr=name):
                return name in MEMBERS
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                return name in MEMBERS
            case ast.NamedExpr(value=value):
                return self.is_exception(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_exception(body) or self.is_exception(orelse)
        return False

    def tested(self, scope: ast.AST) -> Iterator[ast.expr]:
        """Yield the exceptions that are tested for their truth, or are given to logging, which tests them."""
        for node in ast.walk(scope):
            yield from filter(self.is_exception, _conditions(node))


def _conditions(node: ast.AST) -> list[ast.expr]:  # noqa: PLR0911  # one for each form
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
        case ast.BoolOp(values=values):
            return values
        case ast.comprehension(ifs=conditions):
            return conditions
        case ast.match_case(guard=ast.expr() as guard):
            return [guard]
        case ast.Call(func=ast.Name(id="bool"), args=[value]):
            return [value]
        case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.GeneratorExp(elt=value)]):
            return [value]
        case ast.keyword(arg="exc_info", value=value):
            return [value]
    return []


def found_in(tree: ast.Module, file: str = "") -> set[tuple[int, str]]:
    scopes = [node for node in ast.walk(tree) if isinstance(node, Function)] or [tree]
    found = {(each.lineno, ast.unparse(each)) for scope in scopes for each in _Scope(scope).tested(scope)}
    return {(line, text) for line, text in found if (file, text) not in OTHERS}


@pytest.mark.parametrize("file", TREES)
def test_no_exception_is_tested_for_its_truth(file: str) -> None:
    assert found_in(TREES[file], file) == set()


@pytest.mark.parametrize(
    "text",
    [
        "def f(task):\n    if error := task.exception():\n        pass",
        "def f(self, error: Exception):\n    self.e = self._error or error",
        "def f(error: 'JMSError | None'):\n    return 1 if error else 2",
        "def f(each):\n    return [one for one in each if one.last_error]",
        "def f():\n    try:\n        g()\n    except ValueError as error:\n        return not error",
        "def f(log, error: BaseException):\n    log.error('', exc_info=error)",
        "def f(many):\n    return any(one.last_error for one in many)",
    ],
)
def test_the_check_finds_each_form(text: str) -> None:
    assert found_in(ast.parse(text))
