//! The only place that draws random numbers.

#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandomness(#[source] getrandom::Error);

#[expect(clippy::disallowed_methods, reason = "this is the place meant for it")]
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

pub fn number() -> Result<u64, NoRandomness> {
    bytes().map(u64::from_ne_bytes)
}
