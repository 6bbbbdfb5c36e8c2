//! The verifier for browsers: what `pilot-verify` prints as JSON, from bytes in memory instead of files.

pub mod exports;

use pilot_core::certain::Certain as _;
use pilot_core::visible::visible_json;
use pilot_evidence::note::KeyError;
use pilot_evidence::verify::trust::{self, Given};
use pilot_evidence::verify::verify;
use serde::{Deserialize, Serialize};

/// What the person gave besides the bundle.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    key: String,
    #[serde(default)]
    witness_keys: Vec<String>,
    /// All of them if absent.
    #[serde(default)]
    witnesses: Option<usize>,
}

/// What keeps the verifier from starting. Nothing has been said about the bundle.
#[derive(Debug, Serialize)]
struct Refusal {
    refused: Reason,
}

#[derive(Debug, Serialize)]
struct Reason {
    /// The option of the command line that would be wrong: `key`, `witness-key` or `witnesses`.
    option: String,
    what: String,
}

/// The verdict, byte for byte as `pilot-verify --output json` prints it, or what is wrong with the settings.
pub fn answer(settings: &[u8], bundle: &[u8]) -> String {
    match read(settings) {
        Ok(trust) => visible_json(&verify(bundle, &trust).to_json()).into_owned(),
        Err(reason) => serde_json::to_string(&Refusal { refused: reason }).certain("a refusal is two texts"),
    }
}

fn read(settings: &[u8]) -> Result<trust::Trust, Reason> {
    let refused = |option: &str, what: String| Reason { option: option.to_owned(), what };
    let settings: Settings =
        serde_json::from_slice(settings).map_err(|error| refused("settings", error.to_string()))?;
    let witness_keys: Vec<_> = settings.witness_keys.iter().map(|line| line.trim().to_owned()).collect();
    let key = settings.key.trim();
    // What is not a key would be taken for the name of a file, and here there are none.
    for (option, line) in
        std::iter::once(("key", key)).chain(witness_keys.iter().map(|line| ("witness-key", line.as_str())))
    {
        if line.matches('+').count() < 2 {
            return Err(refused(option, KeyError::VerifierFormat.to_string()));
        }
    }
    let none = |_: &str| Err::<Vec<u8>, _>(std::io::Error::from(std::io::ErrorKind::NotFound));
    let given =
        Given { key: Some(key), witness_keys: &witness_keys, witnesses: settings.witnesses, ..Given::default() };
    trust::read(given, none).map_err(|error| {
        // The error names the option it is about, as it is on the command line.
        let text = error.to_string();
        let (option, what) = text.split_once(": ").unwrap_or(("--settings", &text));
        refused(option.trim_start_matches('-'), what.to_owned())
    })
}
