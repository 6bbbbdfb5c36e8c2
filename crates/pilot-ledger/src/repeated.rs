//! The result of an earlier request with the same idempotency key and body.

use bytes::Bytes;
use pilot_core::entry::Entry;
use pilot_store::{Remembered, Store, StoreError};

pub enum Repeated {
    /// The entry it recorded. Together with the request, that is enough to build the answer.
    Entry(Entry),
    Answer(KeptAnswer),
}

/// `None` if what was stored cannot be read.
pub async fn recall(store: &dyn Store, remembered: Remembered) -> Result<Option<Repeated>, StoreError> {
    Ok(match remembered {
        Remembered::Answer(bytes) => KeptAnswer::read(bytes).map(Repeated::Answer),
        Remembered::Entry(index) => {
            let stored = store.entries(index, 1).await?.into_iter().find(|stored| stored.index == index);
            stored.and_then(|stored| Entry::parse(&stored.bytes).ok()).map(Repeated::Entry)
        }
    })
}

/// The result of the request, stored as an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Created,
    Changed,
}

/// An answer as older programs stored it.
#[derive(Debug, PartialEq)]
pub struct KeptAnswer {
    pub made: Made,
    pub location: Option<String>,
    pub version: Option<u64>,
    pub body: Bytes,
}

impl KeptAnswer {
    /// The first line has everything but the body: `201 7 /v1/items/…`, with `-` for what is absent. The body follows
    /// as it was sent.
    pub fn read(bytes: Vec<u8>) -> Option<KeptAnswer> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let mut words = line.splitn(3, ' ');
        let made = match words.next()? {
            "201" => Made::Created,
            "200" => Made::Changed,
            _ => return None,
        };
        let mut present = || words.next().map(|word| Some(word).filter(|word| *word != "-"));
        let version = present()?.map(str::parse).transpose().ok()?;
        let location = present()?.map(str::to_owned);
        let body = Bytes::from(bytes).split_off(end + 1);
        Some(KeptAnswer { made, location, version, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_kept_is_read_and_anything_else_is_not() {
        let read = |text: &str| KeptAnswer::read(text.as_bytes().to_vec());
        let kept = |made, location: Option<&str>, version, body: &'static str| {
            Some(KeptAnswer { made, location: location.map(str::to_owned), version, body: body.into() })
        };
        assert_eq!(
            read("201 7 /v1/items/x\n{\"a\":\"\\n\"}"),
            kept(Made::Created, Some("/v1/items/x"), Some(7), "{\"a\":\"\\n\"}")
        );
        assert_eq!(read("200 1 -\na\nb - c"), kept(Made::Changed, None, Some(1), "a\nb - c"));
        assert_eq!(read("201 - -\n"), kept(Made::Created, None, None, ""));
        for damaged in ["", "201 7 -", "204 7 -\n", "201\n", "201 seven -\n", "201 7\n"] {
            assert_eq!(read(damaged), None, "{damaged:?}");
        }
    }
}
