"""What an activation spec may ask for and this release does not do yet; in one place, to be taken out line by line."""

from typing import TYPE_CHECKING

from jmsjca.errors import NotSupportedError
from jmsjca.messages.shown import shown
from jmsjca.redelivery import Move, RedeliveryPolicy

if TYPE_CHECKING:
    from jmsjca.config import ActivationSpec

__all__ = ["refuse_unavailable", "refuse_unavailable_handling"]

_LOOKUP = "lookup://"
_MOVING = "moving messages to a destination that is looked up"


def refuse_unavailable(spec: "ActivationSpec") -> None:
    """Refuse what cannot be done, so that nothing asked for is silently left out.

    Args:
        spec: The spec in force.

    Raises:
        NotSupportedError: Something is asked for that is not there yet; all of it is listed.
    """
    missing = [what for what, asked in _asked_for(spec).items() if asked]
    if missing:
        raise NotSupportedError(
            f"{spec.destination_type}:{spec.destination}: {', '.join(missing)} is not available in this release."
        )


def refuse_unavailable_handling(policy: RedeliveryPolicy) -> None:
    """Refuse what cannot be done with one message.

    Args:
        policy: What its handler asks for.

    Raises:
        NotSupportedError: It is not there yet.
    """
    if _moves_to_looked_up(policy):
        raise NotSupportedError(f"{shown(policy.text, 100)}: {_MOVING} is not available in this release.")


def _asked_for(spec: "ActivationSpec") -> dict[str, bool]:
    return {
        f"transaction={spec.transaction!r} (container-managed transactions will bring it)": spec.transaction
        in ("required", "bean"),
        "a destination that is looked up": spec.destination.startswith(_LOOKUP),
        _MOVING: _moves_to_looked_up(spec.redelivery_policy),
    }


def _moves_to_looked_up(policy: RedeliveryPolicy) -> bool:
    last = policy.last_action
    return isinstance(last, Move) and last.name.startswith(_LOOKUP)
