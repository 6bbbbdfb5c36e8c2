//! What the production profile insists on, all of it said at once.

use crate::config::{Config, Mechanism, Profile};

/// Everything that is missing, each with how to give it. Nothing when the service may start.
pub fn missing(config: &Config) -> Vec<String> {
    let mut missing = Vec::new();
    if config.profile == Profile::Production {
        if config.tls.is_none() {
            let remedy = "give [tls] certificate and key, or termination = \"mesh\" with trusted";
            missing.push(format!("TLS: {remedy}"));
        }
        if config.credentials.role_map.is_none() {
            missing.push("role map: give [credentials] role_map".to_owned());
        }
        if config.rate_limits.is_none() {
            missing.push("rate limits: give [rate_limits]; the section alone takes the defaults".to_owned());
        }
        if config.identity.is_none() {
            let known = "\"oauth\", \"mutual_tls\" or \"credential_file\"";
            missing.push(format!("identity: give [identity] mechanism, one of {known}"));
        }
    }
    let mechanism = config.mechanism();
    if mechanism == Mechanism::Oauth && config.profile == Profile::Pilot && config.credentials.role_map.is_none() {
        missing.push("role map: give [credentials] role_map, which says whom a token means".to_owned());
    }
    if mechanism == Mechanism::MutualTls {
        missing.extend(missing_for_certificates(config));
    } else if config.identity.as_ref().is_some_and(|identity| identity.mutual_tls.is_some()) {
        missing.push("identity: [identity.mutual_tls] belongs to mechanism = \"mutual_tls\"; remove it".to_owned());
    }
    missing
}

/// In either profile: without these, nobody could come in.
fn missing_for_certificates(config: &Config) -> Vec<String> {
    let mut missing = Vec::new();
    if config.tls.as_ref().is_none_or(|tls| tls.clients().is_none()) {
        let remedy = "give [tls] client_ca, whose certificates name the actors";
        missing.push(format!("client certificates: {remedy}"));
    }
    if config.profile == Profile::Pilot && config.credentials.role_map.is_none() {
        missing.push("role map: give [credentials] role_map, which says whom a certificate means".to_owned());
    }
    missing
}

/// The same as one text, for a refusal of the start.
pub fn refusal(config: &Config) -> Option<String> {
    let missing = missing(config);
    let head = match config.profile {
        Profile::Production => "profile = \"production\" needs more than is configured:",
        Profile::Pilot => "the configuration asks for what there is not:",
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
    fn an_identity_provider_needs_a_role_map_in_both_profiles() {
        let identity = "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = 'https://id.example'\naudience = 'https://p.example'\n";
        let found = missing(&toml::from_str(identity).unwrap());
        assert_eq!(found, ["role map: give [credentials] role_map, which says whom a token means"]);
        assert!(missing(&toml::from_str(&format!("{identity}{ROLE_MAP}")).unwrap()).is_empty());
        assert!(pieces(&[TLS, RATE_LIMITS, identity]) == ["role map"]);
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
            assert!(config.rate_limits.is_some() && config.tls.is_some(), "{name}");
            // A sample for one mechanism is named after it.
            let mechanism = config.mechanism().as_str().replace('_', "-");
            assert!(name == "production" || name == format!("production-{mechanism}"), "{name}: {mechanism}");
            seen.push(name);
        }
        for expected in ["production", "production-credential-file", "production-oauth"] {
            assert!(seen.iter().any(|name| name == expected), "{expected} is not among {seen:?}");
        }
    }

    #[test]
    fn the_first_sample_shows_the_defaults_of_rate_limits() {
        let config: Config = toml::from_str(include_str!("../../../deploy/production.toml")).unwrap();
        assert_eq!(config.rate_limits, Some(RateLimits::default()));
    }

    #[test]
    fn the_pilot_profile_insists_on_nothing() {
        assert!(missing(&Config::default()).is_empty());
    }
}
