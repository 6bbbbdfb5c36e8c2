//! The only place that draws random numbers, apart from the keys of hash tables.

use std::cell::RefCell;

#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no random numbers")]
pub struct NoRandomness(#[source] getrandom::Error);

#[expect(clippy::disallowed_methods, reason = "this is the place meant for it")]
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

thread_local! {
    /// Drawn in advance: a system call for every nonce costs more than using it.
    static DRAWN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

const DRAWN_BYTES: usize = 1024;

/// Something nobody can guess, for values that are stored with it. Secrets are drawn one at a time, by [`bytes`].
pub fn nonce() -> Result<[u8; 16], NoRandomness> {
    DRAWN.with_borrow_mut(|drawn| {
        if drawn.is_empty() {
            drawn.extend(bytes::<DRAWN_BYTES>()?);
        }
        let nonce = drawn.split_last_chunk().map(|(_, nonce)| *nonce);
        drawn.truncate(drawn.len().saturating_sub(16));
        nonce.map_or_else(bytes, Ok)
    })
}

pub fn number() -> Result<u64, NoRandomness> {
    bytes().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_nonces_are_alike_also_across_draws() {
        let nonces: BTreeSet<_> = (0..3 * DRAWN_BYTES / 16).map(|_| nonce().unwrap()).collect();
        assert_eq!(nonces.len(), 3 * DRAWN_BYTES / 16);
    }
}
