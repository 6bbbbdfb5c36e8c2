//! A program that signs with the log's key: for each line of JSON it reads, it writes one. `docs/operate/signer.md` has the
//! protocol.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE64;
use pilot_core::limits::{SIGNATURES_WAITING_MAX, SIGNER_ANSWER_BYTES_MAX};
use pilot_evidence::note::{NoteError, VerifierKey};
use rustix::process::Pid;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::child::{self, how, plain_words};
use crate::config::{Exec, Signer};
use crate::error::StartError;

/// A program that ended is started again, but not more often.
const PAUSE: Duration = Duration::from_secs(1);
/// What a program has to sign before it is relied on. Neither a note, which ends with a line break, nor an attestation.
const PROBE: &[u8] = b"pilot: can this key sign?";
const LAST_WORDS: Duration = Duration::from_secs(1);
const REMARKS_MAX: usize = 10;
const REMARK_CHARS_MAX: usize = 200;
/// A word of this length may be a PIN or a token, unless it is the name of an error or a path.
const WORD_CHARS_MAX: usize = 20;

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SignatureError {
    /// Asking again does harm: a token locks itself after a few wrong PINs. Nobody asks until the next start.
    #[error("{0}; it is not asked again until the service is restarted")]
    Refused(String),
    #[error("{0}")]
    Unavailable(String),
}

impl From<NoteError> for SignatureError {
    fn from(_: NoteError) -> Self {
        SignatureError::Unavailable("log.signer: what it answered is not a signature by the log's key".into())
    }
}

impl From<SignatureError> for StartError {
    fn from(error: SignatureError) -> Self {
        match error {
            SignatureError::Refused(what) => StartError::Refused(what),
            SignatureError::Unavailable(what) => StartError::Environment { what, source: None },
        }
    }
}

/// How long a signature may wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// For a checkpoint, without which nothing is accepted: after at most one that can wait.
    Checkpoint,
    CanWait,
}

pub struct Helper {
    exec: Exec,
    verifier: VerifierKey,
    line: tokio::sync::Mutex<Line>,
    /// Held by the one signature that can wait and has its turn.
    turn: Arc<tokio::sync::Mutex<()>>,
    waiting: Arc<Semaphore>,
}

enum Line {
    Up(Box<Running>),
    Down { again: Instant, why: SignatureError },
}

impl Helper {
    /// Starts the program, and has it show that it can sign.
    pub(super) async fn start(signer: &Signer) -> Result<Arc<Helper>, SignatureError> {
        let Signer { name, exec } = signer;
        let mut running = Running::start(exec)?;
        let public_key = running.public_key(exec).await?;
        let verifier = VerifierKey::new(name, public_key);
        let signature = running.sign(exec, PROBE).await?;
        let wrong = |_| unavailable(exec, "its signature is not by the key that it names");
        verifier.check(PROBE, &signature).map_err(wrong)?;
        Ok(Arc::new(Helper {
            exec: exec.clone(),
            verifier,
            line: tokio::sync::Mutex::new(Line::Up(Box::new(running))),
            turn: Arc::default(),
            waiting: Arc::new(Semaphore::new(SIGNATURES_WAITING_MAX)),
        }))
    }

    pub(super) const fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// A signature that was checked.
    pub(super) async fn sign(self: &Arc<Self>, message: &[u8], haste: Haste) -> Result<[u8; 64], SignatureError> {
        let too_many = |_| unavailable(&self.exec, "too many signatures are waiting for it");
        let place = match haste {
            Haste::Checkpoint => None,
            Haste::CanWait => Some(Arc::clone(&self.waiting).try_acquire_owned().map_err(too_many)?),
        };
        // In its own task: a program whose answer nobody waits for would be out of step. The task keeps place and turn, so
        // that callers who go away make no room for more.
        let (helper, message) = (Arc::clone(self), message.to_vec());
        let signing = tokio::spawn(async move {
            let _turn = match &place {
                Some(_) => Some(Arc::clone(&helper.turn).lock_owned().await),
                None => None,
            };
            helper.exchange(&message).await
        });
        signing.await.unwrap_or_else(|error| Err(SignatureError::Unavailable(error.to_string())))
    }

    async fn exchange(&self, message: &[u8]) -> Result<[u8; 64], SignatureError> {
        let mut line = self.line.lock().await;
        let running = self.running(&mut line).await?;
        let signed = running.sign(&self.exec, message).await;
        let signed = signed.and_then(|signature| {
            self.verifier.check(message, &signature).map_err(|_| {
                // Perhaps it is the answer to an earlier request.
                running.is_in_step = false;
                unavailable(&self.exec, "what it answered is not a signature by the log's key")
            })?;
            Ok(signature)
        });
        if !running.is_in_step {
            let why = signed.as_ref().err().cloned();
            let why = why.unwrap_or_else(|| unavailable(&self.exec, "wrote more than it was asked for"));
            *line = Line::Down { again: Instant::now() + PAUSE, why };
        }
        signed
    }

    async fn running<'l>(&self, line: &'l mut Line) -> Result<&'l mut Running, SignatureError> {
        if let Line::Down { again, why } = line {
            if matches!(why, SignatureError::Refused(_)) || Instant::now() < *again {
                return Err(why.clone());
            }
            *line = match self.start_again().await {
                Ok(running) => Line::Up(Box::new(running)),
                Err(why) => Line::Down { again: Instant::now() + PAUSE, why },
            };
        }
        match line {
            Line::Up(running) => Ok(running),
            Line::Down { why, .. } => Err(why.clone()),
        }
    }

    async fn start_again(&self) -> Result<Running, SignatureError> {
        let mut running = Running::start(&self.exec)?;
        if running.public_key(&self.exec).await? == self.verifier.public_key {
            return Ok(running);
        }
        Err(unavailable(&self.exec, "it has a different key from the one at the start"))
    }
}

/// `{"sign": …}` and so on, as the program answers.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Answer {
    PublicKey(String),
    Signature(String),
    Error(String),
    Refused(String),
}

struct Running {
    child: Child,
    group: Option<Pid>,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The last thing it wrote to standard error, and the task that reads it.
    remark: Arc<Mutex<String>>,
    listening: JoinHandle<()>,
    /// The next line it writes answers the next request.
    is_in_step: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        child::kill(self.group);
    }
}

impl Running {
    fn start(exec: &Exec) -> Result<Running, SignatureError> {
        let failed = |what: String| SignatureError::Unavailable(format!("log.signer: {what}"));
        let mut child = child::start(exec, Stdio::piped()).map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(requests), Some(answers), Some(remarks)) = streams else {
            return Err(unavailable(exec, "it has no streams"));
        };
        let remark = Arc::new(Mutex::new(String::new()));
        let listening = tokio::spawn(listen(remarks, exec.program.display().to_string(), Arc::clone(&remark)));
        Ok(Running {
            listening,
            group: child::group(&child),
            child,
            requests,
            answers: BufReader::new(answers),
            remark,
            is_in_step: true,
        })
    }

    async fn public_key(&mut self, exec: &Exec) -> Result<[u8; 32], SignatureError> {
        match self.ask(exec, "{\"public_key\":true}\n").await? {
            Answer::PublicKey(text) => bytes(&text).ok_or_else(|| unavailable(exec, "its public key is not 32 bytes")),
            other => Err(self.not_wanted(exec, other)),
        }
    }

    async fn sign(&mut self, exec: &Exec, message: &[u8]) -> Result<[u8; 64], SignatureError> {
        let request = format!("{{\"sign\":\"{}\"}}\n", BASE64.encode(message));
        match self.ask(exec, &request).await? {
            Answer::Signature(text) => bytes(&text).ok_or_else(|| unavailable(exec, "its signature is not 64 bytes")),
            other => Err(self.not_wanted(exec, other)),
        }
    }

    fn not_wanted(&mut self, exec: &Exec, answer: Answer) -> SignatureError {
        match answer {
            Answer::Error(text) => unavailable(exec, &remark(&text)),
            Answer::Refused(text) => {
                self.is_in_step = false;
                SignatureError::Refused(format!("log.signer: {}: {}", exec.program.display(), remark(&text)))
            }
            Answer::PublicKey(_) | Answer::Signature(_) => {
                self.is_in_step = false;
                unavailable(exec, "its answer does not match the request")
            }
        }
    }

    async fn ask(&mut self, exec: &Exec, request: &str) -> Result<Answer, SignatureError> {
        self.is_in_step = false;
        let exchange = async {
            self.requests.write_all(request.as_bytes()).await.ok()?;
            self.requests.flush().await.ok()?;
            line(&mut self.answers).await
        };
        let answer = match tokio::time::timeout(exec.timeout, exchange).await {
            Ok(Some(answer)) if answer.ends_with(b"\n") => answer,
            Ok(Some(answer)) if answer.len() == SIGNER_ANSWER_BYTES_MAX => {
                return Err(unavailable(exec, &format!("its answer is longer than {SIGNER_ANSWER_BYTES_MAX} bytes")));
            }
            Ok(_) => return Err(self.ended(exec).await),
            Err(_) => {
                let seconds = exec.timeout.as_secs();
                return Err(unavailable(exec, &format!("did not answer within {seconds} s and was killed")));
            }
        };
        let answer =
            serde_json::from_slice(&answer).map_err(|_| unavailable(exec, "its answer is not a line of JSON"))?;
        // Whatever else it has written answers nothing.
        self.is_in_step = self.answers.buffer().is_empty();
        Ok(answer)
    }

    /// It closed its output.
    async fn ended(&mut self, exec: &Exec) -> SignatureError {
        // It may have closed its output a moment before it ends.
        let how = match tokio::time::timeout(LAST_WORDS, self.child.wait()).await {
            Ok(Ok(status)) => how(status),
            _ => "closed its output and was killed".to_owned(),
        };
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.listening).await;
        let remark = self.remark.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let remark =
            if remark.is_empty() { "it reported nothing".to_owned() } else { format!("it reported: {remark}") };
        unavailable(exec, &format!("{how}; {remark}"))
    }
}

fn unavailable(exec: &Exec, what: &str) -> SignatureError {
    SignatureError::Unavailable(format!("log.signer: {}: {what}", exec.program.display()))
}

/// What the program says, fit to be repeated.
fn remark(text: &str) -> String {
    let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase() || b"_:;,.()".contains(&byte));
    let word = |word: &str| match word {
        _ if word.starts_with('/') || is_name(word) => word.replace(char::is_control, ""),
        _ => plain_words(word, WORD_CHARS_MAX),
    };
    let words: Vec<_> = text.split_whitespace().map(word).collect();
    words.join(" ").chars().take(REMARK_CHARS_MAX).collect()
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// One line with its end, or as much as there is of it within the limit.
async fn line(stream: &mut (impl AsyncRead + AsyncBufReadExt + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut bounded = stream.take(SIGNER_ANSWER_BYTES_MAX as u64);
    bounded.read_until(b'\n', &mut line).await.ok()?;
    Some(line)
}

/// Passes on the beginning of what a program writes to standard error. The rest is read too, because a program that
/// cannot write would block.
async fn listen(stream: ChildStderr, program: String, last: Arc<Mutex<String>>) {
    let mut stream = BufReader::new(stream);
    for _ in 0..REMARKS_MAX {
        let mut said = Vec::new();
        let read = (&mut stream).take(SIGNER_ANSWER_BYTES_MAX as u64).read_until(b'\n', &mut said).await;
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        let said = remark(&String::from_utf8_lossy(&said));
        if !said.is_empty() {
            tracing::warn!(program, said, "the log's signer reports something");
            *last.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }
    }
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}

#[cfg(test)]
mod tests;
