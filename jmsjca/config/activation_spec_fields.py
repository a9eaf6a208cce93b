"""The fields of an activation spec as typed dictionaries, for editors and type checkers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Required, TypedDict

from jmsjca.config.settings import AcknowledgeMode
from jmsjca.destinations import Destination, DestinationKind

if TYPE_CHECKING:
    from pydantic import SecretStr

__all__ = ["ActivationSpecFields", "ListenerFields"]


class ListenerFields(TypedDict, total=False):
    """The fields of an `ActivationSpec` without its destination: the keywords of `ResourceAdapter.listener`.

    `ActivationSpec` documents them. Validation also accepts what type checkers refuse here: texts in other letters, and
    numbers as text, as configuration files hold them.
    """

    destination_type: DestinationKind
    connection_url: str | None
    user_name: str | None
    password: "str | SecretStr | None"
    client_id: str | None
    options: str | Mapping[str, str] | None
    selector: str | None
    selector_variables: Mapping[str, str | bool | int | float]
    subscription_durability: Literal["Durable", "NonDurable"]
    subscription_name: str | None
    concurrency_mode: Literal["serial", "cc", "sync"]
    endpoint_pool_max_size: int
    batch_size: int
    split_failed_batches: bool
    hold_until_ack: bool
    acknowledgement_timeout: float | None
    max_outstanding: int
    redelivery_handling: str
    transaction: Literal["local", "required", "bean", "none"]
    acknowledge_mode: Literal[AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK, "AUTO", "DUPS_OK"]
    context_name: str | None
    mbean_name: str | None


class ActivationSpecFields(ListenerFields, total=False):
    """All fields of an `ActivationSpec`: its keywords."""

    destination: Required[str | Destination]
