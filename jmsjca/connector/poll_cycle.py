"""The poll cycle: one message of each input destination per turn, in strict round robin."""

from collections.abc import Callable, Sequence

from jmsjca.connector.return_codes import DeliveryOutcome, ReturnCode

__all__ = ["poll_cycle"]


def poll_cycle(
    destinations: Sequence[str], poll_quantity: int, process_next: Callable[[str, int], DeliveryOutcome | None]
) -> ReturnCode:
    """Process up to `poll_quantity` messages of each destination, one per destination and turn.

    An empty destination is read again on each later turn. The cycle ends after `poll_quantity` turns, after a turn in
    which all destinations were empty, or at once when an outcome requires another return code than SUCCEED.

    Args:
        destinations: Names of the input destinations, in the order of their turns.
        poll_quantity: Largest number of messages of each destination.
        process_next: Reads and delivers the next message of a destination without waiting; it also gets the number of
            turns that are left, this one included. Returns None if the destination is empty. Its exceptions end the
            cycle.

    Returns:
        SUCCEED, also when no message was found, or the return code of the outcome that ended the cycle.
    """
    for turns in range(poll_quantity, 0, -1):
        found = False
        for destination in destinations:
            outcome = process_next(destination, turns)
            found = found or outcome is not None
            if outcome is not None and outcome.return_code is not ReturnCode.SUCCEED:
                return outcome.return_code
        if not found:
            break
    return ReturnCode.SUCCEED
