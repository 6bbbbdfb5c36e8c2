//! The definitions every installation has.

use std::sync::{Arc, LazyLock};

use crate::workflow::Definition;

pub const CONTROLLED_OPERATION: &str = include_str!("../../../../workflows/controlled-operation.toml");
pub const EMERGENCY_OPERATION: &str = include_str!("../../../../workflows/emergency-operation.toml");

static BUILTIN: LazyLock<[Arc<Definition>; 2]> =
    LazyLock::new(|| [CONTROLLED_OPERATION, EMERGENCY_OPERATION].map(proved));

/// Read and proved once per process.
pub fn builtin() -> [Arc<Definition>; 2] {
    BUILTIN.clone()
}

#[expect(clippy::panic, reason = "text compiled into the program and proved by the tests; without it nothing can run")]
fn proved(text: &str) -> Arc<Definition> {
    match Definition::parse(text) {
        Ok(definition) => Arc::new(definition),
        Err(flaws) => panic!("a built-in definition is flawed:\n{flaws}"),
    }
}
