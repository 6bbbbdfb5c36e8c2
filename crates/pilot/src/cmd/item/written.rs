//! What the service says about a draft.

use crate::client::Reply;
use crate::draft::Attempt;
use crate::draft::text::Mistake;
use crate::exit::Failure;

/// What it finds wrong goes back into the editor; any other refusal is final.
pub(super) fn attempt<T: serde::de::DeserializeOwned>(reply: &Reply) -> Result<Attempt<T>, Failure> {
    let errors = reply.problem().filter(|_| reply.status() == 422).map(|problem| problem.errors).unwrap_or_default();
    if errors.is_empty() {
        return reply.read().map(Attempt::Done);
    }
    Ok(Attempt::Mistakes(errors.into_iter().map(|fault| Mistake::at(&fault.pointer, fault.detail)).collect()))
}

pub(super) fn cannot_be_written() -> Failure {
    Failure::Usage(
        "the payload has null in it, which the editor's page cannot say; use --payload with a JSON file".into(),
    )
}
