-- As versions 1 to 6 have them.
-- What people wrote, beside the entry that holds its digest. Erasing sets data to NULL. Kind 3 is a role map.
CREATE TABLE document (
  entry INTEGER NOT NULL,
  kind  INTEGER NOT NULL,  -- 0 content, 1 comment, 2 inputs
  data  BLOB,
  PRIMARY KEY (entry, kind)
) STRICT, WITHOUT ROWID;

-- Full tiles of the tree, 256 hashes each. Unfinished ones are made from the entries and tiles below them.
CREATE TABLE tile (
  level  INTEGER NOT NULL,
  idx    INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (level, idx)
) STRICT, WITHOUT ROWID;
