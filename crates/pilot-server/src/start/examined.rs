//! What a start can tell from its files alone. Everything that is wrong with them is said in one go: who mends one thing
//! at a time restarts once for each.

use std::sync::Arc;

use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use pilot_core::time::Time;

use super::{
    RoleMapFile, StartError, check_workflows_dir, leak_guard, load_credentials, open_tls, others,
    refuse_tokens_in_definitions, tokens_in_names, with_cause,
};
use crate::clock::Clock;
use crate::config::{Config, Tls as TlsSection};
use crate::identity::oauth::Trusted;
use crate::tls::Tls;
use crate::witnesses::Witnesses;
use crate::{peer, private_file, production, workflows};

pub(super) struct Examined {
    pub(super) tls: Option<(Arc<Tls>, Time)>,
    pub(super) mesh_secrets: Vec<Digest>,
    pub(super) credentials: Credentials,
    pub(super) role_map: Option<RoleMapFile>,
    pub(super) guard: Arc<LeakGuard>,
    pub(super) witnesses: Arc<Witnesses>,
    pub(super) trusted: Option<Trusted>,
}

pub(super) fn examine(config: &Config, clock: &Clock) -> Result<Examined, StartError> {
    let mut found = Found::default();
    found.refused.extend(production::refusal(config));
    let tls = found.take(open_tls(config));
    let mesh_secrets = found.take(mesh_secrets(config));
    let loaded = found.take(load_credentials(config));
    let guard = loaded.as_ref().and_then(|(credentials, role_map)| {
        let guard = found.take(leak_guard(config, credentials).map_err(StartError::from))?;
        found.refused.extend(tokens_in_names(config, credentials, role_map.as_ref(), &guard));
        Some(guard)
    });
    let dir = config.workflows.dir.as_deref();
    if found.take(check_workflows_dir(config)).is_some() {
        // Without the credentials, generated tokens are found all the same.
        let without = LeakGuard::for_generated_tokens();
        let clean = found.take(refuse_tokens_in_definitions(dir, guard.as_ref().unwrap_or(&without)));
        // Proved when they are loaded; here only to say what else is wrong. A flaw is shown with its line, so not before
        // it is known that no token is in one.
        if clean.is_some() && !found.refused.is_empty() {
            found.take(workflows::offered(dir));
        }
    }
    let witnesses = found.take(Witnesses::new(&config.log).map_err(|error| StartError::Refused(error.to_string())));
    let trusted = found.take(Trusted::open(config, clock));
    match (found.settle()?, tls, mesh_secrets, loaded, guard, witnesses, trusted) {
        (
            (),
            Some(tls),
            Some(mesh_secrets),
            Some((credentials, role_map)),
            Some(guard),
            Some(witnesses),
            Some(trusted),
        ) => {
            let (guard, witnesses) = (Arc::new(guard), Arc::new(witnesses));
            Ok(Examined { tls, mesh_secrets, credentials, role_map, guard, witnesses, trusted })
        }
        _ => Err(StartError::Refused("something is missing, but it is not known what".to_owned())),
    }
}

/// By what the mesh is known besides its address; nothing when it is not, or when there is none.
pub(crate) fn mesh_secrets(config: &Config) -> Result<Vec<Digest>, StartError> {
    let file = config.tls.as_ref().and_then(TlsSection::mesh).and_then(|mesh| mesh.secret_file.as_deref());
    let Some(path) = file else { return Ok(Vec::new()) };
    let refused = |what: String| StartError::Refused(format!("tls: {what}"));
    let read = private_file::read(path, others(config)).map_err(|error| refused(with_cause(&error)))?;
    if let Some(exposed) = read.exposed {
        tracing::warn!("{exposed}");
    }
    peer::parse_mesh_secrets(&read.bytes).map_err(|fault| refused(format!("{}: {fault}", path.display())))
}

#[derive(Default)]
struct Found {
    refused: Vec<String>,
    environment: Option<StartError>,
}

impl Found {
    fn take<T>(&mut self, outcome: Result<T, StartError>) -> Option<T> {
        match outcome {
            Ok(value) => return Some(value),
            Err(StartError::Refused(refusal)) => self.refused.push(refusal),
            Err(environment) => self.environment = self.environment.take().or(Some(environment)),
        }
        None
    }

    /// What someone has to change comes first: trying again would not help.
    fn settle(self) -> Result<(), StartError> {
        match self.environment {
            _ if !self.refused.is_empty() => Err(StartError::Refused(self.refused.join("\n"))),
            Some(environment) => Err(environment),
            None => Ok(()),
        }
    }
}
