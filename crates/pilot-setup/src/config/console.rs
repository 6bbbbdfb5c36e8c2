//! `[console]`: how the operator console presents this installation.

use std::num::NonZeroU16;

use pilot_core::limits::CONSOLE_NAME_CHARS_MAX;
use pilot_core::visible::hidden;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Console {
    /// The colour of the bar with the name, so that people notice which installation they are in.
    pub colour: Colour,
    /// After this many idle minutes the console forgets its token.
    pub idle_minutes: NonZeroU16,
    /// What this installation is called, such as `Production`; at most 40 characters. The console shows it at the top
    /// of every page. By default it shows none.
    #[serde(deserialize_with = "name")]
    #[schemars(with = "Option<String>")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    #[default]
    Grey,
    Blue,
    Green,
    Amber,
    Red,
}

impl Default for Console {
    fn default() -> Self {
        // Fifteen, written without a step that could fail.
        Console { colour: Colour::default(), idle_minutes: NonZeroU16::MIN.saturating_add(14), name: None }
    }
}

/// A name that people can read at a glance, and that reads as what it is.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let fault = if name.is_empty() || name.trim() != name {
        "must not be empty, and must not begin or end with a space".to_owned()
    } else if name.chars().count() > CONSOLE_NAME_CHARS_MAX {
        format!("must have at most {CONSOLE_NAME_CHARS_MAX} characters")
    } else if hidden(&name) > 0 || name.chars().any(char::is_control) {
        "must not contain hidden characters".to_owned()
    } else {
        return Ok(Some(name));
    };
    Err(D::Error::custom(fault))
}
