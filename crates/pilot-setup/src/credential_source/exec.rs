//! A program that prints the credential file: without a shell, with its own environment, a deadline and a size limit.

use std::process::{ExitStatus, Stdio};

use pilot_core::limits::PRIVATE_FILE_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;

use super::fetched::{Fetched, plain_words};
use crate::child::{self, how};
use crate::config::Exec;
use crate::error::StartError;

/// Any further output is ignored.
const REMARKS_BYTES_MAX: u64 = 8 * 1024;
const REMARKS_MAX: usize = 10;
const REMARK_CHARS_MAX: usize = 200;

pub(super) async fn run(exec: &Exec) -> Result<Fetched, StartError> {
    let refused = |what: String| StartError::Refused(format!("credentials.exec: {what}"));
    let program = exec.program.display();
    let mut child = child::start(exec, Stdio::null()).map_err(refused)?;
    let group = child::group(&child);
    let finished = tokio::time::timeout(exec.timeout, listen(&mut child)).await;
    // Also after a regular end: what it left running would go on with what it knows.
    child::kill(group);
    let _ = child.wait().await;
    match finished {
        Err(_) => Err(StartError::Environment {
            what: format!(
                "credentials.exec: {program}: did not finish within {} s and was killed; run it by hand to see what it is waiting for, or raise timeout_seconds",
                exec.timeout.as_secs()
            ),
            source: None,
        }),
        Ok(Err(Unheard::TooMuch)) => {
            Err(refused(format!("{program}: printed more than {} MiB", PRIVATE_FILE_BYTES_MAX / 1024 / 1024)))
        }
        Ok(Err(Unheard::Io(error))) => {
            Err(StartError::environment(format!("credentials.exec: {program}: its output cannot be read"), error))
        }
        Ok(Ok((bytes, said, status))) => {
            let remarks = remarks(&said);
            if status.success() {
                return Ok(Fetched { remarks, ..Fetched::new(bytes, None) });
            }
            let said = if remarks.is_empty() {
                "; it reported nothing".into()
            } else {
                format!("; it reported: {}", remarks.join(" / "))
            };
            Err(refused(format!("{program}: {}{said}", how(status))))
        }
    }
}

enum Unheard {
    TooMuch,
    Io(std::io::Error),
}

impl From<std::io::Error> for Unheard {
    fn from(error: std::io::Error) -> Self {
        Unheard::Io(error)
    }
}

async fn listen(child: &mut Child) -> Result<(Vec<u8>, Vec<u8>, ExitStatus), Unheard> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async { child.wait().await.map_err(Unheard::Io) };
    tokio::try_join!(hear_all(stdout), hear_some(stderr), ended)
}

async fn hear_all(stream: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Unheard> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(PRIVATE_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > PRIVATE_FILE_BYTES_MAX { Err(Unheard::TooMuch) } else { Ok(bytes) }
}

/// Keeps the beginning. The rest is read too, because a program that cannot write would block.
async fn hear_some(stream: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Unheard> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(REMARKS_BYTES_MAX).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

fn remarks(said: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(said);
    let lines = text.lines().map(plain_words).filter(|line| !line.is_empty());
    lines.map(|line| line.chars().take(REMARK_CHARS_MAX).collect()).take(REMARKS_MAX).collect()
}
