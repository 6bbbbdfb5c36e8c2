-- The ledger: one row an entry, never updated, never deleted. `prev` is the entry before it about the same item, so that
-- an item's history needs no index of its own.
CREATE TABLE entry (
  idx  INTEGER PRIMARY KEY,
  prev INTEGER,
  data BLOB NOT NULL
) STRICT;

CREATE TRIGGER entry_is_never_updated BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never updated'); END;
CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;

-- Answers to remember, for clients that lost them.
CREATE TABLE idempotency (
  scope  BLOB PRIMARY KEY,
  body   BLOB NOT NULL,
  answer BLOB NOT NULL,
  at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_at ON idempotency (at);

-- What the service wants to find again after a restart.
CREATE TABLE fact (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE definition (
  digest TEXT PRIMARY KEY,
  text   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
