//! How a command ends when it does not end well.

use std::io::Write;
use std::process::ExitCode;

use pilot_core::leak::LeakGuard;
use pilot_core::limits::TOKEN_BYTES_MIN;
use pilot_server::start::StartError;

#[derive(Debug)]
pub enum Failure {
    /// Refused by the service or by a check: exit 1.
    Refused(String),
    /// Wrong usage or configuration: exit 2.
    Usage(String),
    /// Network, disk or database: exit 3.
    Environment(String),
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
        };
        // What goes wrong is often quoted from a file, and a file may hold anything.
        let text = LeakGuard::for_generated_tokens().redact(text).into_owned();
        let _ = writeln!(std::io::stderr(), "pilot: {text}");
        ExitCode::from(code)
    }
}

/// Help and version as they are; of a mistake, no argument is repeated that is long enough to be a token.
pub fn report_usage(error: &clap::Error) -> ExitCode {
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() {
        let _ = error.print();
        return code;
    }
    let mut text = error.render().to_string();
    for argument in std::env::args_os().skip(1) {
        let argument = argument.to_string_lossy();
        let value = argument.split_once('=').map_or("", |(_, value)| value);
        for long in [argument.as_ref(), value].into_iter().filter(|word| word.len() >= TOKEN_BYTES_MIN) {
            text = text.replace(long, "(long value)");
        }
    }
    let _ = write!(std::io::stderr(), "{text}");
    code
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
