-- What people wrote, beside the entry that holds its digest. Erasing sets data to NULL. Kind 3 is a role map.
-- Rows are in the order in which they were written, and the key is an index beside them: the inner pages of a table
-- WITHOUT ROWID hold whole rows, so one with large rows is deep.
CREATE TABLE document (
  entry INTEGER NOT NULL,
  kind  INTEGER NOT NULL,  -- 0 content, 1 comment, 2 inputs
  data  BLOB,
  UNIQUE (entry, kind)
) STRICT;

-- Full tiles of the tree, 256 hashes each. Unfinished ones are made from the entries and tiles below them.
CREATE TABLE tile (
  level  INTEGER NOT NULL,
  idx    INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  UNIQUE (level, idx)
) STRICT;
