"""Waits for activations: until messages can flow, or until none of them can run any more."""

from collections.abc import Sequence
from typing import Protocol

from jmsjca.errors import ActivationFailedError, ActivationTimeoutError
from jmsjca.inbound.activation_state import Status, StatusMonitor

__all__ = ["have_all_failed", "raise_failures", "wait_until_up"]


class Startable(Protocol):
    """An activation, as this module uses it."""

    @property
    def name(self) -> str:
        """The display name."""
        ...

    @property
    def status(self) -> Status:
        """The status."""
        ...

    @property
    def failure(self) -> Exception | None:
        """The error with which it stopped permanently; None otherwise."""
        ...

    @property
    def last_error(self) -> Exception | None:
        """The error of its latest attempt to connect; None if that succeeded."""
        ...


def wait_until_up(activations: Sequence[Startable], monitor: StatusMonitor, timeout: float | None) -> None:
    """Wait until all activations are up, one is permanently down, or the time is over.

    Args:
        activations: The activations, which are started. One that is stopped meanwhile is not waited for.
        monitor: Notified of each change of their status.
        timeout: Seconds to wait; None waits forever.

    Raises:
        ActivationFailedError: Activations are permanently down.
        ActivationTimeoutError: Activations are still connecting.
    """

    def _is_decided() -> bool:
        return any(each.failure for each in activations) or all(each.status in ("Up", "Down") for each in activations)

    decided = monitor.wait_for(_is_decided, timeout)
    failed = [each for each in activations if each.failure]
    if failed:
        raise ActivationFailedError(f"Listeners have stopped permanently: {_reasons(failed)}.") from failed[0].failure
    if not decided:
        waiting = [each for each in activations if each.status not in ("Up", "Down")]
        raise ActivationTimeoutError(
            f"Not all listeners are up after {timeout:g} s; they go on trying until they are stopped: "
            f"{_reasons(waiting)}."
        )


def have_all_failed(activations: Sequence[Startable]) -> bool:
    """Return True if all activations are permanently down, so that nothing is served. False without activations."""
    return bool(activations) and all(each.status == "Down" and each.failure for each in activations)


def raise_failures(activations: Sequence[Startable]) -> None:
    """Raise an error if all activations are permanently down.

    Raises:
        ActivationFailedError: They are; the message has the reason of each.
    """
    if have_all_failed(activations):
        raise ActivationFailedError(
            f"All listeners have stopped permanently, so nothing is served: {_reasons(activations)}."
        ) from activations[0].failure


def _reasons(activations: Sequence[Startable]) -> str:
    return "; ".join(f"{each.name} is {each.status}: {_reason(each)}" for each in activations)


def _reason(activation: Startable) -> str:
    error = activation.failure or activation.last_error
    return str(error or "the first attempt to connect has not ended").removesuffix(".") or type(error).__name__
