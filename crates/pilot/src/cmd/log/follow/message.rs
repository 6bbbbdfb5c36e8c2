//! An entry as a syslog message (RFC 5424), framed for TLS by its length (RFC 5425).

use std::fmt::Write as _;

use clap::ValueEnum;
use pilot_api::events::EventView;
use pilot_core::entry::EntryType;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

/// The lengths that RFC 5424 allows.
const HOSTNAME_BYTES_MAX: usize = 255;
const MSGID_BYTES_MAX: usize = 32;
pub(super) const APP_NAME_BYTES_MAX: usize = 48;
pub(super) const SD_ID_BYTES_MAX: usize = 32;

/// Where in syslog's old order of things the messages belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Facility {
    User,
    Daemon,
    Auth,
    Authpriv,
    /// Log audit, number 13
    Audit,
    Local0,
    Local1,
    Local2,
    Local3,
    Local4,
    Local5,
    Local6,
    Local7,
}

impl Facility {
    const fn number(self) -> u8 {
        match self {
            Facility::User => 1,
            Facility::Daemon => 3,
            Facility::Auth => 4,
            Facility::Authpriv => 10,
            Facility::Audit => 13,
            Facility::Local0 => 16,
            Facility::Local1 => 17,
            Facility::Local2 => 18,
            Facility::Local3 => 19,
            Facility::Local4 => 20,
            Facility::Local5 => 21,
            Facility::Local6 => 22,
            Facility::Local7 => 23,
        }
    }
}

const WARNING: u8 = 4;
const NOTICE: u8 = 5;
const INFORMATIONAL: u8 = 6;

/// What someone may have to act on is a warning; what changes who may do what is a notice.
const fn severity(kind: EntryType) -> u8 {
    match kind {
        EntryType::AccessRefused
        | EntryType::AccessTokenExposed
        | EntryType::CredentialRefused
        | EntryType::CredentialRevoked
        | EntryType::CredentialsTrusted
        | EntryType::LedgerRestored
        | EntryType::ClockAccepted => WARNING,
        EntryType::CredentialExpired
        | EntryType::CredentialsChanged
        | EntryType::ServiceStarted
        | EntryType::DocumentsErased => NOTICE,
        EntryType::ItemCreated
        | EntryType::ItemEdited
        | EntryType::ItemTransition
        | EntryType::ItemComment
        | EntryType::PermitIssued
        | EntryType::CredentialFirstUsed => INFORMATIONAL,
    }
}

/// What all messages have in common.
pub(super) struct Frame {
    pub(super) facility: Facility,
    pub(super) hostname: String,
    pub(super) app_name: String,
    /// The name of the structured data: a name, an @, and a private enterprise number.
    pub(super) sd_id: String,
    pub(super) log: String,
}

impl Frame {
    /// The message, preceded by its length and a space.
    pub(super) fn message(&self, entry: &EventView, data: &str) -> Vec<u8> {
        // A type that only a newer service writes is at least worth a look.
        let kind: StrDeserializer<'_, Error> = entry.r#type.as_str().into_deserializer();
        let severity = EntryType::deserialize(kind).map_or(NOTICE, severity);
        let priority = u16::from(self.facility.number()) * 8 + u16::from(severity);
        let hostname = printable(&self.hostname, HOSTNAME_BYTES_MAX);
        let app_name = printable(&self.app_name, APP_NAME_BYTES_MAX);
        let msgid = printable(&entry.r#type, MSGID_BYTES_MAX);
        let mut text = format!("<{priority}>1 {} {hostname} {app_name} - {msgid} [{}", entry.at, self.sd_id);
        let index = entry.index.to_string();
        let parameters = [
            ("index", Some(&*index)),
            ("item", entry.item.as_deref()),
            ("actor", entry.actor_id.as_deref()),
            ("role", entry.role.as_deref()),
            ("log", Some(&*self.log)),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                let _ = write!(text, " {name}=\"{}\"", escaped(value));
            }
        }
        let _ = write!(text, "] {data}");
        format!("{} {text}", text.len()).into_bytes()
    }
}

/// Visible ASCII without spaces, as the header's fields demand; a dash stands for nothing.
fn printable(text: &str, bytes_max: usize) -> String {
    let visible = |sign: char| if sign.is_ascii_graphic() { sign } else { '?' };
    let text: String = text.chars().take(bytes_max).map(visible).collect();
    if text.is_empty() { "-".into() } else { text }
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for sign in value.chars() {
        if matches!(sign, '"' | '\\' | ']') {
            text.push('\\');
        }
        // No line breaks either: not every receiver counts bytes to the end.
        text.push(if sign.is_control() { '?' } else { sign });
    }
    text
}

/// For an option: visible ASCII, and short enough.
pub(super) fn app_name(text: &str) -> Result<String, String> {
    let is_name =
        !text.is_empty() && text.len() <= APP_NAME_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_name { Ok(text.into()) } else { Err(format!("must be 1 to {APP_NAME_BYTES_MAX} visible ASCII characters")) }
}

/// For an option: `name@number`.
pub(super) fn sd_id(text: &str) -> Result<String, String> {
    let is_sign = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"' | b'@');
    let is_id = text.split_once('@').is_some_and(|(name, number)| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        !name.is_empty() && name.bytes().all(is_sign) && number.split('.').all(is_number)
    });
    let says =
        || format!("must be a name, @ and an enterprise number, at most {SD_ID_BYTES_MAX} characters: pilot@32473");
    if is_id && text.len() <= SD_ID_BYTES_MAX { Ok(text.into()) } else { Err(says()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(data: &str) -> String {
        let frame = Frame {
            facility: Facility::Audit,
            hostname: "sink.example".into(),
            app_name: "pilot".into(),
            sd_id: "pilot@32473".into(),
            log: "a]\"\\b".into(),
        };
        String::from_utf8(frame.message(&serde_json::from_str(data).unwrap(), data)).unwrap()
    }

    #[test]
    fn a_message_has_the_entrys_time_type_and_bytes_and_is_preceded_by_its_length() {
        let data = r#"{"actor_id":"ana","at":"2026-11-17T10:00:00.000000Z","index":7,"item":"x","role":"initiator","type":"item.created","v":1}"#;
        let head = r#"<110>1 2026-11-17T10:00:00.000000Z sink.example pilot - item.created [pilot@32473 index="7" item="x" actor="ana" role="initiator" log="a\]\"\\b"] "#;
        let length = head.len() + data.len();
        assert_eq!(message(data), format!("{length} {head}{data}"));
    }

    #[test]
    fn refusals_are_warnings_and_an_unknown_type_is_a_notice_with_a_valid_name() {
        let data = |kind: &str| format!(r#"{{"at":"2026-11-17T10:00:00.000000Z","index":0,"type":"{kind}"}}"#);
        assert!(message(&data("access.refused")).contains(" <108>1 "));
        assert!(message(&data("service.started")).contains(" <109>1 "));
        let unknown = message(&data(&format!("new thing {}", "é".repeat(40))));
        assert!(
            unknown.contains(" <109>1 ") && unknown.contains(&format!(" - new?thing{} [", "?".repeat(23))),
            "{unknown}"
        );
        let length = unknown.split_once(' ').unwrap();
        assert_eq!(length.0.parse::<usize>().unwrap(), length.1.len(), "bytes, not characters");
    }

    #[test]
    fn options_that_a_header_cannot_hold_are_refused() {
        assert!(sd_id("pilot@32473").is_ok() && sd_id("x@1.2.3").is_ok());
        for wrong in ["pilot", "@1", "p@", "p@1.", "p q@1", "p]@1", "p@x", "a-name-that-is-far-too-long@32473"] {
            assert!(sd_id(wrong).is_err(), "{wrong}");
        }
        assert!(app_name("pilot").is_ok() && app_name("").is_err() && app_name("a b").is_err());
        assert!(app_name(&"x".repeat(49)).is_err());
    }
}
