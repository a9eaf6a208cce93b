"""Listeners: activations, their dispatch modes, redelivery, held acknowledgement and statistics."""

from jmsjca.inbound.activation import Activation, DistributedActivation
from jmsjca.inbound.activation_state import Status
from jmsjca.inbound.handler import HandlerLoop
from jmsjca.inbound.handler_arguments import Depends, override_dependency
from jmsjca.inbound.listener_log import ContextFilter, current_context
from jmsjca.inbound.statistics import Statistics

__all__ = [
    "Activation",
    "ContextFilter",
    "Depends",
    "DistributedActivation",
    "HandlerLoop",
    "Statistics",
    "Status",
    "current_context",
    "override_dependency",
]
