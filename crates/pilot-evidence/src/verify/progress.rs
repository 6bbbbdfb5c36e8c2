//! How far a verification is, for those who wait for a large bundle.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading the bundle: bytes.
    Reading,
    /// Asking the rules again: entries.
    Replaying,
}

/// Called with the stage, how much of it is done, and how much it has.
pub type Watch<'w> = dyn FnMut(Stage, u64, u64) + 'w;
