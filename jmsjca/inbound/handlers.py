"""Calls a handler with what its parameters ask for."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jmsjca.inbound.parameters import Given, suppliers_of

if TYPE_CHECKING:
    import asyncio

__all__ = ["Handler"]


class Handler:
    """A user's function, called with what its parameters ask for.

    A parameter annotated with `Message` or `Session`, or named so, gets that; "headers" gets all headers by name, and
    the name of a header its value. Any other one that is annotated gets the body as that type, "body" the body as it
    is, and the first that is left the message. The function may be ``async``: it runs on an event loop of the
    endpoint's own thread.

    Args:
        function: The user's function.

    Raises:
        ConfigurationError: It needs a parameter that nothing is known for.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self.whole_batches = False
        self._suppliers = suppliers_of(function)
        self._runner: asyncio.Runner | None = None

    def __call__(self, given: Given) -> object:
        """Call the function; an awaitable that it returns is awaited."""
        result = self._function(**{name: supply(given) for name, supply in self._suppliers.items()})
        return self._run(result) if inspect.iscoroutine(result) else result

    def close(self) -> None:
        """Close the event loop, if there was one."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _run(self, coroutine: Any) -> object:
        if self._runner is None:
            import asyncio  # noqa: PLC0415  # only async handlers need it

            self._runner = asyncio.Runner()
        return self._runner.run(coroutine)
