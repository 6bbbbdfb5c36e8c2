//! Programs that the service runs for itself: without a shell, with few variables, ended together with what they started.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::config::Exec;
use crate::error::with_cause;
use crate::private_file;

/// Starts the program, or says why it cannot.
pub(crate) fn start(exec: &Exec, stdin: Stdio) -> Result<Child, String> {
    private_file::check_program(&exec.program).map_err(|error| with_cause(&error))?;
    let mut command = Command::new(&exec.program);
    command.args(&exec.arguments).env_clear().envs(exec.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Its own process group, so that whatever it starts ends with it.
    command.process_group(0).kill_on_drop(true);
    let program = exec.program.display();
    command.spawn().map_err(|error| format!("{program}: cannot be started; name an executable program ({error})"))
}

/// The program and whatever it starts. Asked for while it runs: it has no number afterwards.
pub(crate) fn group(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

pub(crate) fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

pub(crate) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended for an unknown reason".into(),
    }
}

/// Someone else's text made safe for our log: one line, and no word of `too_long` characters, which may be a secret.
pub(crate) fn plain_words(text: &str, too_long: usize) -> String {
    let word = |word: &str| {
        if word.chars().count() < too_long { word.replace(char::is_control, "") } else { "(withheld)".to_owned() }
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_print_loses_every_word_that_could_be_a_secret() {
        let token = "s.abcdefghijklmnopqrst";
        assert_eq!(plain_words(&format!("denied:\n\t* no  {token}, \"a\""), 20), "denied: * no (withheld) \"a\"");
        assert_eq!(plain_words("bell\u{7}s \u{1b}[31mred", 20), "bells [31mred");
    }
}
