//! How a command ends when it fails.

use std::io::Write;
use std::process::ExitCode;

use pilot_core::leak::LeakGuard;
use pilot_core::visible::visible;
use pilot_setup::error::StartError;

/// The exit code for problems with network, disk or database.
pub(crate) const ENVIRONMENT: i32 = 3;

#[derive(Debug)]
pub(crate) enum Failure {
    /// Refused by the service or by a check: exit 1.
    Refused(String),
    /// Wrong usage or configuration: exit 2.
    Usage(String),
    /// Network, disk or database: exit 3.
    Environment(String),
    /// No fault was found, but not everything could be checked: exit 4.
    NotAllChecked(String),
    /// What was waited for has not happened yet: exit 8.
    NotYet(String),
}

impl Failure {
    pub(crate) fn environment(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> Failure {
        Failure::Environment(format!("{what}: {cause}"))
    }

    /// The same, with one more thing to say.
    #[must_use]
    pub(crate) fn and(self, more: &str) -> Failure {
        let longer = |text: String| format!("{text}\n{more}");
        match self {
            Failure::Refused(text) => Failure::Refused(longer(text)),
            Failure::Usage(text) => Failure::Usage(longer(text)),
            Failure::Environment(text) => Failure::Environment(longer(text)),
            Failure::NotAllChecked(text) => Failure::NotAllChecked(longer(text)),
            Failure::NotYet(text) => Failure::NotYet(longer(text)),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Refused(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Environment(_) => 3,
            Failure::NotAllChecked(_) => 4,
            Failure::NotYet(_) => 8,
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Failure::Refused(text)
            | Failure::Usage(text)
            | Failure::Environment(text)
            | Failure::NotAllChecked(text)
            | Failure::NotYet(text) => text,
        }
    }
}

/// Prints help, or what is wrong with the arguments. Someone will type a token as an argument, and it must not be
/// printed.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(code);
    }
    let could_be_token = |argument: &String| pilot_core::token::is_well_formed(argument.as_bytes());
    let mut text = error.render().to_string();
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    for argument in arguments.filter(could_be_token) {
        text = text.replace(&argument, pilot_core::leak::WITHHELD);
    }
    let _ = write!(std::io::stderr(), "{}", visible(&LeakGuard::for_generated_tokens().redact(&text)));
    ExitCode::from(code)
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Refused(text) => Failure::Usage(format!("the service does not start:\n{text}")),
            StartError::Environment { what, source } => match source {
                Some(source) => Failure::environment(what, source),
                None => Failure::Environment(what),
            },
        }
    }
}

impl From<pilot_setup::random::NoRandomness> for Failure {
    fn from(error: pilot_setup::random::NoRandomness) -> Self {
        Failure::Environment(error.to_string())
    }
}

impl From<pilot_setup::config::ConfigError> for Failure {
    fn from(error: pilot_setup::config::ConfigError) -> Self {
        match std::error::Error::source(&error) {
            Some(cause) => Failure::Usage(format!("{error} ({cause})")),
            None => Failure::Usage(error.to_string()),
        }
    }
}
