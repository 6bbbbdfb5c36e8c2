//! The users and groups that a configuration names, looked up on this machine.

use pilot_setup::config::{Config, Tls};
use pilot_setup::error::StartError;
use pilot_wire::socket_file::Wanted;

/// The file of the Unix socket, if the service listens on one.
pub(crate) fn wanted(config: &Config) -> Result<Option<Wanted>, StartError> {
    let Some(path) = config.listen.path() else { return Ok(None) };
    let section = config.socket.clone().unwrap_or_default();
    let refused = |key: &str, error| StartError::Refused(format!("socket.{key}: {error}"));
    let owner = section.owner.map(|owner| owner.user().map_err(|error| refused("owner", error))).transpose()?;
    let group = section.group.map(|group| group.group().map_err(|error| refused("group", error))).transpose()?;
    Ok(Some(Wanted { path: path.to_owned(), owner, group, mode: section.mode.bits() }))
}

/// The users that count as the mesh on a Unix socket; empty without a mesh.
pub(crate) fn trusted_users(config: &Config) -> Result<Vec<u32>, StartError> {
    let listed = config.tls.as_ref().and_then(Tls::mesh).map_or(&[][..], |mesh| &mesh.trusted_users);
    let refused = |error| StartError::Refused(format!("tls.trusted_users: {error}"));
    listed.iter().map(|account| account.trusted_user().map_err(refused)).collect()
}
