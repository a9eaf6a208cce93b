"""Redelivery handling as in JMSJCA: delays, deletes or moves messages that are redelivered repeatedly.

This package parses the rules, counts redeliveries and makes the decisions. The listener carries them out.
"""

from jmsjca.redelivery.decision import Decision, RedeliveryHandler
from jmsjca.redelivery.encounter import Encounter, EncounterCache, Failure
from jmsjca.redelivery.moved_copy import MoveFacts, moved_copy, plain_copy, raw_copy, redirected_copy
from jmsjca.redelivery.policy import DEFAULT_REDELIVERY_HANDLING, Action, Delay, Delete, Deliver, Move, RedeliveryPolicy

__all__ = [
    "DEFAULT_REDELIVERY_HANDLING",
    "Action",
    "Decision",
    "Delay",
    "Delete",
    "Deliver",
    "Encounter",
    "EncounterCache",
    "Failure",
    "Move",
    "MoveFacts",
    "RedeliveryHandler",
    "RedeliveryPolicy",
    "moved_copy",
    "plain_copy",
    "raw_copy",
    "redirected_copy",
]
