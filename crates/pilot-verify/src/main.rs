//! `pilot-verify`: checks an evidence bundle. For auditors who want to read, build and keep the verifier themselves.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::ExitCode;

use pilot_core::leak::LeakGuard;
use pilot_core::visible::{visible, visible_json};
use pilot_evidence::bundle::source::Source;
use pilot_evidence::verify::trust::{self, Given};
use pilot_evidence::verify::{Verdict, predecessor, verify_from};

const HELP: &str = "\
Checks an evidence bundle: integrity, completeness, and whether everything in it happened by the rules.

Usage: pilot-verify BUNDLE --key KEY [OPTION]...

Whom to trust
  --key KEY          the log's verifier key: one line, name+id+base64, or a file with that line
  --witness-key KEY  a witness's verifier key, in the same way; may be repeated
  --witnesses N      how many of these witnesses must have signed [default: all of them]
  --policy FILE      a C2SP tlog-policy in place of these: logs, witnesses, groups, quorum

What the bundle must agree with, known from elsewhere
  --definition FILE  a definition or its digest, sha256:…; may be repeated. Items moved by no other
  --role-map FILE    a role map or its digest; may be repeated. No other was in force
  --checkpoint FILE  a checkpoint that you kept: the log must continue it
  --after FILE       the bundle of the previous period: this one must follow it. May be repeated, the
                     oldest first

What to accept
  --allow-left-out   documents are known to be erased or left out: exit code 0, not 4, when
                     everything else holds
  --strict           exit code 4 if anything at all was not checked

  --output FORMAT    table (default) or json
  --version          print the version

Exit codes: 0 it holds, 1 it does not, 2 wrong usage, 3 a file cannot be read, 4 it holds as far as it
could be checked.
";

#[derive(Default)]
struct Arguments {
    bundle: Option<String>,
    key: Option<String>,
    witness_keys: Vec<String>,
    witnesses: Option<usize>,
    policy: Option<String>,
    definitions: Vec<String>,
    role_maps: Vec<String>,
    checkpoint: Option<String>,
    after: Vec<String>,
    strict: bool,
    allow_left_out: bool,
    json: bool,
}

enum Failure {
    Usage(String),
    Environment(String),
}

fn main() -> ExitCode {
    let arguments: Vec<_> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["--help" | "-h"] => return ending(HELP, 0),
        ["--version" | "-V"] => return ending(concat!("pilot-verify ", env!("CARGO_PKG_VERSION"), "\n"), 0),
        _ => {}
    }
    match read(arguments).and_then(|arguments| run(&arguments)) {
        Ok((text, code)) => ending(&text, code),
        Err(Failure::Usage(text)) => complain(&text, 2),
        Err(Failure::Environment(text)) => complain(&text, 3),
    }
}

fn ending(text: &str, code: u8) -> ExitCode {
    // If the reader closes early, the verdict stays the same.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

fn complain(text: &str, code: u8) -> ExitCode {
    let text = LeakGuard::for_generated_tokens().redact(text).into_owned();
    let _ = writeln!(std::io::stderr(), "pilot-verify: {}", visible(&text));
    ExitCode::from(code)
}

fn read(given: Vec<String>) -> Result<Arguments, Failure> {
    let mut arguments = Arguments::default();
    let mut given = given.into_iter();
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or_else(|| Failure::Usage(format!("{argument} needs a value; see --help")));
        match argument.as_str() {
            "--key" if arguments.key.is_none() => arguments.key = Some(value()?),
            "--witness-key" => arguments.witness_keys.push(value()?),
            "--witnesses" => {
                let number = value()?.parse().map_err(|_| Failure::Usage("--witnesses needs a number".into()))?;
                arguments.witnesses = Some(number);
            }
            "--policy" if arguments.policy.is_none() => arguments.policy = Some(value()?),
            "--definition" => arguments.definitions.push(value()?),
            "--role-map" => arguments.role_maps.push(value()?),
            "--checkpoint" if arguments.checkpoint.is_none() => arguments.checkpoint = Some(value()?),
            "--after" => arguments.after.push(value()?),
            "--strict" => arguments.strict = true,
            "--allow-left-out" => arguments.allow_left_out = true,
            "--output" => {
                arguments.json = match value()?.as_str() {
                    "table" => false,
                    "json" => true,
                    _ => return Err(Failure::Usage("--output must be table or json".into())),
                }
            }
            _ if argument.starts_with('-') || arguments.bundle.is_some() => {
                return Err(Failure::Usage("an argument was not recognised; see --help".into()));
            }
            _ => arguments.bundle = Some(argument),
        }
    }
    Ok(arguments)
}

fn run(arguments: &Arguments) -> Result<(String, u8), Failure> {
    let Some(path) = &arguments.bundle else {
        return Err(Failure::Usage("a bundle and --key are needed; see --help".into()));
    };
    let given = Given {
        key: arguments.key.as_deref(),
        witness_keys: &arguments.witness_keys,
        witnesses: arguments.witnesses,
        policy: arguments.policy.as_deref(),
        definitions: &arguments.definitions,
        role_maps: &arguments.role_maps,
        checkpoint: arguments.checkpoint.as_deref(),
        strict: arguments.strict,
    };
    let trust = trust::read(given, |path| std::fs::read(path));
    let mut trust = trust.map_err(|error| match error {
        error if error.is_of_the_machine() => Failure::Environment(error.to_string()),
        error => Failure::Usage(error.to_string()),
    })?;
    for earlier in &arguments.after {
        let unreadable = |error| unreadable(earlier, &error);
        match predecessor(&bundle(earlier)?, &trust.earlier(), &mut |_, _, _| {}).map_err(unreadable)? {
            Ok(previous) => trust.pins.after = Some(previous),
            Err(verdict) => return Ok((format!("{earlier}: {}", shown(&verdict, arguments)), 1)),
        }
    }
    let verdict = verify_from(&bundle(path)?, &trust, &mut |_, _, _| {}).map_err(|error| unreadable(path, &error))?;
    Ok((shown(&verdict, arguments), verdict.exit_code(arguments.allow_left_out)))
}

/// Read when it is needed: it may be larger than the memory of this machine. A pipe can be read only once.
fn bundle(path: &str) -> Result<Source<'static>, Failure> {
    let opened = File::open(path).and_then(|mut file| {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(bytes.into());
        }
        let read_at = move |at: u64, buffer: &mut [u8]| file.read_exact_at(buffer, at);
        Ok(Source::Elsewhere { length: metadata.len(), read_at: Box::new(read_at) })
    });
    opened.map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &str, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("{path}: {error}"))
}

/// A bundle may come from anyone: nothing in it reaches the terminal without being made visible.
fn shown(verdict: &Verdict, arguments: &Arguments) -> String {
    if arguments.json {
        visible_json(&verdict.to_json()).into_owned()
    } else {
        visible(&verdict.to_text()).into_owned()
    }
}
