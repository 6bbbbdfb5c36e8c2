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
    if let Some(mechanism) = mechanism(config).filter(|mechanism| !mechanism.is_built()) {
        let name = mechanism.as_str();
        missing.push(format!("identity: this version does not have mechanism = \"{name}\"; use \"credential_file\""));
    }
    let source = &config.credentials.source;
    if source.file().is_none() && mechanism(config) != Some(Mechanism::CredentialFile) {
        let remedy = "is for [identity] mechanism = \"credential_file\"; give that section, or name a file";
        missing.push(format!("credentials: [{}] {remedy}", source.section()));
    }
    missing
}

fn mechanism(config: &Config) -> Option<Mechanism> {
    config.identity.as_ref().map(|identity| identity.mechanism)
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
    fn a_mechanism_this_version_does_not_have_is_refused_in_both_profiles() {
        for mechanism in ["oauth", "mutual_tls"] {
            for profile in ["pilot", "production"] {
                let identity = format!("[identity]\nmechanism = '{mechanism}'\n");
                let text = format!("profile = '{profile}'\n{TLS}{ROLE_MAP}{RATE_LIMITS}{identity}");
                let found = missing(&toml::from_str(&text).unwrap());
                assert!(found.len() == 1 && found[0].contains(mechanism), "{found:?}");
            }
        }
    }

    #[test]
    fn the_sample_configuration_has_every_piece_and_shows_the_defaults() {
        let config: Config = toml::from_str(include_str!("../../../deploy/production.toml")).unwrap();
        assert_eq!(config.profile, Profile::Production);
        assert_eq!(missing(&config), [""; 0]);
        assert_eq!(config.rate_limits, Some(RateLimits::default()));
    }

    #[test]
    fn the_pilot_profile_insists_on_nothing() {
        assert!(missing(&Config::default()).is_empty());
    }
}
