//! The file names in a backup.

pub(crate) const DATABASE: &str = "pilot.db";
pub(crate) const CHECKPOINT: &str = "log.checkpoint";
pub(crate) const KEY: &str = "log.key";
pub(crate) const REVOCATIONS: &str = "log.checkpoint.revocations";
pub(crate) const ROLE_MAP: &str = "role-map.json";
pub(crate) const WORKFLOWS: &str = "workflows";
pub(crate) const CONFIG: &str = "pilot.toml";
