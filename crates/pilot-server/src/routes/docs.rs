//! What the OpenAPI document says about each operation in addition to the table's own columns.

use pilot_core::limits::{ACTION_BODY_BYTES_MAX, BODY_BYTES_MAX, COMMENT_BODY_BYTES_MAX, CONTENT_BODY_BYTES_MAX};

use super::route::{Docs, Needed, Parameter, RequestBody, Success};
use crate::problem::Code;

const JSON: &str = "application/json";

const NOT_FOUND: &[Code] = &[Code::NotFound, Code::Unavailable];
const OF_DIGEST: &[Parameter] = &[Parameter(
    "digest",
    "Digest",
    "The digest of the definition to return, in force or not, such as the one an item was created under",
)];
const WRITES: &[&str] = &["Idempotency-Key"];

const fn answer(summary: &'static str, success: Success) -> Docs {
    Docs { summary, success, also: &[], answer_headers: &[], request: None, query: &[], headers: &[], problems: &[] }
}

const fn find(summary: &'static str, success: Success) -> Docs {
    Docs { problems: NOT_FOUND, ..answer(summary, success) }
}

pub(super) const SESSION: Docs = Docs {
    answer_headers: &["Credential-Expires-At"],
    ..answer(
        "The actor and the role bound to the presented credential",
        Success(200, "The actor and its role", JSON, Some("Session")),
    )
};
pub(super) const WORKFLOWS: Docs =
    answer("The workflows in force", Success(200, "The workflows", JSON, Some("Workflows")));
pub(super) const WORKFLOW: Docs = Docs {
    query: OF_DIGEST,
    problems: &[Code::NotFound, Code::InvalidRequest],
    ..answer("One workflow with its definition", Success(200, "The definition", JSON, Some("Workflow")))
};
pub(super) const DIAGRAM: Docs = Docs {
    query: OF_DIGEST,
    problems: &[Code::NotFound, Code::InvalidRequest],
    ..answer("One workflow as a diagram", Success(200, "The diagram", "image/svg+xml", None))
};
pub(super) const CREATE: Docs = Docs {
    answer_headers: &["ETag", "Location"],
    request: Some(RequestBody(&[JSON], "NewItem", Needed::Always, CONTENT_BODY_BYTES_MAX)),
    headers: WRITES,
    problems: &[
        Code::StateConflict,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::IdempotencyKeyReused,
        Code::Unavailable,
    ],
    ..answer("Create an item as a draft", Success(201, "The item", JSON, Some("WholeItem")))
};
pub(super) const ITEMS: Docs = Docs {
    answer_headers: &["Link"],
    query: &[
        Parameter("state", "ShortText", "Only items in this state"),
        Parameter("workflow", "ShortText", "Only items of this workflow"),
        Parameter("created_by", "ShortText", "Only items created by this actor"),
        Parameter("waiting_for", "Me", "Only items that are waiting for the caller now"),
        Parameter("risk", "ShortText", "Only items whose payload has this `risk`"),
        Parameter(
            "q",
            "ShortText",
            "Ignoring case: a part of the title, of a text or number in the payload or of the creator's name, \
             or the first 8 or more characters of the id",
        ),
        Parameter("view", "View", "`summary` leaves out payloads, and says how many items there are"),
        Parameter(
            "sort",
            "Sort",
            "`created`: newest first; `updated`: most recently changed first; `due`: soonest deadline first, items \
             without one last; `title`: by the first 32 characters, ignoring case",
        ),
        Parameter("limit", "ItemsLimit", "The maximum number to return; over 200 only with `view=summary`"),
        Parameter("cursor", "ShortText", "The `next` of the previous page, with the same `sort`"),
    ],
    problems: &[Code::InvalidRequest, Code::Unavailable],
    ..answer("Items, newest first unless sorted", Success(200, "A page of items", JSON, Some("ItemsPage")))
};
pub(super) const ITEM: Docs =
    Docs { answer_headers: &["ETag"], ..find("One item", Success(200, "The item", JSON, Some("WholeItem"))) };
pub(super) const EDIT: Docs = Docs {
    answer_headers: &["ETag"],
    request: Some(RequestBody(
        &["application/merge-patch+json", JSON],
        "ItemPatch",
        Needed::Always,
        CONTENT_BODY_BYTES_MAX,
    )),
    headers: &["If-Match"],
    problems: &[
        Code::SeparationOfDuties,
        Code::NotOwner,
        Code::NotFound,
        Code::StateConflict,
        Code::ItemHeld,
        Code::VersionMismatch,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::Unavailable,
    ],
    ..answer("Change your own item while it is in draft or returned", Success(200, "The item", JSON, Some("WholeItem")))
};
pub(super) const ACT: Docs = Docs {
    answer_headers: &["ETag"],
    request: Some(RequestBody(&[JSON], "Action", Needed::Always, ACTION_BODY_BYTES_MAX)),
    headers: &["Idempotency-Key", "If-Match"],
    problems: &[
        Code::RoleForbidden,
        Code::SeparationOfDuties,
        Code::NotOwner,
        Code::NotFound,
        Code::StateConflict,
        Code::AlreadyDecided,
        Code::ContentChanged,
        Code::ItemHeld,
        Code::OutsideWindow,
        Code::VersionMismatch,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::UnknownAction,
        Code::TokenInContent,
        Code::IdempotencyKeyReused,
        Code::Unavailable,
    ],
    ..answer("Take an action on an item", Success(201, "The transition", JSON, Some("Transition")))
};
const OF_ENTRIES: &[Parameter] = &[
    Parameter("limit", "Limit", "The maximum number to return"),
    Parameter("cursor", "ShortText", "The `next` of the previous page"),
];
pub(super) const TRANSITIONS: Docs = Docs {
    answer_headers: &["Link"],
    query: OF_ENTRIES,
    problems: &[Code::NotFound, Code::InvalidRequest, Code::Unavailable],
    ..answer("The moves of an item, oldest first", Success(200, "A page of moves", JSON, Some("Transitions")))
};
pub(super) const HISTORY: Docs = Docs {
    answer_headers: &["Link"],
    query: OF_ENTRIES,
    problems: &[Code::NotFound, Code::InvalidRequest, Code::Unavailable],
    ..answer(
        "Everything that happened to an item, including edits and comments, oldest first",
        Success(200, "A page of the history", JSON, Some("History")),
    )
};
pub(super) const CONTENT: Docs = find(
    "A content that an item has or had: the one with this digest",
    Success(200, "The content", JSON, Some("Content")),
);
pub(super) const LOOK: Docs = Docs {
    request: Some(RequestBody(&[JSON], "NewLook", Needed::Always, COMMENT_BODY_BYTES_MAX)),
    problems: &[
        Code::NotFound,
        Code::ContentChanged,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::Unavailable,
    ],
    ..answer("Remember that you looked at an item's content", Success(204, "It is remembered", JSON, None))
};
pub(super) const COMMENT: Docs = Docs {
    answer_headers: &["ETag"],
    request: Some(RequestBody(&[JSON], "NewComment", Needed::Always, COMMENT_BODY_BYTES_MAX)),
    // `If-Match` is honoured too, except if a request is repeated: that gets the same answer as before.
    headers: WRITES,
    problems: &[
        Code::NotFound,
        Code::VersionMismatch,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::IdempotencyKeyReused,
        Code::Unavailable,
    ],
    ..answer("Comment on an item", Success(201, "The comment", JSON, Some("Transition")))
};
pub(super) const PROOF: Docs = Docs {
    query: &[
        Parameter("after", "Index", "Only entries with a higher index"),
        Parameter("limit", "ProofLimit", "The maximum number to return"),
    ],
    problems: &[Code::NotFound, Code::InvalidRequest, Code::Unavailable],
    ..answer("Proofs that the item's entries are in the log", Success(200, "The proofs", JSON, Some("Proofs")))
};
pub(super) const EVENTS: Docs = Docs {
    also: &[("text/event-stream", "Feed")],
    query: &[
        Parameter("after", "Index", "Only entries with a higher index"),
        Parameter("limit", "Limit", "The maximum number to return"),
    ],
    headers: &["Last-Event-ID"],
    problems: &[Code::InvalidRequest, Code::Unavailable],
    ..answer(
        "The ledger's entries in order; with `Accept: text/event-stream`, a live feed",
        Success(200, "A page of entries", JSON, Some("Events")),
    )
};
pub(super) const CREDENTIALS: Docs =
    answer("Credentials and their state; never a digest", Success(200, "The credentials", JSON, Some("Credentials")));
pub(super) const WEBHOOKS: Docs = Docs {
    problems: &[Code::Unavailable],
    ..answer(
        "The endpoints that are told about entries, and how far each has got",
        Success(200, "The endpoints", JSON, Some("Webhooks")),
    )
};
pub(super) const REPLAY: Docs = Docs {
    request: Some(RequestBody(&[JSON], "NewReplay", Needed::Always, COMMENT_BODY_BYTES_MAX)),
    problems: &[
        Code::NotFound,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::Unavailable,
    ],
    ..answer(
        "Deliver to an endpoint again, from an entry on that it has passed or is at; a paused one is resumed",
        Success(200, "The endpoint", JSON, Some("Webhook")),
    )
};
pub(super) const REVOCATION: Docs = Docs {
    request: Some(RequestBody(&[JSON], "NewRevocation", Needed::Optional, BODY_BYTES_MAX)),
    headers: WRITES,
    problems: &[
        Code::NotFound,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::IdempotencyKeyReused,
        Code::Unavailable,
    ],
    ..answer(
        "Revoke a credential, immediately and permanently; a repeated request returns the existing revocation",
        Success(201, "The revocation", JSON, Some("Revocation")),
    )
};
pub(super) const ACTORS: Docs = answer("Actors and their roles", Success(200, "The actors", JSON, Some("Actors")));
pub(super) const FIGURES: Docs = Docs {
    query: &[Parameter("days", "Days", "How many days back, today included")],
    problems: &[Code::InvalidRequest],
    ..answer(
        "Figures of the whole ledger: open items, decisions and refusals by day, and how long decisions took",
        Success(200, "The figures", JSON, Some("Figures")),
    )
};
pub(super) const NODES: Docs =
    answer("The nodes that share the ledger", Success(200, "The nodes", JSON, Some("Nodes")));
pub(super) const CHECKPOINT: Docs = Docs {
    query: &[Parameter(
        "cosignatures",
        "Cosignatures",
        "`required`: the newest checkpoint that has as many cosignatures as the service requires; `any`: the newest one, with the cosignatures it has",
    )],
    problems: &[Code::InvalidRequest],
    ..answer("The signed head of the log (C2SP checkpoint)", Success(200, "A signed note", "text/plain", None))
};
pub(super) const TILE: Docs = find(
    "Hashes of the log's tree (C2SP tlog-tiles)",
    Success(200, "Up to 256 hashes", "application/octet-stream", None),
);
pub(super) const ENTRIES: Docs =
    find("Entries of the log (C2SP entry bundle)", Success(200, "Up to 256 entries", "application/octet-stream", None));
pub(super) const EVIDENCE: Docs = Docs {
    answer_headers: &["Content-Disposition", "Evidence-Entries"],
    query: &[
        Parameter("item", "ItemId", "Everything about this item; give either `item`, or `from` and `to`"),
        Parameter("from", "Time", "Everything from this time on"),
        Parameter("to", "Time", "And before this time"),
        Parameter("documents", "Documents", "With `none`, what people wrote is left out; the proofs remain valid"),
        Parameter(
            "kept",
            "Index",
            "The number of entries in a checkpoint you kept: the bundle then contains the proof that the log continues it",
        ),
    ],
    problems: &[Code::NotFound, Code::InvalidRequest, Code::Unavailable],
    ..answer(
        "An evidence bundle: proves offline what happened, and that it followed the rules",
        Success(200, "A zip file", "application/zip", None),
    )
};
pub(super) const ATTESTATION: Docs = Docs {
    problems: &[Code::NotFound, Code::InvalidRequest, Code::Unavailable],
    ..answer(
        "What the service knows about an item's outcome, as an in-toto statement that pipelines can check: signed by the log",
        Success(200, "A DSSE envelope", "application/vnd.dsse.envelope.v1+json", None),
    )
};
pub(super) const PERMIT: Docs = Docs {
    answer_headers: &["Content-Disposition", "Evidence-Entries"],
    problems: &[
        Code::NotOwner,
        Code::NotFound,
        Code::StateConflict,
        Code::ItemHeld,
        Code::OutsideWindow,
        Code::InvalidRequest,
        Code::Unavailable,
    ],
    ..answer(
        "A permit for the holder of the lease: proves offline, to a target, that the effect under way was begun by the rules",
        Success(200, "A zip file, an evidence bundle as of the start", "application/zip", None),
    )
};
pub(super) const PERMIT_TOKEN: Docs = Docs {
    request: Some(RequestBody(&[JSON], "NewPermitToken", Needed::Always, COMMENT_BODY_BYTES_MAX)),
    headers: WRITES,
    problems: &[
        Code::NotOwner,
        Code::NotFound,
        Code::StateConflict,
        Code::ItemHeld,
        Code::OutsideWindow,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::InvalidRequest,
        Code::TokenInContent,
        Code::IdempotencyKeyReused,
        Code::Unavailable,
    ],
    ..answer(
        "Issue a token with which the holder of the lease shows one target that the effect under way was approved",
        Success(201, "The token", JSON, Some("PermitToken")),
    )
};
pub(super) const PERMIT_ISSUER: Docs = Docs {
    problems: &[Code::NotFound],
    ..answer(
        "Where targets find the keys of permit tokens (OpenID Connect Discovery); only with `[permits]`",
        Success(200, "The metadata", JSON, Some("PermitIssuer")),
    )
};
pub(super) const PERMIT_KEYS: Docs = Docs {
    problems: &[Code::NotFound],
    ..answer(
        "The keys of permit tokens (RFC 7517); only with `[permits]`",
        Success(200, "The keys", JSON, Some("PermitKeys")),
    )
};
pub(super) const OPENAPI: Docs = answer("This document", Success(200, "OpenAPI 3.1", JSON, None));
pub(super) const PAGE: Docs = answer(
    "The API and its problems as a page; readable without internet access",
    Success(200, "A page", "text/html", None),
);
pub(super) const STYLE: Docs =
    answer("The style sheet of the documentation", Success(200, "A style sheet", "text/css", None));
pub(super) const HEALTH: Docs =
    answer("Whether the process is alive", Success(200, "It is alive", JSON, Some("Health")));
pub(super) const READINESS: Docs = Docs {
    problems: &[Code::Unavailable],
    ..answer("Whether the service can take requests", Success(200, "It can", JSON, Some("Health")))
};
pub(super) const CONSOLE: Docs = answer("The operator console", Success(200, "A page", "text/html", None));
pub(super) const ROOT: Docs =
    answer("The operator console, at the root of its screens", Success(200, "The same page", "text/html", None));
pub(super) const SCREEN: Docs =
    answer("A screen of the console, at its own address", Success(200, "The same page", "text/html", None));
pub(super) const ASSET: Docs = Docs {
    also: &[("text/css", "File"), ("image/svg+xml", "File")],
    problems: &[Code::NotFound],
    ..answer("A file of the console", Success(200, "The file", "text/javascript", Some("File")))
};
pub(super) const RESOURCE: Docs = Docs {
    problems: &[Code::NotFound],
    ..answer(
        "The identity provider that issues tokens (RFC 9728); only with mechanism `oauth`",
        Success(200, "The metadata", JSON, Some("ProtectedResource")),
    )
};
pub(super) const SETTINGS: Docs = answer(
    "What the console needs to know before sign-in",
    Success(200, "The settings", JSON, Some("ConsoleSettings")),
);
