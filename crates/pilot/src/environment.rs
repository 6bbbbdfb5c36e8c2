//! The only place that reads the environment.

use std::path::PathBuf;

use pilot_core::limits::OPERATOR_CHARS_MAX;
use zeroize::Zeroizing;

/// No program that we start gets to see this one.
pub(crate) const TOKEN: &str = "PILOT_TOKEN";

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
            .filter(|(name, _)| name != TOKEN)
            .collect();
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).map(Zeroizing::new);
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

    /// A directory of the XDG base directory specification: absolute, or below the home directory.
    pub(crate) fn directory(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let given = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        given.or_else(|| self.get("HOME").map(|home| PathBuf::from(home).join(below_home)))
    }

    /// Who is at the keyboard, for records that name an operator. A name that is too long for an entry is cut off.
    pub(crate) fn operator(&self) -> Option<&str> {
        let name = ["PILOT_OPERATOR", "SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| self.get(name))?;
        let end = name.char_indices().nth(OPERATOR_CHARS_MAX).map_or(name.len(), |(at, _)| at);
        name.get(..end)
    }
}
