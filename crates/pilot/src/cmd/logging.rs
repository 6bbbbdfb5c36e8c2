//! `pilot logging`: shows and changes what the service logs, while it runs.

use std::path::PathBuf;
use std::time::Duration;

use pilot_ledger::clock::Clock;
use pilot_setup::config::{Config, LogFormat, LogLevel, Logging};
use pilot_setup::log_settings::{LOG_SETTINGS_KEPT_MAX, LogSettings};
use serde_json::json;

use crate::cmd::serve::{format, level};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::refuse_root;
use crate::moment::span;
use crate::output::{Output, OutputArguments, print, print_json, table};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show what is logged, and until when
    Show(Arguments),
    /// Change what is logged for a while, without a restart
    Set(SetArguments),
    /// Return to the configured log settings
    Reset(Arguments),
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
#[group(id = "change", required = true, multiple = true, args = ["level", "format"])]
pub(crate) struct SetArguments {
    /// How much is logged
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    level: Option<LogLevel>,
    /// How log lines are written
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    format: Option<LogFormat>,
    /// For how long, 7d at most
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = span)]
    length: Duration,
    #[command(flatten)]
    of: Arguments,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    let of = match command {
        Command::Show(of) | Command::Reset(of) | Command::Set(SetArguments { of, .. }) => of,
    };
    let config = Config::load(&of.config, environment.variables())?;
    refuse_root(&config)?;
    let path = config.log_settings_path();
    match command {
        Command::Show(_) => {}
        Command::Set(SetArguments { level, format, length, .. }) => {
            if *length > LOG_SETTINGS_KEPT_MAX {
                let text =
                    "--for: at most 7d; for longer, change [logging] in the configuration and restart the service";
                return Err(Failure::Usage(text.to_owned()));
            }
            let settings = LogSettings::new(*level, *format, Clock::System.now().plus(*length));
            settings.write(&path).map_err(|error| Failure::environment(path.display(), error))?;
        }
        Command::Reset(_) => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::environment(path.display(), error));
            }
            _ => {}
        },
    }
    show(&config, of)
}

fn show(config: &Config, of: &Arguments) -> Result<(), Failure> {
    let (path, now) = (config.log_settings_path(), Clock::System.now());
    let settings = LogSettings::read(&path).map_err(|error| Failure::Environment(error.to_string()))?;
    let settings = settings.filter(|settings| settings.counts(now));
    let Logging { level, format, .. } = LogSettings::over(settings, config.logging, now);
    let until = settings.map(|settings| settings.until);
    match of.output.output {
        Output::Json => print_json(&json!({"level": level, "format": format, "until": until})),
        Output::Table => {
            let until =
                until.map_or_else(|| "a restart with another configuration".to_owned(), |until| until.to_string());
            let row = vec![level.to_string(), format.to_string(), until];
            let text = table(&["level", "format", "until"], [row]);
            print(&(text + "\nA running service applies a change within two or three seconds.\n"))
        }
    }
}
