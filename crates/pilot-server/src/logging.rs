//! What the log shows: what the configuration says, or for a while what an operator says while the service runs.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_setup::config::{LogFormat, LogLevel, Logging};
use pilot_setup::error::with_cause;
use pilot_setup::log_settings::{LogSettings, LogSettingsError};
use tracing::level_filters::LevelFilter;

use crate::log::{Format, Log};
use crate::watched::{LOOK, Watched};

pub fn format(format: LogFormat) -> Format {
    match format {
        LogFormat::Text => Format::Text,
        LogFormat::Auto if std::io::stderr().is_terminal() => Format::Text,
        LogFormat::Auto | LogFormat::Json => Format::Json,
    }
}

pub fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Applies what an operator writes to the file, and returns to the configuration when its time is over. Runs as long as
/// the service does.
pub(crate) async fn follow(log: Log, configured: Logging, path: PathBuf, clock: Clock) {
    let watched = Arc::new(Watched::new([&path].into_iter()));
    let mut follower = Follower { log, configured, settings: None };
    let read = |path: PathBuf| tokio::task::spawn_blocking(move || LogSettings::read(&path));
    follower.hear(read(path.clone()).await.ok(), clock.now());
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        looks.tick().await;
        let look = Arc::clone(&watched);
        // The file may be on a disk that does not respond; requests must not wait for it.
        if tokio::task::spawn_blocking(move || look.look()).await.unwrap_or(false) {
            follower.hear(read(path.clone()).await.ok(), clock.now());
        }
        follower.look_at_the_time(clock.now());
    }
}

struct Follower {
    log: Log,
    configured: Logging,
    settings: Option<LogSettings>,
}

impl Follower {
    fn hear(&mut self, read: Option<Result<Option<LogSettings>, LogSettingsError>>, now: Time) {
        match read {
            Some(Ok(settings)) => self.take(settings.filter(|settings| settings.counts(now)), now),
            Some(Err(error)) => {
                let cause = with_cause(&error);
                tracing::warn!(cause, "the log settings stay as they are");
            }
            None => {}
        }
    }

    fn look_at_the_time(&mut self, now: Time) {
        if self.settings.is_some_and(|settings| !settings.counts(now)) {
            self.take(None, now);
        }
    }

    fn take(&mut self, settings: Option<LogSettings>, now: Time) {
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        let Logging { level: shown, format: written, .. } = LogSettings::over(settings, self.configured, now);
        // The change itself is always logged, also by those who want to see less from now on.
        self.log.show(format(written), level(shown).max(LevelFilter::WARN));
        if let Some(LogSettings { until, .. }) = settings {
            tracing::warn!(level = %shown, format = %written, %until, "an operator changed what is logged");
        } else {
            tracing::warn!(level = %shown, format = %written, "logging is back to the configured settings");
        }
        self.log.show(format(written), level(shown));
    }
}
