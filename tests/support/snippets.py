"""The Python blocks of a page: as shown, and as a program that checks what the page says is printed.

A page may hold code that readers do not see, in a comment ``<!-- tested`` … ``-->``. It runs in its place between the
blocks, also indented, as the rest of a block before it. A comment behind ``print(…)``, or on the line after it, is what
it prints, where ``…`` is any text; ``, then`` separates the outputs of a statement that runs several times.
"""

import ast
import re
import tokenize
from io import StringIO

__all__ = ["CONFTEST", "blocks", "checked", "program"]

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^(?:```python\n(.*?)^```|<!-- tested\n(.*?)^-->)", re.MULTILINE | re.DOTALL)

# Serves until all messages are processed, in place of until a signal; and records what is printed.
CONFTEST = """
import builtins, io, re, time
from jmsjca import Queue, ResourceAdapter
from jmsjca.testing.idle import wait_until_idle

outputs = {}


def run(adapter, timeout=None):
    with adapter, adapter.connection_factory().create_connection() as connection:
        adapter.start(wait=60)
        queues = [each.spec.source() for each in adapter.activations]
        queues = [each for each in queues if isinstance(each, Queue)]
        delivered = -1
        # A message that is delayed by the redelivery handling may become due between two looks, and be delayed again.
        while delivered != (delivered := sum(each.stats.n_delivered_messages for each in adapter.activations)):
            wait_until_idle(adapter, 60)
            while any(connection.admin.depth(each).scheduled for each in queues):
                time.sleep(0.01)
            wait_until_idle(adapter, 60)


def print_checked(line, *values, **options):
    text = io.StringIO()
    print(*values, **options, file=text)
    print(text.getvalue(), end="")
    outputs.setdefault(line, []).append(text.getvalue().strip())


def check_outputs(shown):
    for line, expected in shown.items():
        wanted = expected.split(", then ")
        found = outputs.get(line, [])
        patterns = [".*".join(map(re.escape, each.split("…"))) for each in wanted]
        patterns = patterns if len(patterns) > 1 else patterns * max(1, len(found))
        same = len(found) == len(patterns) and all(
            re.fullmatch(pattern, text, re.DOTALL) for pattern, text in zip(patterns, found))
        assert same, f"line {line} of the program printed {found}, and the page shows {expected!r}"


ResourceAdapter.run = run
builtins.print_checked, builtins.check_outputs = print_checked, check_outputs
"""


def blocks(text):
    """Return the Python blocks that readers see."""
    return _BLOCK.findall(text)


def program(text):
    """Return all Python code of a page in its order, with what readers do not see."""
    return "\n\n".join(seen or unseen for seen, unseen in _CODE.findall(text))


def checked(code):
    """Return a program as a test module, which fails if something else is printed than its comments say."""
    lines, shown = code.splitlines(), {}
    comments = {
        token.start[0]: token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    for call in ast.walk(ast.parse(code)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print":
            end, begin = call.end_lineno, lines[call.lineno - 1][: call.col_offset]
            own_line = end < len(lines) and lines[end].startswith(f"{begin}#")
            if (line := end if end in comments else end + own_line) in comments:
                shown[call.lineno] = comments[line]
                after = lines[call.lineno - 1][call.col_offset :]
                lines[call.lineno - 1] = begin + after.replace("print(", f"print_checked({call.lineno}, ", 1)
    return "\n".join([*lines, "", "", "def test_the_page_ran():", f"    check_outputs({shown!r})", ""])
