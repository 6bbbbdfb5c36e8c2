"""Client for Pilot, the workflow service for operations that no one should be able to carry out alone."""

from pilot_client.address import AddressError
from pilot_client.asynchronous import AsyncPilot
from pilot_client.blocking import Pilot
from pilot_client.cloud_events import CloudEvent, EntryEvent
from pilot_client.errors import (
    Conflict,
    DigestRequired,
    Forbidden,
    Invalid,
    NoLongerPossible,
    NotFound,
    NotYet,
    PilotError,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from pilot_client.models import Entry, Item, ItemSummary, Problem, Role, Session, Transition, WholeItem, Workflow
from pilot_client.token import TokenError
from pilot_client.waiting import Target
from pilot_client.webhooks import WebhookVerificationError, verify_webhook

__version__ = "0.1.0"

__all__ = [
    "AddressError",
    "AsyncPilot",
    "CloudEvent",
    "Conflict",
    "DigestRequired",
    "Entry",
    "EntryEvent",
    "Forbidden",
    "Invalid",
    "Item",
    "ItemSummary",
    "NoLongerPossible",
    "NotFound",
    "NotYet",
    "Pilot",
    "PilotError",
    "Problem",
    "RateLimited",
    "Role",
    "Session",
    "Target",
    "TokenError",
    "Transition",
    "Unauthorized",
    "Unavailable",
    "WebhookVerificationError",
    "WholeItem",
    "Workflow",
    "verify_webhook",
]
