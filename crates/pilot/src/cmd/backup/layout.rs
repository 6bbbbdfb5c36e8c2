//! What the files of a backup are called.

pub const DATABASE: &str = "pilot.db";
pub const CHECKPOINT: &str = "log.checkpoint";
pub const KEY: &str = "log.key";
pub const REVOCATIONS: &str = "log.checkpoint.revocations";
pub const ROLE_MAP: &str = "role-map.json";
pub const WORKFLOWS: &str = "workflows";
pub const CONFIG: &str = "pilot.toml";
