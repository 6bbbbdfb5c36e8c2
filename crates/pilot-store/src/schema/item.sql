-- Where each item stands: everything here follows from the ledger. Rows are in the order in which items were created.
CREATE TABLE item (
  id            BLOB NOT NULL UNIQUE,  -- 16 bytes
  created_entry INTEGER PRIMARY KEY,   -- the first entry about it; lists are in this order
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
) STRICT;

-- Each index ends with the primary key, so its rows are in order of creation too.
CREATE INDEX item_due     ON item (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX item_open    ON item (open) WHERE open = 1;
CREATE INDEX item_ended   ON item (state) WHERE open = 0;
CREATE INDEX item_creator ON item (created_by);
-- How many items of one creator have not ended is asked whenever a machine proposes another.
CREATE INDEX item_creator_open ON item (created_by, workflow) WHERE open = 1;
