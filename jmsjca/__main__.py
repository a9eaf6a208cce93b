"""The command line: ``jmsjca`` and ``python -m jmsjca``. Each error is one line with a remedy."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from jmsjca.errors import (
    ConfigurationError,
    InvalidArgumentError,
    InvalidSelectorError,
    JMSError,
    NotSupportedError,
    ProviderNotInstalledError,
)
from jmsjca.log_records import one_line

__all__ = ["main", "run"]

_FAILURE, _USAGE, _INTERRUPTED = 1, 2, 130
_USAGE_ERRORS = (
    ConfigurationError,
    InvalidArgumentError,
    InvalidSelectorError,
    NotSupportedError,
    ProviderNotInstalledError,
)
_LONGEST = 4096  # characters of an error


def main() -> None:
    """Run the command line, and end the process with its exit status."""
    sys.exit(run())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The command-line arguments without the program name; None uses the arguments of this process.

    Returns:
        The exit status: 0 for success, 1 for failure, 2 for a usage or configuration error, 130 for an interruption
        (SIGINT).
    """
    if sys.stderr is None:  # it is closed: errors are lost, but not written to the output
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # its encoding may lack characters of messages
            stream.reconfigure(errors="backslashreplace")
    try:
        import typer  # an extra
    except ImportError as error:
        return _complain(f'the command line needs {error.name}: pip install "jmsjca[cli]"', _USAGE)
    usage_error: Any = typer.BadParameter.__base__
    try:
        return _call(typer, list(sys.argv[1:] if arguments is None else arguments) or ["--help"])
    except usage_error as error:
        return _complain(_explain(error), _USAGE)
    except JMSError as error:
        return _complain(str(error), _USAGE if isinstance(error, _USAGE_ERRORS) else _FAILURE)
    except OSError as error:
        _discard_output()
        return _complain(f"{error}: check the file or the disk that the output goes to.", _FAILURE)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("stopped", _INTERRUPTED)


def _call(typer: Any, arguments: list[str]) -> int:
    from jmsjca.management.commands import app  # needs typer

    command = typer.main.get_command(app)
    try:
        status = command.main(args=arguments, prog_name="jmsjca", standalone_mode=False) or 0
    except SystemExit as ended:  # the completion of a shell ends so
        return ended.code if isinstance(ended.code, int) else _FAILURE
    if status == _INTERRUPTED:  # releases of typer differ: some return it in silence
        raise KeyboardInterrupt
    return status


def _explain(error: Any) -> str:
    """Return a usage error as one line that names the help option."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "jmsjca"
    return f"{' '.join(error.format_message().split())} Try '{path} --help'."


def _discard_output() -> None:
    """Redirect the output to the null device. Otherwise flushing the rest of it at exit would fail again."""
    with suppress(OSError, ValueError, AttributeError):  # the output is not a file, or closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str, status: int) -> int:
    sys.stderr.write(f"jmsjca: {one_line(text, _LONGEST)}\n")
    return status


if __name__ == "__main__":
    main()
