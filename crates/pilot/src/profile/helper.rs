//! A program that prints a token: no shell, a deadline and a bound on what it prints.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use zeroize::Zeroizing;

use crate::environment::TOKEN;
use crate::exit::Failure;

const DEADLINE: Duration = Duration::from_secs(10);
/// Twice what a signed token may have.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// What the program printed. Its standard error is ours: it may ask the person for something, or say what is wrong.
pub(crate) async fn token(argv: &[String]) -> Result<Zeroizing<String>, Failure> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(Failure::Usage("token_command needs a program".into()));
    };
    let failed = |why: String| Failure::Environment(format!("token_command: {program}: {why}"));
    let mut command = Command::new(program);
    command.args(arguments).env_remove(TOKEN).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // Its own group, so that whatever it starts ends with it.
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| failed(format!("cannot be started ({error})")))?;
    let id = child.id();
    match tokio::time::timeout(DEADLINE, listen(&mut child)).await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(why)) => {
            end(id, &mut child).await;
            Err(failed(why))
        }
        Err(_) => {
            end(id, &mut child).await;
            Err(failed(format!(
                "did not finish within {} s and was ended; run it by hand to see why",
                DEADLINE.as_secs()
            )))
        }
    }
}

async fn listen(child: &mut Child) -> Result<Zeroizing<String>, String> {
    let mut printed = Zeroizing::new(Vec::with_capacity(OUTPUT_BYTES_MAX + 1));
    if let Some(stdout) = child.stdout.take() {
        let read = stdout.take(OUTPUT_BYTES_MAX as u64 + 1).read_to_end(&mut printed).await;
        read.map_err(|error| format!("its output cannot be read ({error})"))?;
    }
    if printed.len() > OUTPUT_BYTES_MAX {
        return Err(format!("printed more than {} KiB, which is not a token", OUTPUT_BYTES_MAX / 1024));
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("ended with {status}"));
    }
    let text = std::str::from_utf8(&printed).map_err(|_| "printed something that is not text".to_owned())?;
    Ok(Zeroizing::new(text.to_owned()))
}

async fn end(id: Option<u32>, child: &mut Child) {
    let group = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait().await;
}
