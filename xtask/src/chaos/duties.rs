//! Who held which duty, under which fence and for how long: kept by a trigger in the same transactions, so that it is
//! lost or durable together with the leases themselves.

use crate::step::Failure;

use super::field::{Field, primary};

const WATCH: &str = "
CREATE SCHEMA chaos;
CREATE TABLE chaos.held (name text, fence bigint, node text, since bigint, until bigint, PRIMARY KEY (name, fence, node));
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  INSERT INTO chaos.held VALUES
    (NEW.name, NEW.fence, NEW.node, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, NEW.until)
    ON CONFLICT (name, fence, node) DO UPDATE SET until = excluded.until;
  RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR UPDATE ON duty FOR EACH ROW EXECUTE FUNCTION chaos.note();";

/// Fences that more than one node had, and leases that began before the one before had ended.
const WRONG: &str = "SELECT string_agg(w::text, '; ') FROM (SELECT name, fence, node, since, until, \
     count(*) OVER (PARTITION BY name, fence) AS holders, \
     lag(until) OVER (PARTITION BY name ORDER BY fence, since) AS before FROM chaos.held) w \
     WHERE holders > 1 OR since < before";

pub(crate) fn watch(field: &Field<'_>) -> Result<(), Failure> {
    let watched = field.sql(primary()?, WATCH);
    watched.map(drop).ok_or_else(|| Failure::environment("the leases cannot be watched"))
}

pub(crate) fn check(field: &Field<'_>) -> Result<(), Failure> {
    let primary = primary()?;
    let held = field.sql(primary, "SELECT count(*) FROM chaos.held").unwrap_or_default();
    if held.trim().parse().unwrap_or(0) < 3 {
        return Err(Failure::refuted("the leases were not watched"));
    }
    match field.sql(primary, WRONG) {
        Some(wrong) if wrong.trim().is_empty() => Ok(()),
        Some(wrong) => Err(Failure::refuted(format!("two nodes held a duty at once: {wrong}"))),
        None => Err(Failure::environment("the leases cannot be read")),
    }
}
