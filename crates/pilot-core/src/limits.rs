//! Every limit of the service, in one place. The table in `docs/reference/limits.md` is generated from [`TABLE`].

use std::time::Duration;

pub const TOKEN_BYTES_MIN: usize = 32;
pub const TOKEN_BYTES_MAX: usize = 256;
pub const ACTOR_ID_CHARS_MAX: usize = 128;
pub const CREDENTIAL_ID_CHARS_MAX: usize = 128;
/// How a certificate or an identity provider names an actor.
pub const SUBJECT_CHARS_MAX: usize = 512;

/// A token an identity provider signed says more than one drawn at random, and is longer.
pub const ACCESS_TOKEN_BYTES_MAX: usize = 8 * 1024;
/// A client's id at the provider is shown in the log up to this length.
pub const CLIENT_SHOWN_CHARS_MAX: usize = 128;
/// Values that are read from one list in a token: its scopes, groups or roles.
pub const CLAIM_VALUES_MAX: usize = 256;
/// Names in the path to a claim.
pub const CLAIM_PATH_NAMES_MAX: usize = 4;
/// Entries in a list of the configuration that tokens are compared with, and characters in each.
pub const TOKEN_DEMANDS_MAX: usize = 64;
pub const TOKEN_DEMAND_CHARS_MAX: usize = 256;
/// How many that were shown and have not expired are remembered, for those who watch over access.
pub const ACCESS_TOKENS_SEEN_MAX: usize = 16 * 1024;
/// How many that were shown after they had expired are remembered, so that a clock set back does not revive them.
pub const ACCESS_TOKENS_EXPIRED_MAX: usize = 16 * 1024;
pub const KEY_SET_BYTES_MAX: usize = 128 * 1024;
pub const KEY_SET_KEYS_MAX: usize = 64;
/// How often the provider's keys are fetched again, and how soon after a failure.
pub const KEY_SET_REFETCHED: Duration = Duration::from_mins(5);
pub const KEY_SET_RETRIED: Duration = Duration::from_secs(15);
/// An unknown key is fetched immediately, but not more often than this, because anyone can name one.
pub const KEY_SET_PAUSE: Duration = Duration::from_secs(5);
/// How many requests may wait for a key that is not known; anyone can name one.
pub const KEY_SET_WAITING_MAX: usize = 256;
/// How long fetched keys are used while the provider cannot be reached.
pub const KEY_SET_KEPT: Duration = Duration::from_hours(24);
/// How long the identity provider has for an answer.
pub const PROVIDER_DEADLINE: Duration = Duration::from_secs(5);
/// How long the provider's word that a token is active is relied upon.
pub const INTROSPECTION_KEPT: Duration = Duration::from_secs(5);
pub const INTROSPECTIONS_MAX: usize = 4_096;

pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Bodies of operations that never need as much.
pub const COMMENT_BODY_BYTES_MAX: usize = 32 * 1024;
pub const CONTENT_BODY_BYTES_MAX: usize = 128 * 1024;
pub const ACTION_BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of bodies and answers in memory at a time: in total, and per actor.
pub const BYTES_HELD_MAX: usize = 128 * 1024 * 1024;
pub const ACTOR_BYTES_HELD_MAX: usize = 16 * 1024 * 1024;
/// What a request uses in addition to its body while it waits for it: its head, and its state in the HTTP library.
pub const WAITING_REQUEST_BYTES: usize = 24 * 1024;
/// How many requests of one actor wait for a share of them.
pub const ACTOR_SHARES_WAITING_MAX: usize = 256;
/// Bodies that nobody wants and that are being read to their end.
pub const UNWANTED_BODIES_MAX: usize = 1_024;
/// How long a request waits for its share of them.
pub const SHARE_DEADLINE: Duration = Duration::from_secs(5);
/// A body up to this size is read where it arrived, and counted only when it has to be waited for: most are smaller.
pub const SMALL_BODY_BYTES_MAX: usize = 8 * 1024;
/// Computations that take long: how many are done at a time, in all and for one actor.
pub const LONG_TASKS_MAX: usize = 2;
pub const ACTOR_LONG_TASKS_MAX: usize = 1;
/// How many more of one actor, or of one address while nobody is known there, wait for their turn.
pub const ACTOR_LONG_TASKS_WAITING_MAX: usize = 64;
/// Live feeds: for one actor, and in all.
pub const ACTOR_FEEDS_MAX: usize = 64;
pub const FEEDS_MAX: usize = 4_000;
/// How many connections one address may hold, as a part of all there are: the rest is for others.
pub const ADDRESS_CONNECTIONS_PART: usize = 4;
/// How many connections one address may open a second, and how many at once if it has opened none before. Each costs more
/// than a request on one that is there.
pub const ADDRESS_ARRIVALS_PER_SECOND: usize = 10_000;
pub const ADDRESS_ARRIVALS_MAX: usize = 20_000;
/// A smaller answer is not compressed: it fits into one packet as it is.
pub const COMPRESSED_BYTES_MIN: usize = 1024;
/// A page of a list ends when what it shows has reached this size.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much of an unwanted body is read, so that its sender gets to read the answer.
pub const UNWANTED_BYTES_MAX: u64 = 16 * 1024 * 1024;
pub const UNWANTED_DEADLINE: Duration = Duration::from_secs(2);
pub const HEADER_BLOCK_BYTES_MAX: usize = 16 * 1024;
pub const HEADER_FIELDS_MAX: usize = 64;
pub const URL_BYTES_MAX: usize = 8 * 1024;
/// Members and elements of a request's body, at every level. A payload and what goes with it.
pub const BODY_VALUES_MAX: usize = 5_000;
/// The same for a private file that is read at the start.
pub const FILE_VALUES_MAX: usize = 2_000_000;
/// The same for an answer of an identity provider or a secret manager, and for a token's claims.
pub const ANSWER_VALUES_MAX: usize = 10_000;
/// How many faults of one input are listed; the rest are counted.
pub const FAULTS_MAX: usize = 50;
/// A longer pointer shows nobody where to look.
pub const POINTER_BYTES_MAX: usize = 1_024;
/// Longer than anything there is to look for.
pub const QUERY_VALUE_CHARS_MAX: usize = 1_000;

/// An earlier content of an item is looked for in this many of its entries, from the first on. Content changes only
/// before anything is executed.
pub const CONTENT_ENTRIES_MAX: usize = 4_096;
/// The entry by which an item was held, or its caller's last, is looked for in this many of its newest entries.
pub const NEWEST_ENTRIES_MAX: usize = 1_024;
/// A refusal names this many of those who can instead, after asking about this many.
pub const WHO_CAN_NAMED_MAX: usize = 5;
pub const WHO_CAN_ASKED_MAX: usize = 10_000;

pub const TITLE_CHARS_MAX: usize = 200;
/// What an installation is called in its console.
pub const CONSOLE_NAME_CHARS_MAX: usize = 40;
pub const COMMENT_CHARS_MAX: usize = 4_000;
/// An item with this many entries takes no more comments.
pub const COMMENTED_ENTRIES_MAX: usize = 2_000;
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
pub const PAYLOAD_DEPTH_MAX: usize = 32;
/// Each value takes many times its bytes while it is being looked at.
pub const PAYLOAD_VALUES_MAX: usize = 4_000;
pub const PAGE_ITEMS_MAX: usize = 200;
/// Summaries have no payload, so a page has room for more of them.
pub const SUMMARIES_MAX: usize = 1_000;
/// A payload's `risk` that is longer than this is not a label that lists can show.
pub const RISK_CHARS_MAX: usize = 32;
/// The beginning of an id that a search takes for one.
pub const ID_PREFIX_CHARS_MIN: usize = 8;
/// How many characters of a title count when a list is sorted by title.
pub const SORTED_TITLE_CHARS_MAX: usize = 32;
/// The total of a list is counted up to here.
pub const COUNTED_ITEMS_MAX: usize = 10_000;
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
pub const IDEMPOTENCY_KEY_KEPT: Duration = Duration::from_hours(24);

/// How long a write may wait for the disk. A write waits for the one in progress and then for its own, so for twice
/// this.
pub const COMMIT_DEADLINE: Duration = Duration::from_secs(5);
/// When writes have waited for the disk this long, the watchdog is no longer notified.
pub const HANG_TOLERATED: Duration = Duration::from_mins(1);
pub const WRITES_WAITING_MAX: usize = 4_096;
/// How long the store works on one query.
pub const QUESTION_DEADLINE: Duration = Duration::from_secs(2);
pub const QUESTIONS_WAITING_MAX: usize = 1_024;
/// How many items a search looks at before others have their turn, and for one request in all.
pub const SEARCH_VISIT_ROWS_MAX: usize = 5_000;
pub const SEARCH_ROWS_MAX: usize = 50_000;
/// How many bytes of contents a search looks through before others have their turn.
pub const SEARCH_VISIT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many parts of a searched text are looked up in the search index, and in how many of its slabs before others have
/// their turn.
pub const SEARCH_GRAMS_MAX: usize = 16;
pub const SEARCH_VISIT_SLABS_MAX: usize = 1_024;
/// A search goes through the entries that its index does not cover yet. The index is brought up to date when there are
/// more than the first number; with more than the second, the search does without it.
pub const SEARCH_UNINDEXED_TOLERATED: u64 = 512;
pub const SEARCH_UNINDEXED_MAX: u64 = 8_192;
/// How many items may share the beginning of an id for the search index to be of use.
pub const SEARCH_IDS_MAX: usize = 1_000;
/// How many edited items a search looks at whatever it searches for, before the search index takes them in.
pub const SEARCH_EDITED_MAX: usize = 1_024;
/// How many entries, and about how many bytes of contents, are indexed before the database's log may be copied again.
pub const INDEXED_ENTRIES_MAX: u64 = 1_024;
pub const INDEXED_BYTES_MAX: usize = 1024 * 1024;
/// How many entries of an item are proved in one answer.
pub const PROOFS_MAX: usize = 1_000;

pub const FIRST_BYTE_DEADLINE: Duration = Duration::from_secs(5);
pub const HEADERS_DEADLINE: Duration = Duration::from_secs(5);
pub const BODY_DEADLINE: Duration = Duration::from_secs(15);
pub const IDLE_DEADLINE: Duration = Duration::from_mins(1);
pub const CONNECTIONS_MAX: usize = 10_000;
/// Requests in progress on one HTTP/2 connection.
pub const HTTP2_STREAMS_MAX: u32 = 128;
/// Requests over HTTP/2 that are in progress, or whose answer the peer has not read: per address, and in total. Each
/// uses some five kibibytes in addition to its bytes, for as long as the peer likes.
pub const ADDRESS_HTTP2_STREAMS_MAX: usize = 8 * 1024;
pub const HTTP2_STREAMS_IN_ALL_MAX: usize = 32 * 1024;
/// What a peer may send before it is read, and what is made for it before it is taken in: for a request, and for all of a
/// connection.
pub const HTTP2_STREAM_BYTES: u32 = 64 * 1024;
pub const HTTP2_CONNECTION_BYTES: u32 = 256 * 1024;

/// A checkpoint with all the signatures a note may have, and a proof.
pub const WITNESS_BODY_BYTES_MAX: usize = 64 * 1024;
/// A witness serves few clients: a handful of logs, once a second.
pub const WITNESS_CONNECTIONS_MAX: usize = 256;
/// How long one witness has for its answer, and a request for enough of them.
pub const WITNESS_ANSWER_DEADLINE: Duration = Duration::from_secs(4);
pub const WITNESSES_DEADLINE: Duration = Duration::from_secs(5);

/// How many approved artifacts an attestation names.
pub const ATTESTED_ARTIFACTS_MAX: usize = 100;

/// How long a timestamping authority has for its answer.
pub const TIMESTAMP_DEADLINE: Duration = Duration::from_secs(10);
/// The most that it may answer.
pub const TIMESTAMP_BYTES_MAX: usize = 16 * 1024;

/// How many bundles are built at a time, in total and per actor.
pub const EXPORTS_MAX: usize = 2;
pub const EXPORTS_PER_ACTOR_MAX: usize = 1;
/// Permits are bundles of one item without a report. They have places of their own, so that no auditor's export keeps an
/// executor waiting.
pub const PERMITS_MAX: usize = 8;
/// One agent may execute several items.
pub const PERMITS_PER_ACTOR_MAX: usize = 4;
/// Attestations that are being signed. A key that is in no file may take long for each.
pub const ATTESTATIONS_MAX: usize = 16;
pub const ATTESTATIONS_PER_ACTOR_MAX: usize = 4;
/// The largest permit that `pilot permit verify` and `pilot gate` read, and how much of approved files the gate copies
/// into memory for one command.
pub const PERMIT_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const GATE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How soon a caller who was told to wait for another bundle may ask again.
pub const EXPORT_RETRY: Duration = Duration::from_secs(5);
/// Longer than any client that reads needs; one that does not read loses its place.
pub const EXPORT_DEADLINE: Duration = Duration::from_hours(1);
/// The manifest of a larger bundle, which is signed as a whole, would not fit into a small machine.
pub const EXPORT_ENTRIES_MAX: u64 = 1_000_000;
/// The most cosigned checkpoints in a bundle. If there are more, they are thinned out evenly.
pub const EXPORT_CHECKPOINTS_MAX: usize = 4_096;
/// While the log grows, a cosigned checkpoint is kept this often, to date the entries.
pub const CHECKPOINT_KEPT_EVERY: Duration = Duration::from_mins(1);
/// For a larger bundle the service generates no report, because it would have to keep all of it in memory. `pilot
/// evidence report` can.
pub const EXPORT_REPORTED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The size of one piece of a bundle, and how many pieces are buffered for a slow reader.
pub const EXPORT_PIECE_BYTES: usize = 128 * 1024;
pub const EXPORT_PIECES_WAITING_MAX: usize = 4;
/// What the store reads at a time, where entries come with their documents.
pub const STORE_PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// How many may be in force: a start names each of them in one entry, which is smaller than 64 KiB.
pub const DEFINITIONS_MAX: usize = 256;
pub const DEFINITION_BYTES_MAX: usize = 256 * 1024;
pub const DEFINITION_STATES_MAX: usize = 50;
pub const DEFINITION_TRANSITIONS_MAX: usize = 200;
/// More people than this cannot be gathered for one decision, and the search for the smallest group stays small.
pub const QUORUM_MAX: u32 = 9;
/// What checking a payload may cost. In a released program a million steps take at most some forty milliseconds; a payload
/// of 64 KiB for a schema with a few patterns takes some ten or hundred thousand of them.
pub const SCHEMA_STEPS_MAX: usize = 1_000_000;
/// How deep schemas may be nested while a payload is checked, so that none exhausts the stack; and how deep for the same
/// value.
pub const SCHEMA_DEPTH_MAX: usize = 512;
pub const SCHEMA_CHAIN_MAX: usize = 64;
/// A longer pattern would be a list of words, for which there is `enum`.
pub const PATTERN_BYTES_MAX: usize = 8 * 1024;
/// How many states the patterns of a schema may have when their repetitions are written out.
pub const SCHEMA_PATTERNS_MAX: usize = 100_000;
pub const RESULT_CHARS_MAX: usize = 4_000;
pub const PROGRESS_CHARS_MAX: usize = 500;
pub const ARTIFACTS_MAX: usize = 100;

/// A budget for more than this in a minute limits nothing.
pub const RATE_PER_MINUTE_MAX: u32 = 1_000_000;
/// Actors are few: those of the role map.
pub const RATE_ACTORS_MAX: usize = 16 * 1024;
/// Addresses are as many as the internet has; beyond this, the least interesting are forgotten.
pub const RATE_ADDRESSES_MAX: usize = 64 * 1024;

/// Faults of one kind in a file that are listed one by one.
pub const FAULTS_OF_ONE_KIND_MAX: usize = 3;

/// Who did something to the ledger itself, as the ledger names them.
pub const OPERATOR_CHARS_MAX: usize = 128;

/// The one in use, the next one, and two that somebody forgot.
pub const MESH_SECRETS_MAX: usize = 4;

/// The credential file and the role map are read whole, so their size is bounded before they are read.
pub const PRIVATE_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a secret manager may take for an answer, and a helper for the file.
pub const SOURCE_PATIENCE: Duration = Duration::from_secs(10);
/// People and supervisors would think that a longer start hangs.
pub const SOURCE_PATIENCE_MAX: Duration = Duration::from_mins(1);

/// How long a program that signs with the log's key may take for one signature, unless configured otherwise.
pub const SIGNER_PATIENCE_SECONDS: u8 = 5;
pub const SIGNER_PATIENCE_SECONDS_MAX: u8 = 10;
/// How many signatures, other than those of checkpoints, may wait for such a program.
pub const SIGNATURES_WAITING_MAX: usize = 64;
/// The most that such a program may answer with.
pub const SIGNER_ANSWER_BYTES_MAX: usize = 4 * 1024;

/// Spans that wait for a collector, how many are sent at a time, and how long that may take.
pub const SPANS_WAITING_MAX: usize = 4_096;
pub const SPANS_IN_A_BATCH: usize = 512;
pub const SPAN_DEADLINE: Duration = Duration::from_secs(5);

/// How many endpoints may be told about entries, and how many keys of one may sign at a time.
pub const WEBHOOKS_MAX: usize = 16;
pub const WEBHOOK_SECRETS_MAX: usize = 2;
pub const WEBHOOK_NAME_CHARS_MAX: usize = 40;
/// How large one message may be, and how long its delivery may take as a whole.
pub const WEBHOOK_BYTES_MAX: usize = 20_000;
pub const WEBHOOK_DEADLINE: Duration = Duration::from_secs(15);
/// How long a stop waits for the answer to a delivery or a notice under way, which would otherwise be sent again.
pub const LAST_STEP_MAX: Duration = Duration::from_secs(3);
/// An endpoint that has failed for this long is paused.
pub const WEBHOOK_FAILING_MAX: Duration = Duration::from_hours(5 * 24);
/// How much may be delivered again after a crash: the place in the ledger is saved at least this often.
pub const WEBHOOK_UNSAVED_MAX: u64 = 32;
/// How many chats and mail servers people may be told by, and how many people have addresses.
pub const NOTICES_MAX: usize = 8;
pub const CONTACTS_MAX: usize = 1_000;
pub const CONTACT_CHARS_MAX: usize = 254;
/// What comes within so long of a message goes into one that follows it.
pub const NOTICES_TOGETHER: Duration = Duration::from_mins(5);
/// How long one message may take to be delivered, and how many items are kept for the next one to the same place.
pub const NOTICE_DEADLINE: Duration = Duration::from_secs(30);
pub const NOTICE_ITEMS_MAX: usize = 200;
/// How many items one message shows: people read no more, and chats refuse longer messages. How many of each role a summary
/// looks at.
pub const NOTICE_LINES_MAX: usize = 10;
pub const NOTICE_SUMMARY_ITEMS_MAX: usize = 2_000;
/// What could not be told for so long is not news any more.
pub const NOTICE_AGE_MAX: Duration = Duration::from_hours(5 * 24);

/// How many items that have not ended a machine may have, unless the role map says otherwise: people who are asked too
/// often stop reading.
pub const MACHINE_OPEN_ITEMS: u32 = 5;
pub const MACHINE_OPEN_ITEMS_MAX: u32 = 1_000;

/// How far the machine's clock may jump ahead of the time elapsed and still be trusted.
pub const CLOCK_LEAP_MAX: Duration = Duration::from_mins(10);
/// After a restart of the machine it is not known how long it was off; this much is accepted, unless configured
/// otherwise.
pub const CLOCK_OUTAGE_DAYS: u16 = 7;

/// What each limit bounds, its value, and what a caller who exceeds it sees.
pub const TABLE: &[(&str, &str, &str)] = &[
    ("Token", "32 to 256 printable ASCII bytes, no spaces", "401 `credential_required`"),
    ("Access token, with mechanism `oauth`", "8 KiB, three parts in base64url", "401 `credential_required`"),
    ("Id of an access token (`jti`)", "512 characters", "401 `credential_required`"),
    ("Scopes, groups or roles read from an access token", "256 values in each list", "401 `credential_required`"),
    ("Key set of the identity provider", "128 KiB, 64 keys", "the set is refused and the previous one stays in use"),
    ("Use of stored keys while the identity provider cannot be reached", "24 h", "503 `unavailable`"),
    ("Answer of the identity provider", "5 s", "stored keys are used; without any, 503 `unavailable`"),
    ("Requests waiting for a key of the identity provider", "256", "503 `unavailable`"),
    ("Digest in the credential file", "64 lowercase hexadecimal characters", "the service does not start"),
    ("Roles per credential", "exactly 1", "the service does not start"),
    ("Actor id", "128 characters", "the service does not start"),
    ("Credential id", "128 characters", "the service does not start"),
    ("Subject in the role map", "512 characters", "the service does not start"),
    ("Credential file, role map", "16 MiB", "the service does not start"),
    ("Revocations kept outside the database", "16 MiB", "the service does not start"),
    ("Mesh secrets", "4, each of 32 to 256 printable ASCII bytes", "the service does not start"),
    ("Name of the installation in its console", "40 characters", "the service does not start"),
    ("Faults listed per file", "50, at most 3 of one kind", "the rest are counted"),
    ("Operator's name in the ledger", "128 characters", "longer names are cut off"),
    (
        "Answer of a secret manager, run time of a credential helper",
        "configurable, 1 to 60 s; default 10 s",
        "the start fails, exit code 3",
    ),
    (
        "Signature by the program in `log.signer`",
        "configurable, 1 to 10 s; default 5 s; an answer of 4 KiB",
        "it is killed; writes get 503 `unavailable` until it signs again",
    ),
    ("Attestations in progress", "16, at most 4 per actor", "503 `unavailable`"),
    ("Spans waiting for the collector in `[traces]`", "4,096", "the newest are dropped and counted"),
    ("Signatures waiting for that program, other than of checkpoints", "64", "503 `unavailable`"),
    ("Webhook endpoints", "16, each with 1 or 2 keys and a name of 40 characters", "the service does not start"),
    ("Message to a webhook endpoint", "20,000 bytes", "`details` is left out of it"),
    ("Delivery to a webhook endpoint", "15 s; 4 KiB of the answer", "it counts as failed, and is tried again"),
    ("Chats and mail servers for notices", "8, for at most 1,000 contacts", "the service does not start"),
    (
        "Message to a chat or a person",
        "10 items with their facts, of at most 200 that wait for it",
        "the others are counted",
    ),
    ("Delivery of a message to a chat or a person", "30 s; messages of five minutes go together", "it is tried again"),
    (
        "Message under way to an endpoint, a chat or a person when the service stops",
        "3 s",
        "it is given up, and sent again after the next start",
    ),
    ("Failure of a webhook endpoint", "5 days", "it is paused until a security_admin resumes it"),
    (
        "Request body",
        "comment 32 KiB, new item and edit 128 KiB, action 256 KiB, anything else 1 MiB",
        "413 `body_too_large`",
    ),
    ("Values in a request body, at every level", "5,000, 36 levels deep", "422 `invalid_request`"),
    ("Faults listed per request", "50, each with a pointer of 1 KiB", "the rest are counted"),
    (
        "Body of a refused request, read and discarded",
        "16 MiB, 2 s, 1,024 at a time",
        "the answer is sent before the body ends, and the connection is closed",
    ),
    (
        "Bytes of request bodies and answers in flight",
        "16 MiB per actor, 128 MiB in total; requests wait up to 5 s for their share, at most 256 per actor",
        "503 `unavailable`",
    ),
    (
        "Long-running work: large bodies, long lists, long URLs",
        "1 at a time per actor or address, 2 in total; 64 more per caller wait",
        "429 `rate_limited`",
    ),
    ("Header block", "16 KiB, 64 fields", "431 `invalid_request`"),
    ("URL", "8 KiB", "414 `invalid_request`"),
    ("Query parameter", "1,000 characters, given once", "422 `invalid_request`"),
    ("Title", "200 characters", "422 `invalid_request`"),
    ("Comment", "4,000 characters", "422 `invalid_request`"),
    ("Payload", "64 KiB, 32 levels deep, 4,000 values", "422 `invalid_request`"),
    ("Check of a payload against its schema", "1,000,000 steps, 512 nested schemas", "422 `invalid_request`"),
    ("Result of an execution", "4,000 characters, 100 artifacts", "422 `invalid_request`"),
    ("Workflow definition", "256 KiB, 50 states, 200 transitions, quorum 9", "the definition is refused"),
    (
        "Payload schema of a definition",
        "64 nested schemas for one value; 8 KiB per pattern, and 100,000 states for all patterns",
        "the definition is refused",
    ),
    ("Workflow definitions in force", "256, the built-in ones included", "the service does not start"),
    ("Page of a list", "200; of items with `view=summary`, 1,000", "422 `invalid_request`"),
    ("Items searched for one page of a list", "50,000", "the page has fewer items, and `next` continues from there"),
    ("Items searched for a sorted list", "50,000", "422 `invalid_request`; narrow the list down"),
    (
        "Contents searched for one page of a list",
        "40 MiB, 4 MiB at a time",
        "the page has fewer items, and `next` continues from there",
    ),
    ("Total of a list", "10,000", "`total` is null"),
    ("Proofs in one answer", "1,000", "the answer has fewer, and `next` continues from there"),
    ("Query to the store", "2 s, 1,024 waiting", "503 `unavailable`"),
    (
        "Disk that does not respond",
        "5 s per commit, 4,096 waiting writes",
        "503 `unavailable`; after 60 s the watchdog is no longer notified",
    ),
    ("Items of one machine that have not ended", "configurable; default 5", "409 `too_many_open`"),
    ("Entries of an item that still takes comments", "2,000", "409 `state_conflict` for further comments"),
    ("Page of a list, total size of its payloads", "4 MiB", "the page ends there, with a `next`"),
    ("Idempotency key", "255 characters, kept 24 h", "422 `invalid_request`"),
    ("First byte of a connection", "5 s", "the connection is closed"),
    ("Request headers", "5 s", "the connection is closed"),
    ("Request body, time to arrive", "15 s", "408 `invalid_request`, and the connection is closed"),
    (
        "TLS handshake",
        "5 s from its first byte, including the headers of the first request",
        "the connection is closed",
    ),
    ("Idle connection", "60 s", "the connection is closed"),
    ("Wait for required witnesses before an effect", "5 s", "503 `unavailable`"),
    ("Answer of the timestamping authority", "10 s, 16 KiB", "no timestamp; the service tries again after a minute"),
    ("Artifacts named in an attestation", "100", "the rest are left out"),
    ("Forward jump of the machine's clock", "10 min", "503 `unavailable` for every write"),
    (
        "Outage that includes a restart of the machine",
        "configurable; default 7 days",
        "503 `unavailable` for every write until an operator accepts the clock",
    ),
    ("Request to a witness", "64 KiB, 256 connections", "413; new connections wait to be accepted"),
    (
        "Open connections",
        "10,000, or fewer if the limit on open files is lower",
        "the longest-idle anonymous ones are closed; if there are none, new ones after 1 s",
    ),
    (
        "Open connections per address (IPv6: per /64)",
        "a quarter of the total, except for a mesh",
        "its longest-idle anonymous ones are closed; if there are none, new ones immediately",
    ),
    (
        "New connections per address (IPv6: per /64)",
        "10,000 per second, 20,000 at once, except for a mesh",
        "further ones are closed immediately",
    ),
    ("Live feeds per actor", "64", "429 `rate_limited`"),
    ("Live feeds in total", "4,000", "503 `unavailable`"),
    ("HTTP/2 requests on one connection", "128", "the stream is refused"),
    (
        "HTTP/2 requests in progress, or with an answer the peer has not read",
        "8,192 per address, except for a mesh; 32,768 in total",
        "the connection is closed",
    ),
    ("HTTP/2 bytes not yet read", "64 KiB per request, 256 KiB per connection", "the peer waits"),
    (
        "Evidence bundles in progress",
        "2 in total, 1 per actor",
        "503 `unavailable`, with `Retry-After`; the detail names the limit",
    ),
    (
        "Permits in progress",
        "8 in total, 4 per actor",
        "503 `unavailable`, with `Retry-After`; the detail names the limit",
    ),
    ("Permit that `pilot permit verify` and `pilot gate` read", "64 MiB", "the permit is refused"),
    ("Approved files of one command behind `pilot gate`", "256 MiB in total", "the command is refused"),
    ("Time for one evidence bundle or permit", "1 h", "the answer is cut off"),
    ("Entries in one evidence bundle", "1,000,000", "422 `invalid_request`; ask for shorter periods"),
    ("Cosigned checkpoints in one evidence bundle", "4,096", "they are thinned out evenly"),
    ("Evidence bundle that includes a report", "8 MiB", "the report is left out; `pilot evidence report` generates it"),
    (
        "Requests per actor, with rate limits",
        "configurable; default 1,200 reads and 240 writes per minute",
        "429 `rate_limited`",
    ),
    (
        "Requests per address without a valid credential, with rate limits",
        "configurable; default 120 anonymous and 20 failed per minute",
        "429 `rate_limited`",
    ),
];
