//! Access tokens of one identity provider.

pub mod discovery;
pub mod introspection;
pub mod provider;
pub mod signature;
