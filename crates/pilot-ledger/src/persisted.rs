//! How facts are stored: a version byte, then JSON. Older programs wrote only the JSON.

use pilot_core::certain::Certain as _;
use pilot_store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

const VERSION: u8 = 1;
/// The first byte of a JSON object.
const UNVERSIONED: u8 = b'{';

pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    serde_json::to_writer(&mut bytes, value).certain("facts are names, numbers and times, which JSON can always hold");
    bytes
}

/// `what` names the fact in error messages.
pub(crate) fn from_bytes<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    let json = match bytes {
        [VERSION, json @ ..] => json,
        [UNVERSIONED, ..] => bytes,
        [newer, ..] if *newer > VERSION && *newer < UNVERSIONED => {
            let message = format!("{what} was written by a newer version of pilot (form {newer}); use that version");
            return Err(StoreError::Unavailable(message));
        }
        _ => return Err(StoreError::Damaged(format!("{what} cannot be read: it has no known form"))),
    };
    serde_json::from_slice(json).map_err(|error| StoreError::Damaged(format!("{what} cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_read_as_it_was_written_and_one_of_a_newer_program_is_not_damage() {
        let read = |bytes: &[u8]| from_bytes::<serde_json::Value>("it", bytes).map_err(|error| error.to_string());
        let value = serde_json::json!({ "a": 1 });
        assert_eq!(read(&to_bytes(&value)), Ok(value.clone()));
        assert_eq!(read(b"{\"a\":1}"), Ok(value), "as an older program wrote it");
        assert!(read(&[2, b'{', b'}']).unwrap_err().contains("a newer version"));
        assert!(read(b"").unwrap_err().contains("damaged") && read(&[VERSION, b'{']).unwrap_err().contains("damaged"));
    }
}
