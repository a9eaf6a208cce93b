"""The option ``credentials``: a text that names where each process that connects finds its user name and password.

Spark keeps options in plans, logs and pickles, so the secret itself is better not among them.
"""

from dataclasses import dataclass
from importlib import import_module

from jmsjca.config.credentials import CredentialSource, check_source
from jmsjca.errors import ConfigurationError, InvalidOptionError

__all__ = ["ImportedFunction", "parse_credentials"]

_CALL = "call:"


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """A function that returns user name and password, imported by the process that connects.

    Args:
        module: The module, which must be installed on the driver and on every executor.
        function: The name of the function in it.
    """

    module: str
    function: str

    @property
    def __name__(self) -> str:
        """The name for error messages."""
        return f"{self.module}:{self.function}"

    def __call__(self) -> tuple[str, str | None]:
        """Return the user name and the password.

        Raises:
            InvalidOptionError: There is no such module or function.
        """
        try:
            function = getattr(import_module(self.module), self.function)
        except (ImportError, AttributeError) as error:
            raise InvalidOptionError(
                f"The option 'credentials' names the function {self.function} of the module {self.module}, which cannot"
                f" be imported here: {error}. Install the module on the driver and on every executor."
            ) from error
        user, password = function()
        return user, password


def parse_credentials(text: str) -> CredentialSource:
    """Return the source of credentials that an option names.

    Raises:
        InvalidOptionError: The text has none of the forms. The message does not contain it.
    """
    if text.startswith(_CALL):
        module, _, function = text.removeprefix(_CALL).partition(":")
        if module and function.isidentifier():
            return ImportedFunction(module, function)
    try:
        check_source(text)
    except ConfigurationError:
        pass  # raised below
    else:
        return text
    raise InvalidOptionError(
        "The option 'credentials' must be env:NAME, file:PATH or call:MODULE:FUNCTION. It does not take the password"
        " itself."
    )
