//! The only place that reads the environment.

use pilot_core::limits::OPERATOR_CHARS_MAX;
use zeroize::Zeroizing;

#[derive(Clone)]
pub(crate) struct Environment {
    variables: Vec<(String, String)>,
    token: Option<Zeroizing<String>>,
}

impl Environment {
    #[expect(clippy::disallowed_methods, reason = "this is the place meant for it")]
    pub(crate) fn read() -> Environment {
        // Variables that are not Unicode are not ours.
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name != "PILOT_TOKEN")
            .collect();
        let token = std::env::var("PILOT_TOKEN").ok().filter(|token| !token.is_empty()).map(Zeroizing::new);
        Environment { variables, token }
    }

    /// Everything except the token, for overriding the configuration.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn token(&self) -> Option<Zeroizing<String>> {
        self.token.clone()
    }

    /// Who is at the keyboard, for records that name an operator. A name that is too long for an entry is cut off.
    pub(crate) fn operator(&self) -> Option<&str> {
        let name = ["PILOT_OPERATOR", "SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| self.get(name))?;
        let end = name.char_indices().nth(OPERATOR_CHARS_MAX).map_or(name.len(), |(at, _)| at);
        name.get(..end)
    }
}
