"""Checks of the arguments of sessions: acknowledge modes, selectors, subscriptions, and capabilities of the broker."""

from jmsjca import spi
from jmsjca.arguments import check_flag, check_instance, enum_member, wrong_argument
from jmsjca.config.settings import AcknowledgeMode
from jmsjca.destinations import Destination, Topic, check_destination
from jmsjca.errors import InvalidDestinationError, InvalidSelectorError, NotSupportedError

__all__ = ["check_selector", "check_subscription", "checked_acknowledge_mode", "require_capability"]


def check_subscription(topic: Destination, name: str, *, durable: bool) -> None:
    """Raise an error if a topic and a name cannot be those of a subscription that is shared or durable.

    Raises:
        InvalidDestinationError: The topic is no topic, or a temporary one of a durable subscription; or the name is no
            text, or empty.
    """
    check_destination(topic)
    if not isinstance(topic, Topic) or (durable and topic.temporary):
        raise InvalidDestinationError(
            f"A {'durable' if durable else 'shared'} subscription of {topic} cannot be: it needs a topic that is not "
            "temporary."
        )
    check_instance("The name of a subscription", name, str, "a str", InvalidDestinationError)
    if not name:
        raise InvalidDestinationError(f"A subscription of {topic} that is shared or durable needs a name; it is empty.")


def check_selector(selector: object) -> None:
    """Raise an error for a selector that is neither text nor None. The broker checks the text.

    Raises:
        InvalidSelectorError: The value has another type.
    """
    if selector is not None:
        check_instance("selector", selector, str, "a str, such as \"region = 'EU'\", or None", InvalidSelectorError)


def checked_acknowledge_mode(name: str, value: object, transacted: object) -> AcknowledgeMode:
    """Return an acknowledge mode, given as a member or by its name, after validation of both arguments of a session.

    Args:
        name: The name of the argument with the acknowledge mode.
        value: That argument.
        transacted: The argument of this name.

    Raises:
        InvalidArgumentError: There is no such acknowledge mode, or ``transacted`` is neither True nor False.
    """
    check_flag("transacted", transacted, f"; the acknowledge mode is the argument {name}")
    if isinstance(value, bool):
        raise wrong_argument(name, value, "an AcknowledgeMode, or its name; a transacted session has transacted=True")
    return enum_member(name, value, AcknowledgeMode)


def require_capability(connection: spi.Connection, capability: str, purpose: str, *, wanted: bool = True) -> None:
    """Raise an error if the broker lacks a capability.

    Args:
        connection: The provider's connection.
        capability: The field of `spi.Capabilities`.
        purpose: The feature that needs the capability, in the plural.
        wanted: False if the feature is not used.

    Raises:
        NotSupportedError: The broker lacks the capability.
    """
    if wanted and not getattr(connection.capabilities, capability):
        raise NotSupportedError(f"This broker has no {purpose}: it lacks the capability {capability}.")
