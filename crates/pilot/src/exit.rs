//! How a command ends when it fails.

use std::io::Write;
use std::process::ExitCode;

use pilot_core::leak::LeakGuard;
use pilot_core::visible::visible;
use pilot_server::start::StartError;

use crate::output::complain;

#[derive(Debug)]
pub enum Failure {
    /// Refused by the service or by a check: exit 1.
    Refused(String),
    /// Wrong usage or configuration: exit 2.
    Usage(String),
    /// Network, disk or database: exit 3.
    Environment(String),
    /// No fault was found, but not everything could be checked: exit 4.
    NotAllChecked(String),
}

impl Failure {
    pub fn environment(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> Failure {
        Failure::Environment(format!("{what}: {cause}"))
    }

    pub fn report(&self) -> ExitCode {
        let (code, text) = match self {
            Failure::Refused(text) => (1, text),
            Failure::Usage(text) => (2, text),
            Failure::Environment(text) => (3, text),
            Failure::NotAllChecked(text) => (4, text),
        };
        // Messages often quote a file, and a file may contain anything.
        let text = LeakGuard::for_generated_tokens().redact(text).into_owned();
        let _ = complain(&format!("pilot: {text}"));
        ExitCode::from(code)
    }
}

/// Help, or what is wrong with the arguments. Someone will type a token as an argument, and it must not be printed.
pub fn usage(error: &clap::Error) -> ExitCode {
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

impl From<pilot_server::random::NoRandomness> for Failure {
    fn from(error: pilot_server::random::NoRandomness) -> Self {
        Failure::Environment(error.to_string())
    }
}

impl From<pilot_server::config::ConfigError> for Failure {
    fn from(error: pilot_server::config::ConfigError) -> Self {
        match std::error::Error::source(&error) {
            Some(cause) => Failure::Usage(format!("{error} ({cause})")),
            None => Failure::Usage(error.to_string()),
        }
    }
}
