//! The terminal: how wide it is, whether a person sits at it, and what that person types.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use pilot_core::visible::visible;

use crate::environment::Environment;
use crate::exit::Failure;

const COLUMNS: usize = 80;
/// Longer than any comment.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// As wide as the window, or 80.
pub(crate) fn columns() -> usize {
    let window = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|window| usize::from(window.ws_col));
    window.filter(|columns| *columns > 0).unwrap_or(COLUMNS).max(40)
}

/// Whether questions can be asked here: someone sees what we print, and answers.
pub(crate) fn has_person() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

pub(crate) fn has_colour(environment: &Environment) -> bool {
    io::stdout().is_terminal() && environment.get("NO_COLOR").is_none() && environment.get("TERM") != Some("dumb")
}

/// The next line a person types; none at the end of the input.
pub(crate) fn ask(question: &str) -> Result<Option<String>, Failure> {
    let failed = |error| Failure::environment("the terminal", error);
    write!(io::stdout(), "{}", visible(question)).and_then(|()| io::stdout().flush()).map_err(failed)?;
    let mut line = String::new();
    let read = io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line).map_err(failed)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}
