-- As versions 5 and 6 have them.
CREATE TABLE item (
  id            BLOB PRIMARY KEY,  -- 16 bytes
  created_entry INTEGER NOT NULL,  -- the first entry about it; lists are in this order
  version       INTEGER NOT NULL,
  state         TEXT NOT NULL,
  workflow      TEXT NOT NULL,
  created_by    TEXT NOT NULL,
  title         TEXT NOT NULL,
  open          INTEGER NOT NULL,
  waits_for     INTEGER NOT NULL,  -- one bit a role
  due_at        INTEGER,           -- microseconds since 1970
  last_entry    INTEGER NOT NULL,
  content_entry INTEGER NOT NULL,
  data          TEXT NOT NULL      -- JSON, without the payload, which is in the content document
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX item_created ON item (created_entry);
CREATE INDEX item_due     ON item (due_at, created_entry) WHERE due_at IS NOT NULL;
CREATE INDEX item_open    ON item (created_entry) WHERE open = 1;
CREATE INDEX item_ended   ON item (state, created_entry) WHERE open = 0;
CREATE INDEX item_creator ON item (created_by, created_entry);
