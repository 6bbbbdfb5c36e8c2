//! `docs/reference` is what the code says, to the byte. `UPDATE_EXPECT=1 cargo test --workspace reference` rewrites it.

use expect_test::expect_file;
use pilot_setup::reference;

#[test]
fn the_keys_in_the_docs_are_those_the_configuration_has() {
    expect_file!["../../../docs/reference/configuration.md"].assert_eq(&reference::configuration());
}
