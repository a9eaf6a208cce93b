"""The only place that pickles and unpickles."""

import io
import pickle
from collections.abc import Set as AbstractSet

from jmsjca.errors import MessageFormatError
from jmsjca.messages.pickle_check import check

__all__ = ["dump", "load"]


def dump(value: object) -> bytes:
    """Pickle an object.

    Raises:
        MessageFormatError: It cannot be pickled.
    """
    try:
        return pickle.dumps(value)
    except Exception as error:  # whatever its classes raise
        raise MessageFormatError(
            f"An object of {type(value).__name__} cannot be pickled ({type(error).__name__})."
        ) from error


def load(pickled: bytes, allowed: AbstractSet[tuple[str, str]], max_bytes: int, max_depth: int) -> object:
    """Unpickle an object that names nothing but what is allowed.

    Raises:
        MessageFormatError: It names something else, is too large or too deep, or cannot be unpickled.
    """
    if not allowed:
        raise MessageFormatError("Nothing is allowed in the pickle of this ObjectMessage, so it is not unpickled.")
    try:
        check(pickled, max_bytes, max_depth)
        return _Unpickler(pickled, frozenset(allowed)).load()
    except MessageFormatError:
        raise
    except Exception as error:  # hostile bytes and the classes that they name may raise anything
        raise MessageFormatError(f"The object cannot be unpickled ({type(error).__name__}).") from error


class _Unpickler(pickle.Unpickler):
    def __init__(self, pickled: bytes, allowed: frozenset[tuple[str, str]]) -> None:
        super().__init__(io.BytesIO(pickled), fix_imports=False)  # names of Python 2 would become others
        self._allowed = allowed

    def find_class(self, module_name: str, global_name: str) -> object:
        """Look up what a pickle names: everything that it could call passes here."""
        if (module_name, global_name) not in self._allowed:
            raise MessageFormatError(
                f"The pickle of this ObjectMessage names {(module_name[:100], global_name[:100])}, which is not among"
                " the allowed; nothing of it was called."
            )
        return super().find_class(module_name, global_name)
