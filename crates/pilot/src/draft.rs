//! Content in an editor: opened again while something is wrong with it, and never lost.

use std::path::{Path, PathBuf};

use pilot_setup::private_file;
use pilot_setup::random;
use tokio::process::Command;

use crate::draft::template::annotated;
use crate::draft::text::{Mistake, Written, read};
use crate::environment::{Environment, TOKEN};
use crate::exit::Failure;

pub(crate) mod template;
pub(crate) mod text;

/// A file with what a person is writing. It stays until what it says was sent.
pub(crate) struct Draft {
    path: PathBuf,
    /// How to go on with it.
    again: String,
    editor: Vec<String>,
    /// Whether anybody has written something into it.
    is_touched: bool,
}

/// What came of an attempt to send a draft.
pub(crate) enum Attempt<T> {
    Done(T),
    Mistakes(Vec<Mistake>),
}

impl Draft {
    /// `again` is the command that continues, without the path.
    pub(crate) fn begin(text: &str, again: String, environment: &Environment) -> Result<Draft, Failure> {
        let editor = environment.get("VISUAL").or(environment.get("EDITOR"));
        let editor = editor.ok_or_else(|| Failure::Usage("set VISUAL or EDITOR to the editor you use".into()))?;
        let editor = editor.split_whitespace().map(str::to_owned).collect();
        let directory = environment.directory("XDG_STATE_HOME", ".local/state");
        let directory = directory.map_or_else(|| PathBuf::from("."), |directory| directory.join("pilot/drafts"));
        let path = directory.join(format!("{:016x}.toml", random::number()?));
        let failed = |error| Failure::environment(path.display(), error);
        private_file::make_directory(&directory).map_err(failed)?;
        private_file::write_new(&path, text.as_bytes()).map_err(failed)?;
        Ok(Draft { path, again, editor, is_touched: false })
    }

    /// Opens the editor, and tries to send what was written; again while there are mistakes in it.
    pub(crate) async fn finish<T>(
        mut self,
        mut send: impl AsyncFnMut(&Written) -> Result<Attempt<T>, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let written = match self.written().await {
                Ok(Ok(written)) => written,
                Ok(Err(mistakes)) => {
                    self.mark(&mistakes)?;
                    continue;
                }
                Err(failure) => return Err(self.kept(failure)),
            };
            match send(&written).await {
                Ok(Attempt::Done(done)) => {
                    let _ = std::fs::remove_file(&self.path);
                    return Ok(done);
                }
                Ok(Attempt::Mistakes(mistakes)) => self.mark(&mistakes)?,
                Err(failure) => return Err(self.kept(failure)),
            }
        }
    }

    async fn written(&mut self) -> Result<Result<Written, Vec<Mistake>>, Failure> {
        let before = self.text()?;
        self.open().await?;
        let after = self.text()?;
        // Somebody who changes nothing wants to leave.
        if before == after {
            return Err(Failure::Refused("nothing was changed, so nothing was sent".into()));
        }
        self.is_touched = true;
        Ok(read(&after))
    }

    async fn open(&self) -> Result<(), Failure> {
        let Some((program, arguments)) = self.editor.split_first() else {
            return Err(Failure::Usage("set VISUAL or EDITOR to the editor you use".into()));
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(&self.path).env_remove(TOKEN);
        let status = command.status().await.map_err(|error| Failure::environment(program, error))?;
        if status.success() { Ok(()) } else { Err(Failure::Environment(format!("{program}: ended with {status}"))) }
    }

    fn text(&self) -> Result<String, Failure> {
        std::fs::read_to_string(&self.path).map_err(|error| Failure::environment(self.path.display(), error))
    }

    fn mark(&self, mistakes: &[Mistake]) -> Result<(), Failure> {
        let text = annotated(&self.text()?, mistakes);
        replace(&self.path, &text)
    }

    /// What nobody wrote need not be kept.
    fn kept(self, failure: Failure) -> Failure {
        if !self.is_touched {
            let _ = std::fs::remove_file(&self.path);
            return failure;
        }
        let (path, again) = (self.path.display(), &self.again);
        failure.and(&format!("your draft is kept in {path}; go on with: {again} --payload {path} --edit"))
    }
}

fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    private_file::replace(path, text.as_bytes()).map_err(|error| Failure::environment(path.display(), error))
}
