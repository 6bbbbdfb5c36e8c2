//! Running other programs: what is being done, how long it took, and what to say when it fails.

use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Why a command could not do its job, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// What was to be shown is not true: exit code 1.
    pub(crate) fn refuted(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 1 }
    }

    /// The command was called wrongly: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 2 }
    }

    pub(crate) fn is_usage(&self) -> bool {
        self.code == 2
    }

    /// The environment failed (disk, port, permissions, network): exit code 3.
    pub(crate) fn environment(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 3 }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer's tool measures real time; nothing here is tested by it"
    )]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The root of the repository, wherever the command was started.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Where cargo puts what it builds: this program itself is in `TARGET/debug/`.
pub(crate) fn target_dir() -> PathBuf {
    let here = std::env::current_exe().ok();
    let target = here.as_deref().and_then(Path::parent).and_then(Path::parent);
    target.map_or_else(|| root().join("target"), Path::to_owned)
}

pub(crate) fn cargo(arguments: &[&str]) -> Command {
    program("cargo", arguments)
}

/// A program that runs at the root of the repository.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command to the end, with its output visible.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    let status = command.status().map_err(|error| cannot_start(&line, &error))?;
    if status.success() { Ok(()) } else { Err(Failure::refuted(format!("`{line}` failed ({status})"))) }
}

/// Like [`run`], but prints what is done and how long it took: for steps without a number.
pub(crate) fn run_timed(what: &str, command: &mut Command) -> Result<(), Failure> {
    eprintln!("{what}: {}", shown(command));
    let watch = Stopwatch::start();
    run(command)?;
    eprintln!("{what}: done in {:.1} s", watch.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command to the end, repeating each line of its standard output and passing it to `see`.
pub(crate) fn run_watching(command: &mut Command, mut see: impl FnMut(&str)) -> Result<(), Failure> {
    let line = shown(command);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(&line, &error))?;
    if let Some(output) = child.stdout.take() {
        for text in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{text}");
            see(&text);
        }
    }
    let status = child.wait().map_err(|error| cannot_start(&line, &error))?;
    if status.success() { Ok(()) } else { Err(Failure::refuted(format!("`{line}` failed ({status})"))) }
}

/// Standard output of a program that is expected to succeed.
pub(crate) fn output_of(command: &mut Command) -> Result<String, Failure> {
    quiet_output_of(command.stderr(Stdio::inherit()))
}

/// Like [`output_of`], but what goes to standard error is shown only if the program fails.
pub(crate) fn quiet_output_of(command: &mut Command) -> Result<String, Failure> {
    let line = shown(command);
    let output = command.output().map_err(|error| cannot_start(&line, &error))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::environment(format!("`{line}` failed ({})\n{words}", output.status).trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command line, for messages.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn cannot_start(line: &str, error: &io::Error) -> Failure {
    Failure::environment(format!("`{line}` cannot be started: {error}"))
}
