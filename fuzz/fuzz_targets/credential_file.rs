//! The two files an operator writes. What is accepted reads back the same; what is refused is never repeated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilot_core::credentials::Credentials;
use pilot_core::fault::Fault;
use pilot_core::limits::TOKEN_BYTES_MIN;
use pilot_core::role_map::RoleMap;

fuzz_target!(|bytes: &[u8]| {
    match Credentials::parse_either(bytes) {
        Ok(credentials) => {
            let written = credentials.to_json();
            let again = Credentials::parse_either(written.as_bytes()).expect("what was written must be readable");
            assert_eq!(again.to_json(), written);
            for (index, entry) in credentials.entries().iter().enumerate() {
                assert_eq!(again.find(&entry.digest).map(|(found, _)| found), Some(index));
            }
        }
        Err(faults) => check_secrecy(&faults),
    }
    match RoleMap::parse(bytes) {
        Ok(map) => {
            let written = map.to_json();
            assert_eq!(RoleMap::parse(written.as_bytes()), Ok(map));
        }
        Err(faults) => check_secrecy(&faults),
    }
});

/// Our own sentences and places have no word as long as a token, so a word that long comes from the file.
fn check_secrecy(faults: &[Fault]) {
    assert!(!faults.is_empty(), "a refusal gives its reasons");
    for Fault { pointer, detail, .. } in faults {
        let mut words = pointer.split('/').chain(detail.split([' ', '/']));
        assert_eq!(words.find(|word| word.len() >= TOKEN_BYTES_MIN), None, "a fault repeats what may be a token");
    }
}
