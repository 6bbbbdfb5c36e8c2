//! The variables of the environment: nothing else reads them.

/// A variable that is set to valid text.
#[expect(clippy::disallowed_methods, reason = "a developer's tool; nothing here is tested by it")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
