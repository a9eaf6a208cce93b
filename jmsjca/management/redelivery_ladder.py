"""The ladder of a redelivery handling: which action applies to which redelivery, as rows to show."""

from collections.abc import Iterator

from jmsjca.redelivery.policy import Action, Delay, Deliver, Move, RedeliveryPolicy

__all__ = ["redelivery_ladder"]


def redelivery_ladder(policy: RedeliveryPolicy) -> Iterator[dict[str, object]]:
    """Yield one row for each action of a policy, with the redeliveries that it applies to."""
    rules = [(0, policy.action(0)), *policy.rules]
    ends = [str(index - 1) for index, _ in rules[1:]] + [""]
    for (start, action), end in zip(rules, ends, strict=True):
        span = str(start) if end == str(start) else f"{start}-{end}" if end else f"{start} and later"
        yield {"redelivery": span, "action": _described(action)}


def _described(action: Action) -> str:
    if isinstance(action, Deliver):
        return "deliver at once"
    if isinstance(action, Delay):
        return f"deliver after {action.milliseconds} ms"
    return f"move to {action.destination}" if isinstance(action, Move) else "delete"
