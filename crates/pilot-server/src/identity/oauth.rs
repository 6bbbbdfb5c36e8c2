//! Access tokens of one identity provider.

pub mod signature;
