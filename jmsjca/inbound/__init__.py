"""Inbound: activations and how they deliver."""

from jmsjca.inbound.activation import Activation, Status
from jmsjca.inbound.context import ContextFilter, current_context
from jmsjca.inbound.distributed import DistributedActivation
from jmsjca.inbound.loops import HandlerLoop
from jmsjca.inbound.statistics import Statistics

__all__ = [
    "Activation",
    "ContextFilter",
    "DistributedActivation",
    "HandlerLoop",
    "Statistics",
    "Status",
    "current_context",
]
