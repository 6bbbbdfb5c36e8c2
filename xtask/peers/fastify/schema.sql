-- What the peer writes. Every entry of an item contains the hash of the one before it, and the item's row, which each
-- transition locks, has the last one: items do not wait for each other.
CREATE TABLE item (
  id uuid PRIMARY KEY,
  version bigint NOT NULL,
  state text NOT NULL,
  created_by text NOT NULL,
  approved_by text,
  title text NOT NULL,
  payload jsonb NOT NULL,
  content_digest text NOT NULL,
  last_hash bytea NOT NULL
);
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item uuid NOT NULL REFERENCES item,
  version bigint NOT NULL,
  data text NOT NULL,
  previous_hash bytea NOT NULL,
  hash bytea NOT NULL,
  UNIQUE (item, version)
);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit table only grows';
END $$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse();
