-- Which programs may read and write these tables.
CREATE TABLE pilot_schema (
  id            smallint PRIMARY KEY CHECK (id = 0),
  version       integer NOT NULL,
  oldest_reader integer NOT NULL,
  oldest_writer integer NOT NULL
);

-- The end of the ledger. Every write locks this row first, so there is one order of writes for all nodes. The row is
-- kept small, and its page nearly empty, because it is updated with every commit.
CREATE TABLE head (
  id      smallint PRIMARY KEY CHECK (id = 0),
  size    bigint NOT NULL,
  root    bytea  NOT NULL,
  last_at bigint NOT NULL,  -- microseconds since 1970
  epoch   bigint NOT NULL   -- the entry that adopted the configuration in force
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);

-- The ledger: one row an entry, never updated, never deleted. `nth` counts the entries about one item: two writers can
-- never both record an item's next entry.
CREATE TABLE entry (
  idx  bigint PRIMARY KEY,
  item bytea,
  nth  bigint,
  leaf bytea NOT NULL,  -- the hash of data
  data bytea NOT NULL,
  UNIQUE (item, nth),
  CHECK ((item IS NULL) = (nth IS NULL))
);

-- What nodes have to apply.
CREATE INDEX entry_of_service ON entry (idx) WHERE item IS NULL;

-- What people wrote, next to the entry that holds its digest. Erasing sets data to NULL.
CREATE TABLE document (
  entry bigint   NOT NULL,
  kind  smallint NOT NULL,  -- 0 content, 1 comment, 2 inputs, 3 role map
  data  bytea,
  PRIMARY KEY (entry, kind)
);

-- Full tiles of the tree, 256 hashes each. Hashes cannot be compressed.
CREATE TABLE tile (
  level  smallint NOT NULL,
  idx    bigint   NOT NULL,
  hashes bytea    NOT NULL,
  PRIMARY KEY (level, idx)
);
ALTER TABLE tile ALTER hashes SET STORAGE EXTERNAL;

-- Where each item stands: everything here follows from the ledger.
CREATE TABLE item (
  id            bytea   PRIMARY KEY,  -- 16 bytes
  created_entry bigint  NOT NULL UNIQUE,
  version       bigint  NOT NULL,
  state         text    COLLATE "C" NOT NULL,
  workflow      text    COLLATE "C" NOT NULL,
  created_by    text    COLLATE "C" NOT NULL,
  title         text    COLLATE "C" NOT NULL,
  open          boolean NOT NULL,
  waits_for     integer NOT NULL,     -- one bit a role
  due_at        bigint,               -- microseconds since 1970
  wakes_at      bigint,               -- never later than due_at
  last_entry    bigint  NOT NULL,
  content_entry bigint  NOT NULL,
  entries       bigint  NOT NULL,     -- how many there are about it
  data          text    COLLATE "C" NOT NULL,
  ended         text    COLLATE "C" GENERATED ALWAYS AS (CASE WHEN open THEN NULL ELSE state END) STORED
) WITH (fillfactor = 70);

-- A move from one open state to another changes no indexed column, so it costs no work in any of these indexes. That is
-- why `wakes_at` is lowered with `due_at`, but raised only when its time has come, and why `state` itself is not indexed.
CREATE INDEX item_wakes        ON item (wakes_at, created_entry) WHERE wakes_at IS NOT NULL;
CREATE INDEX item_open         ON item (created_entry) WHERE open;
CREATE INDEX item_ended        ON item (ended, created_entry) WHERE ended IS NOT NULL;
CREATE INDEX item_creator      ON item (created_by, created_entry);
CREATE INDEX item_creator_open ON item (created_by, workflow) WHERE open;

-- Answers to remember, for clients that lost them.
CREATE TABLE idempotency (
  scope  bytea  PRIMARY KEY,
  body   bytea  NOT NULL,
  answer bytea  NOT NULL,
  at     bigint NOT NULL
);

CREATE INDEX idempotency_at ON idempotency (at);

-- What the service wants to find again after a restart, and on every node.
CREATE TABLE fact (
  name  text  COLLATE "C" PRIMARY KEY,
  value bytea NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE definition (
  digest text COLLATE "C" PRIMARY KEY,
  text   text COLLATE "C" NOT NULL
);

-- The nodes, each with what it has applied and when it was last heard of, in the database's time.
CREATE TABLE node (
  id      text   COLLATE "C" PRIMARY KEY,
  name    text   COLLATE "C" NOT NULL,
  build   text   COLLATE "C" NOT NULL,
  applied bigint NOT NULL,
  beat    bigint NOT NULL,
  seen    bigint NOT NULL,
  started bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);

-- Which node does what only one has to do. The fence grows whenever a duty changes hands.
CREATE TABLE duty (
  name  text   COLLATE "C" PRIMARY KEY,
  node  text   COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);
