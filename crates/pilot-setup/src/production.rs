//! What the production profile requires, all reported at once.

use pilot_core::role::Role;
use pilot_core::role_map::RoleMap;

use crate::config::{Config, Mechanism, Mesh, Profile, Tls};

const MESH_REMEDY: &str = "certificates are public, and any process at a trusted address could present another \
                           actor's; set [tls] mesh_secret_file, and have the mesh send the secret in it";

/// On a Unix socket the kernel names the peer's user, and no address is believed.
fn is_known_by_address_only(mesh: &Mesh) -> bool {
    mesh.secret_file.is_none() && mesh.trusted_users.is_empty()
}

/// Client certificates behind a mesh that is known only by its address: a client there can claim to be anyone.
fn knows_mesh_by_address_only(config: &Config) -> bool {
    let mesh = config.tls.as_ref().and_then(Tls::mesh);
    config.mechanism() == Mechanism::MutualTls && mesh.is_some_and(is_known_by_address_only)
}

const PLAIN_STORE: &str = "store: sslmode=disable lets anyone on the network path read and change what goes to the \
                           database; remove it from store.url";

/// The ledger goes to another machine without TLS.
fn exposes_store(config: &Config) -> bool {
    config.postgres().is_some_and(|access| access.is_exposed())
}

const EVERY_CLIENT: &str = "identity.oauth: every client of the provider that gets a token for this audience can act \
                            with all rights of its users; set clients to those that may";

fn trusts_every_client(config: &Config) -> bool {
    let section = config.identity.as_ref().filter(|identity| identity.mechanism == Mechanism::Oauth);
    section.and_then(|identity| identity.oauth.as_ref()).is_some_and(|oauth| oauth.clients.is_empty())
}

/// What does not prevent a start but should be looked at.
pub fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    if config.profile == Profile::Pilot {
        warnings.extend(config.foreign_hand.clone());
        if knows_mesh_by_address_only(config) {
            warnings.push(format!("tls: {MESH_REMEDY}"));
        }
        if exposes_store(config) {
            warnings.push(PLAIN_STORE.to_owned());
        }
    }
    // Not a refusal: installations that run today would no longer start.
    if config.profile == Profile::Production && trusts_every_client(config) {
        warnings.push(EVERY_CLIENT.to_owned());
    }
    let mesh = config.tls.as_ref().and_then(Tls::mesh);
    if config.mechanism() != Mechanism::MutualTls && mesh.is_some_and(is_known_by_address_only) {
        let warning = "tls: the mesh is identified only by its address, so any process there can choose the address \
                       that its requests are counted under; set [tls] mesh_secret_file to prevent that";
        warnings.push(warning.to_owned());
    }
    warnings
}

/// Roles of the role map whose actors could not call, because the provider's values for them are not listed.
pub fn roles_left_out(config: &Config, role_map: &RoleMap) -> Option<String> {
    let oauth = config.identity.as_ref().and_then(|identity| identity.oauth.as_ref())?;
    let listed = oauth.role_values.as_ref()?.needed();
    let left_out =
        |role: &Role| !listed.contains_key(role) && role_map.actors.iter().any(|mapped| mapped.actor.role == *role);
    let roles: Vec<_> = Role::ALL.into_iter().filter(left_out).map(Role::as_str).collect();
    (!roles.is_empty()).then(|| {
        let roles = roles.join(", ");
        format!("identity.oauth.role_values: does not list {roles}, so actors in that role cannot call; add it")
    })
}

/// Everything that is missing, each with how to provide it. Empty if the service may start.
pub fn missing(config: &Config) -> Vec<String> {
    let mut missing = Vec::new();
    let in_production = config.profile == Profile::Production;
    if in_production && config.tls.is_none() {
        let remedy = "set [tls] certificate and key, or termination = \"mesh\" with trusted, or with trusted_users on a Unix socket";
        missing.push(format!("TLS: {remedy}"));
    }
    if in_production && let Some(foreign_hand) = &config.foreign_hand {
        missing.push(format!("configuration: {foreign_hand}"));
    }
    if in_production && knows_mesh_by_address_only(config) {
        missing.push(format!("mesh: {MESH_REMEDY}"));
    }
    if in_production && exposes_store(config) {
        missing.push(PLAIN_STORE.to_owned());
    }
    let needs_role_map = in_production || config.mechanism() != Mechanism::CredentialFile;
    if needs_role_map && config.credentials.role_map.is_none() {
        missing.push("role map: set [credentials] role_map".to_owned());
    }
    if in_production && config.rate_limits.is_none() {
        missing.push("rate limits: add [rate_limits]; an empty section uses the defaults".to_owned());
    }
    if in_production && config.identity.is_none() {
        let known = "\"oauth\", \"mutual_tls\" or \"credential_file\"";
        missing.push(format!("identity: set [identity] mechanism to one of {known}"));
    }
    let has_clients = config.tls.as_ref().is_some_and(|tls| tls.clients().is_some());
    if config.mechanism() == Mechanism::MutualTls && !has_clients {
        let remedy = "set [tls] client_ca to the authorities whose certificates name the actors";
        missing.push(format!("client certificates: {remedy}"));
    }
    let source = &config.credentials.source;
    if source.file().is_none()
        && config.identity.as_ref().map(|identity| identity.mechanism) != Some(Mechanism::CredentialFile)
    {
        let remedy = "is for [identity] mechanism = \"credential_file\"; add that section, or name a file";
        missing.push(format!("credentials: [{}] {remedy}", source.section()));
    }
    missing
}

/// The same as one text, for refusing a start.
pub fn refusal(config: &Config) -> Option<String> {
    let missing = missing(config);
    let head = match config.profile {
        Profile::Production => "profile = \"production\" requires more than is configured:",
        Profile::Pilot => "the configuration requires settings that are missing:",
    };
    (!missing.is_empty()).then(|| format!("{head}\n  {}", missing.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RateLimits;

    const TLS: &str = "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\n";
    const MESH: &str = "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']\n";
    const ROLE_MAP: &str = "[credentials]\nrole_map = 'm.json'\n";
    const RATE_LIMITS: &str = "[rate_limits]\n";
    const IDENTITY: &str = "[identity]\nmechanism = 'credential_file'\n";

    /// The first words of each missing piece.
    fn pieces(sections: &[&str]) -> Vec<String> {
        let config = toml::from_str(&format!("profile = 'production'\n{}", sections.concat())).unwrap();
        missing(&config).iter().map(|line| line.split(':').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_missing_piece_is_named_and_none_is_named_that_is_there() {
        let all = [TLS, ROLE_MAP, RATE_LIMITS, IDENTITY];
        let names = ["TLS", "role map", "rate limits", "identity"];
        assert_eq!(pieces(&[]), names);
        assert!(pieces(&all).is_empty());
        assert!(pieces(&[MESH, ROLE_MAP, RATE_LIMITS, IDENTITY]).is_empty());
        for (left_out, name) in names.iter().enumerate() {
            let rest: Vec<_> = (0..all.len()).filter(|at| *at != left_out).map(|at| all[at]).collect();
            assert_eq!(pieces(&rest), [*name]);
        }
    }

    #[test]
    fn production_warns_of_a_provider_whose_every_client_may_call_and_starts() {
        let section = "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = 'https://id.example'\naudience = 'https://pilot.example'\n";
        for (profile, clients, expected) in [
            ("production", "", [EVERY_CLIENT].as_slice()),
            ("production", "clients = ['console']\n", &[]),
            ("pilot", "", &[]),
        ] {
            let pieces = [TLS, ROLE_MAP, RATE_LIMITS, section, clients].concat();
            let config = toml::from_str(&format!("profile = '{profile}'\n{pieces}")).unwrap();
            assert_eq!(warnings(&config), expected, "{profile} {clients}");
            assert_eq!(missing(&config), [""; 0], "{profile} {clients}");
        }
    }

    #[test]
    fn a_role_that_the_role_map_has_and_role_values_do_not_list_is_a_warning() {
        let section = "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = 'https://id.example'\naudience = 'https://pilot.example'\nroles_claim = 'groups'\n[identity.oauth.role_values]\napprover = ['x']\nauditor = 'any'\n";
        let config = toml::from_str(section).unwrap();
        let actor = |role: &str| format!(r#"{{"actor_id":"{role}","role":"{role}"}}"#);
        for (roles, expected) in [
            (["approver", "auditor"].as_slice(), None),
            (&["approver", "executor", "initiator"], Some("initiator, executor")),
        ] {
            let actors: Vec<_> = roles.iter().map(|role| actor(role)).collect();
            let map = format!(r#"{{"schema_version":1,"approved_by":[],"actors":[{}]}}"#, actors.join(","));
            let warning = roles_left_out(&config, &RoleMap::parse(map.as_bytes()).unwrap());
            let wanted = expected.map(|roles| format!("does not list {roles}, so"));
            assert_eq!(warning.is_some(), wanted.is_some());
            assert!(wanted.is_none_or(|wanted| warning.unwrap().contains(&wanted)));
        }
    }

    #[test]
    fn every_sample_configuration_has_every_piece() {
        let mut seen = Vec::new();
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "toml") {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let config: Config = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(config.profile, Profile::Production, "{name}");
            assert_eq!(missing(&config), [""; 0], "{name}");
            assert!(!trusts_every_client(&config), "{name}");
            assert!(config.rate_limits.is_some() && config.tls.is_some(), "{name}");
            // A sample is named after its mechanism, or after its credential source.
            let mechanism = config.mechanism().as_str().replace('_', "-");
            let keeper = config.credentials.source.section().replace("credentials.", "");
            let names = ["production".to_owned(), format!("production-{mechanism}"), format!("production-{keeper}")];
            assert!(names.contains(&name), "{name}: {names:?}");
            seen.push(name);
        }
        for expected in ["production", "production-credential-file"] {
            assert!(seen.iter().any(|name| name == expected), "{expected} is not among {seen:?}");
        }
    }

    #[test]
    fn the_first_sample_shows_the_defaults_of_rate_limits() {
        let config: Config = toml::from_str(include_str!("../../../deploy/production.toml")).unwrap();
        assert_eq!(config.rate_limits, Some(RateLimits::default()));
    }

    #[test]
    fn an_identity_provider_needs_a_role_map_in_both_profiles() {
        let identity = "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = 'https://id.example'\naudience = 'https://p.example'\n";
        let found = missing(&toml::from_str(identity).unwrap());
        assert_eq!(found, ["role map: set [credentials] role_map"]);
        assert!(missing(&toml::from_str(&format!("{identity}{ROLE_MAP}")).unwrap()).is_empty());
    }

    #[test]
    fn a_database_elsewhere_needs_tls_in_production_and_a_warning_otherwise() {
        let all = [TLS, ROLE_MAP, RATE_LIMITS, IDENTITY].concat();
        let store = |url: &str| format!("[store]\nurl = '{url}'\n");
        for (url, is_exposed) in [
            ("postgres://u@db/d", false),
            ("postgres://u@db/d?sslmode=require", false),
            ("postgres://u@localhost/d?sslmode=disable", false),
            ("postgres://u@db/d?sslmode=disable", true),
        ] {
            let expected = if is_exposed { &["store"][..] } else { &[] };
            assert_eq!(pieces(&[&all, &store(url)]), expected, "{url}");
            let config: Config = toml::from_str(&store(url)).unwrap();
            assert!(missing(&config).is_empty());
            assert_eq!(warnings(&config).len(), expected.len(), "{url}");
        }
    }

    #[test]
    fn in_production_a_password_is_bound_to_the_connection() {
        for (profile, is_bound) in [("pilot", false), ("production", true)] {
            let text = format!("profile = '{profile}'\n[store]\nurl = 'postgres://u@db/d'");
            let config: Config = toml::from_str(&text).unwrap();
            assert_eq!(config.postgres().map(|access| access.binds_channel), Some(is_bound));
        }
    }

    #[test]
    fn the_pilot_profile_insists_on_nothing() {
        assert!(missing(&Config::default()).is_empty());
    }
}
