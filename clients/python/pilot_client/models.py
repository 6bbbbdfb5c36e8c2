"""What the service answers, as types.

Generated from docs/reference/openapi.json by `python3 clients/python/generate.py`; changes belong there.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

# The name of a credential: the `credential_id` in the credential file, or its fingerprint if it has none.
CredentialId: TypeAlias = str


Index: TypeAlias = int


Limit: TypeAlias = int


# A UUIDv7.
ItemId: TypeAlias = str


# RFC 3339, UTC, microseconds.
Time: TypeAlias = str


Documents: TypeAlias = Literal["all", "none"]


Days: TypeAlias = int


ShortText: TypeAlias = str


Me: TypeAlias = Literal["me"]


View: TypeAlias = Literal["full", "summary"]


Sort: TypeAlias = Literal["created", "updated", "due", "title"]


ItemsLimit: TypeAlias = int


Digest: TypeAlias = str


ProofLimit: TypeAlias = int


Cosignatures: TypeAlias = Literal["required", "any"]


# One accountable person or machine.
ActorId: TypeAlias = str


# One of the five separated roles.
Role: TypeAlias = Literal["initiator", "approver", "security_admin", "executor", "auditor"]


# One line of an item's history: a transition, or for the whole history also its creation, edits and comments.
Transition = TypedDict(
    "Transition",
    {
        "action": str,
        # Null when a timer moved the item.
        "actor_id": ActorId | None,
        "at": Time,
        "comment": str | None,
        # With it, the digest of the comment in the ledger's entry can be computed. Null without a comment.
        "comment_nonce": str | None,
        # The content this is about: the new one after a creation or an edit, otherwise the one that was decided on.
        # Null for what is about no content, such as a comment.
        "content_digest": Digest | None,
        # Its index in the ledger.
        "entry": int,
        "from": str | None,
        "inputs": dict[str, Any] | None,
        # The same for the inputs.
        "inputs_nonce": str | None,
        "item_id": ItemId,
        # If the actor is a machine: who operated it at the time.
        "operated_by": NotRequired[ActorId],
        "role": Role | None,
        "to": str | None,
        "version": int,
    },
)


class Actor(TypedDict):
    actor_id: ActorId
    operated_by: NotRequired[Any]
    """If the actor is a machine: who operates it. The session does not say so."""
    role: Role


class Lease(TypedDict):
    """Who is executing, and when the lease ends unless it is renewed."""

    expires_at: Time
    holder: ActorId


class Votes(TypedDict):
    action: NotRequired[str]
    by: list[ActorId]
    have: int
    need: int


class Window(TypedDict):
    """When the item may be executed."""

    not_after: Time
    not_before: Time


class WorkflowRef(TypedDict):
    """The definition an item was created under, and keeps."""

    digest: Digest
    name: str
    version: int


class Item(TypedDict):
    actions: list[str]
    """What the caller may do now."""
    attempts: NotRequired[int]
    content_digest: Digest
    created_at: Time
    created_by: Actor
    due_at: NotRequired[Time | None]
    entered_at: NotRequired[Time]
    """When the item came into its state."""
    held: bool
    id: ItemId
    lease: Lease | None
    payload: dict[str, Any]
    state: str
    title: str
    updated_at: Time
    version: int
    votes: Votes | None
    waits_for: list[Role]
    window: Window | None
    workflow: WorkflowRef


Code: TypeAlias = Literal[
    "credential_required",
    "role_forbidden",
    "separation_of_duties",
    "not_owner",
    "not_found",
    "method_not_allowed",
    "state_conflict",
    "already_decided",
    "content_changed",
    "item_held",
    "outside_window",
    "too_many_open",
    "version_mismatch",
    "invalid_request",
    "unknown_action",
    "token_in_content",
    "idempotency_key_reused",
    "token_in_url",
    "body_too_large",
    "unsupported_media_type",
    "rate_limited",
    "unavailable",
    "internal",
]


class Blocked(TypedDict):
    """An action that is refused now."""

    action: str
    code: Code
    detail: str
    """For people."""
    until: Time | None
    """When it becomes possible by itself, if that is known."""


class Tally(TypedDict):
    """Votes for one action."""

    count: int
    needed: int


class Effect(TypedDict):
    """What an action would do."""

    ends: bool
    """Whether that finishes it."""
    moves: bool
    """Whether it leaves its state."""
    to: list[str]
    """The states the item may be in afterwards: several if an input chooses."""
    vote: Tally | None
    """If the action is a vote: what the tally will be."""


class HoldInForce(TypedDict):
    """A hold in force."""

    actor_id: ActorId
    at: Time
    comment: str | None
    """Null if it was erased."""
    role: Role


class Seen(TypedDict):
    """A content that the caller knows."""

    at: Time
    content_digest: Digest
    how: Literal["decided", "looked"]
    """How the caller knows it."""


class Waiting(TypedDict):
    """Who can take an item forward."""

    action: str
    actors: list[ActorId]
    """The first few of those who can do it now; empty if nobody can."""
    needed: int
    """How many of them still have to."""
    others: int
    """How many more there are."""
    role: Role


class ItemOutlook(TypedDict):
    """What the answer about one item has in addition to what lists show."""

    blocked: list[Blocked]
    """What the caller's role may do in this state, but this caller cannot do now, and why."""
    content_nonce: str | None
    """With it, the content digest can be computed from what is shown: it is that of `{"nonce", "payload", "title"}` in
    canonical form (RFC 8785). Null if the content was erased.
    """
    effects: dict[str, Effect]
    """What each of `actions` except `edit` would do now, if it were sent with everything it needs."""
    hold: HoldInForce | None
    """Who holds the item, since when and why. Null if it is not held, or if more than 1,024 entries about it followed.
    """
    seen: Seen | None
    """The content that the caller last decided on or looked at, whichever was later."""
    waiting: list[Waiting]
    """What would take the item forward, and who can do it now. Empty if it is finished."""


class WholeItem(Item, ItemOutlook):
    """One item, as the caller sees it."""


class SignIn(TypedDict):
    """How people sign in at the identity provider: authorization code with PKCE. Present only with mechanism `oauth`, a
    client for the console, and a provider that has answered.
    """

    authorization_endpoint: str
    client_id: str
    issuer: str
    resource: str
    """The resource the token is meant for (RFC 8707)."""
    revocation_endpoint: NotRequired[str]
    """Where signing out revokes the tokens (RFC 7009), if the provider supports it."""
    scope: str
    """Scopes to ask for, separated by spaces; may be empty."""
    token_endpoint: str


class ConsoleSettings(TypedDict):
    colour: Literal["grey", "blue", "green", "amber", "red"]
    """The colour of the bar with the name."""
    idle_minutes: int
    """The number of idle minutes after which the console forgets its token."""
    mechanism: Literal["credential_file", "oauth", "mutual_tls"]
    """What callers present: a token of the credential file, an access token, or a client certificate."""
    name: str | None
    """What this installation is called, if it has a name."""
    sign_in: NotRequired[SignIn]


class Content(TypedDict):
    """A content that an item has or had."""

    content_digest: Digest
    nonce: str | None
    """Part of what is hashed: the digest is that of `{"nonce", "payload", "title"}` in canonical form (RFC 8785)."""
    payload: dict[str, Any]
    title: str


class Day(TypedDict):
    created: int
    day: str
    """As in `2026-11-16`."""
    decisions: int
    """What people did to items, without creations, edits, comments, permits and heartbeats."""
    refused: int | None
    """Null for callers who may not see entries about access."""


class Ages(TypedDict):
    """Open items by the time since their creation."""

    day: int
    hour: int
    """Less than an hour."""
    older: int
    three_days: int
    week: int


class TimeToDecide(TypedDict):
    """From a submission to the first decision of another person, in seconds, to within a tenth."""

    count: int
    max_s: int | None
    median_s: int | None
    p90_s: int | None


class Figures(TypedDict):
    """Counted from every entry of the ledger."""

    at: Time
    days: list[Day]
    """Oldest first, by days in UTC, with those on which nothing happened."""
    entries: int
    """How many entries were counted."""
    open: dict[str, int]
    """Open items by state."""
    open_by_age: Ages
    refusals: dict[str, int] | None
    """Refused attempts by code. Null for callers who may not see entries about access."""
    time_to_decide: TimeToDecide


class Health(TypedDict):
    limits_reached: NotRequired[list[str]]
    """Limits that were reached within the last minute. Absent if there are none."""
    status: Literal["ok", "ready"]


class Proof(TypedDict):
    hashes: list[str]
    index: int
    leaf_hash: str
    """Base64 SHA-256."""


class Proofs(TypedDict):
    checkpoint: str
    next: NotRequired[int | None]
    """The `after` of the next page."""
    proofs: list[Proof]


class PermitIssuer(TypedDict):
    id_token_signing_alg_values_supported: list[str]
    issuer: str
    jwks_uri: str
    response_types_supported: list[str]
    subject_types_supported: list[str]


class PermitKeysKeys(TypedDict):
    alg: Literal["ES256"]
    crv: Literal["P-256"]
    kid: str
    kty: Literal["EC"]
    use: Literal["sig"]
    x: str
    y: str


class PermitKeys(TypedDict):
    keys: list[PermitKeysKeys]


class ProtectedResource(TypedDict):
    """RFC 9728."""

    authorization_servers: list[str]
    bearer_methods_supported: list[str]
    resource: str
    resource_documentation: str
    resource_name: str


class Session(TypedDict):
    """The actor and the role bound to the presented credential."""

    actor_id: ActorId
    role: Role


class WorkflowHold(TypedDict):
    blocks: list[str]
    release_roles: list[Role]
    roles: list[Role]


class WorkflowState(TypedDict):
    description: NotRequired[str]
    editable: NotRequired[bool]
    kind: Literal["open", "effect", "terminal"]
    name: str
    waits_for: NotRequired[list[Role]]


WorkflowTimer = TypedDict(
    "WorkflowTimer",
    {
        "after": NotRequired[str],
        "at": NotRequired[Literal["window_end", "lease_end"]],
        "from": list[str],
        "to": str,
    },
)


class WorkflowRuleQuorumIf(TypedDict):
    equals: Any
    pointer: str
    quorum: int


class WorkflowRuleWhen(TypedDict):
    equals: str
    input: str


# Who may move an item from where to where, and what that requires. What is absent is not required.
WorkflowRule = TypedDict(
    "WorkflowRule",
    {
        "action": str,
        "attempts": NotRequired[int],
        "comment_required": NotRequired[bool],
        "content_digest_required": NotRequired[bool],
        "description": NotRequired[str],
        "from": list[str],
        "inputs": NotRequired[list[Literal["result", "artifacts", "progress"]]],
        "inside_window": NotRequired[bool],
        "not_by_executor": NotRequired[bool],
        "own": NotRequired[Literal["creator", "voter", "holder"]],
        "quorum": NotRequired[int],
        "quorum_if": NotRequired[WorkflowRuleQuorumIf],
        "renews_lease": NotRequired[str],
        "replaces": NotRequired[list[str]],
        "roles": list[Role],
        # The longest window, as in `30d`.
        "sets_window": NotRequired[str],
        "takes_back_vote": NotRequired[bool],
        "takes_lease": NotRequired[str],
        # If absent, the item stays where it is.
        "to": NotRequired[str],
        "voids_votes": NotRequired[bool],
        "voids_window": NotRequired[bool],
        "when": NotRequired[WorkflowRuleWhen],
    },
)


class Workflow(TypedDict):
    """A definition: states, transitions, timers, hold and the payload's JSON Schema."""

    description: str
    digest: Digest
    hold: NotRequired[WorkflowHold]
    initial: str
    name: str
    one_open_per_creator: NotRequired[bool]
    payload_schema: dict[str, Any]
    required_roles: list[Role]
    schema_version: int
    """Of the format; 1 is the only one so far."""
    states: list[WorkflowState]
    timers: list[WorkflowTimer]
    title: str
    transitions: list[WorkflowRule]
    version: int


class PermitToken(TypedDict):
    """A token for one target. It has no `Debug`, so that it is not printed by accident."""

    audience: str
    """For whom it is, as its claim `aud` says."""
    entry: int
    """The index of its entry `permit.issued` in the ledger."""
    expires_at: Time
    """Not after the lease, nor after the window."""
    jti: str
    key_id: str
    """Which of the published keys signed it."""
    token: str
    """A JWT signed with ES256, for the target only. It is stored nowhere."""


class ActorInfo(TypedDict):
    """One actor; never a digest, never a token."""

    actor_id: ActorId
    credentials: int
    kind: Literal["human", "machine"]
    last_seen: Time | None
    """Since the service started; null when not seen yet."""
    operated_by: NotRequired[ActorId]
    """Who answers for this machine; the two count as one person."""
    role: Role


class Actors(TypedDict):
    actors: list[ActorInfo]
    next: str | None
    """Always null: the list is complete."""


class CredentialInfo(TypedDict):
    """One credential; never its digest."""

    actor_id: ActorId | None
    """Null when the service knows the credential only by its revocation."""
    credential_id: CredentialId
    expires_at: Time | None
    last_seen: Time | None
    """Since the service started; null when not seen yet."""
    not_before: Time | None
    role: Role | None
    state: Literal["not_yet", "live", "expired", "revoked"]


class Credentials(TypedDict):
    credentials: list[CredentialInfo]


# One line of the ledger, exactly as it was hashed.
Entry = TypedDict(
    "Entry",
    {
        "action": NotRequired[str],
        "actor_id": NotRequired[ActorId],
        "at": Time,
        "comment": NotRequired[Digest],
        "content": NotRequired[Digest],
        "definition": NotRequired[Digest],
        "details": NotRequired[dict[str, Any]],
        "from": NotRequired[str],
        "index": int,
        "inputs": NotRequired[Digest],
        "item": NotRequired[ItemId],
        "operated_by": NotRequired[ActorId],
        "role": NotRequired[Role],
        "to": NotRequired[str],
        "type": str,
        "v": int,
        "version": NotRequired[int],
    },
)


class Events(TypedDict):
    events: list[Entry]
    next_after: int | None
    """Ask again with `after` set to this. Null while the ledger is empty."""


class History(TypedDict):
    history: list[Transition]
    next: str | None
    """The cursor of the next page; null at the end."""


class Items(TypedDict):
    items: list[Item]
    next: str | None
    """The cursor of the next page."""


class ItemSummary(TypedDict):
    actions: list[str]
    """What the caller may do now."""
    attempts: NotRequired[int]
    created_at: Time
    created_by: Actor
    due_at: NotRequired[Time | None]
    entered_at: NotRequired[Time]
    """When the item came into its state."""
    held: bool
    id: ItemId
    lease: Lease | None
    risk: str | None
    """The payload's `risk`, if it is a short text."""
    state: str
    title: str
    updated_at: Time
    version: int
    votes: Votes | None
    waits_for: list[Role]
    window: Window | None
    workflow: WorkflowRef


class ItemSummaries(TypedDict):
    items: list[ItemSummary]
    next: str | None
    total: int | None
    """How many items there are on all pages: exact up to 10,000, and null if there are more or if it is not known."""


ItemsPage: TypeAlias = Items | ItemSummaries


class Node(TypedDict):
    """One node of the service."""

    applied: int
    """How many entries of the ledger are in force on this node."""
    build: str
    duties: list[str]
    """What only one node does at a time, and this one does."""
    is_alive: bool
    """Whether it was heard of within the last second. A node that was not answers nobody."""
    is_this: bool
    """Whether it is the node that answers."""
    lag: int
    """How many are not yet."""
    name: str
    """As configured, or the machine's host name."""
    node_id: str
    """A new one at every start."""
    seen_at: Time | None
    """Null when the ledger is the node's own."""
    started_at: Time | None


class Nodes(TypedDict):
    next: str | None
    """Always null: the list is complete."""
    nodes: list[Node]


class Transitions(TypedDict):
    next: str | None
    """The cursor of the next page; null at the end."""
    transitions: list[Transition]


class WorkflowSummary(TypedDict):
    description: str
    digest: Digest
    name: str
    title: str
    version: int


class Workflows(TypedDict):
    next: str | None
    """Always null: the list is complete."""
    workflows: list[WorkflowSummary]


class Revocation(TypedDict):
    actor_id: NotRequired[ActorId]
    credential_id: CredentialId
    entry: int
    """Its index in the ledger."""
    revoked_at: Time
    revoked_by: Actor | None
    """Null if the service revoked it by itself, for example because the token was in a URL."""
    role: NotRequired[Role]


class ProblemErrors(TypedDict):
    detail: str
    pointer: str
    """RFC 6901 JSON pointer into the request; empty for the whole request."""


class ProblemWhoCan(TypedDict):
    """Who could do it now, when an action was refused for role, separation of duties or ownership."""

    actors: list[ActorId]
    """The first few of them; empty if nobody can."""
    others: int
    """How many more there are."""


class Problem(TypedDict):
    """RFC 9457 problem details. `code` is stable; `title` and `detail` are for people and may change."""

    code: Code
    detail: str
    errors: NotRequired[list[ProblemErrors]]
    request_id: str
    status: int
    title: str
    type: str
    who_can: NotRequired[ProblemWhoCan | None]
    """Who could do it now, when an action was refused for role, separation of duties or ownership."""


__all__ = [
    "Actor",
    "ActorId",
    "ActorInfo",
    "Actors",
    "Ages",
    "Blocked",
    "Code",
    "ConsoleSettings",
    "Content",
    "Cosignatures",
    "CredentialId",
    "CredentialInfo",
    "Credentials",
    "Day",
    "Days",
    "Digest",
    "Documents",
    "Effect",
    "Entry",
    "Events",
    "Figures",
    "Health",
    "History",
    "HoldInForce",
    "Index",
    "Item",
    "ItemId",
    "ItemOutlook",
    "ItemSummaries",
    "ItemSummary",
    "Items",
    "ItemsLimit",
    "ItemsPage",
    "Lease",
    "Limit",
    "Me",
    "Node",
    "Nodes",
    "PermitIssuer",
    "PermitKeys",
    "PermitKeysKeys",
    "PermitToken",
    "Problem",
    "ProblemErrors",
    "ProblemWhoCan",
    "Proof",
    "ProofLimit",
    "Proofs",
    "ProtectedResource",
    "Revocation",
    "Role",
    "Seen",
    "Session",
    "ShortText",
    "SignIn",
    "Sort",
    "Tally",
    "Time",
    "TimeToDecide",
    "Transition",
    "Transitions",
    "View",
    "Votes",
    "Waiting",
    "WholeItem",
    "Window",
    "Workflow",
    "WorkflowHold",
    "WorkflowRef",
    "WorkflowRule",
    "WorkflowRuleQuorumIf",
    "WorkflowRuleWhen",
    "WorkflowState",
    "WorkflowSummary",
    "WorkflowTimer",
    "Workflows",
]
