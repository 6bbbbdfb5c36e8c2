-- The items as schema versions 1 to 4 have them. A file is compared with this text, so not even a space may change.
CREATE TABLE item (
  id            BLOB PRIMARY KEY,  -- 16 bytes, in order of creation
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

CREATE INDEX item_due     ON item (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX item_open    ON item (id) WHERE open = 1;
CREATE INDEX item_ended   ON item (state, id) WHERE open = 0;
CREATE INDEX item_creator ON item (created_by, id);
