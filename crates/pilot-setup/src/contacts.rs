//! How people are reached. It is in a file of the operator's and nowhere else: neither ledger nor evidence has addresses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pilot_core::actor::ActorId;
use pilot_core::limits::{CONTACT_CHARS_MAX, CONTACTS_MAX};
use serde::Deserialize;

use crate::config::{Hours, Zone};
use crate::private_file::{self, FileError, Others};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contacts(BTreeMap<ActorId, Contact>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contact {
    pub mail: Option<String>,
    /// The member id that Slack shows in a profile.
    pub slack: Option<String>,
    /// The address with which the person signs in to Teams.
    pub teams: Option<String>,
    pub quiet_hours: Option<Hours>,
    pub time_zone: Option<Zone>,
    /// Told only when those who are told first have let half of the time pass, or when none of them can act.
    #[serde(default)]
    pub backup: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ContactsError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: {what}", path.display())]
    Content { path: PathBuf, what: String },
}

impl Contacts {
    pub fn of(&self, actor: &ActorId) -> Option<&Contact> {
        self.0.get(actor)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ActorId, &Contact)> {
        self.0.iter()
    }

    /// Also what is said if others can read the file although they should not.
    pub fn read(path: &Path, others: Others) -> Result<(Contacts, Option<String>), ContactsError> {
        let file = private_file::read(path, others)?;
        let content = |what: String| ContactsError::Content { path: path.to_owned(), what };
        let text = String::from_utf8(file.bytes).map_err(|_| content("is not text".to_owned()))?;
        let contacts = Contacts::parse(&text).map_err(content)?;
        Ok((contacts, file.exposed.map(|exposed| exposed.to_string())))
    }

    fn parse(text: &str) -> Result<Contacts, String> {
        // The whole of the library's message quotes the line, which has somebody's address.
        let sections: BTreeMap<String, Contact> = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            format!("line {}: {}", before.matches('\n').count() + 1, error.message())
        })?;
        if sections.len() > CONTACTS_MAX {
            return Err(format!("there are {} contacts, and at most {CONTACTS_MAX} are allowed", sections.len()));
        }
        let one = |(name, contact): (String, Contact)| {
            let actor: ActorId = name.parse().map_err(|error| format!("[{name}]: {error}"))?;
            contact.fault().map_or(Ok((actor, contact)), |fault| Err(format!("[{name}].{fault}")))
        };
        sections.into_iter().map(one).collect::<Result<_, _>>().map(Contacts)
    }
}

impl Contact {
    fn fault(&self) -> Option<&'static str> {
        let is_member = |id: &String| {
            let is_sign = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
            (3..=21).contains(&id.len()) && id.starts_with(['U', 'W']) && id.bytes().all(is_sign)
        };
        match self {
            Contact { mail: Some(mail), .. } if !is_address(mail) => Some("mail: is not an address"),
            Contact { teams: Some(teams), .. } if !is_address(teams) => Some("teams: is not an address"),
            Contact { slack: Some(id), .. } if !is_member(id) => {
                Some("slack: is not a member id, such as U024BE7LH; it is in the person's profile")
            }
            _ => None,
        }
    }
}

/// One address in its plain form, without a name, quotes or comments.
fn is_address(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    text.len() <= CONTACT_CHARS_MAX
        && text.split_once('@').is_some_and(|(local, host)| {
            !local.is_empty() && !host.is_empty() && local.bytes().all(is_sign) && host.bytes().all(is_host)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_actor_has_the_addresses_that_the_file_says() {
        let text = "[ana]\nmail = 'ana@example.com'\nslack = 'U024BE7LH'\n\
                    [ben]\nteams = 'ben@example.com'\nbackup = true\nquiet_hours = '22:00-06:00'\n\
                    time_zone = 'America/New_York'\n";
        let contacts = Contacts::parse(text).unwrap();
        assert_eq!(contacts.of(&"ana".parse().unwrap()).unwrap().mail.as_deref(), Some("ana@example.com"));
        let ben = contacts.of(&"ben".parse().unwrap()).unwrap();
        assert!(ben.backup && ben.quiet_hours.is_some() && contacts.of(&"cat".parse().unwrap()).is_none());
    }

    #[test]
    fn a_fault_is_named_with_its_place_and_quotes_no_address() {
        for (text, why) in [
            ("[ana]\nmail = 'a b@example.com'", "[ana].mail: is not an address"),
            ("[ana]\nmail = 'a@b@example.com'", "[ana].mail: is not an address"),
            ("[ana]\nmail = \"a@example.com\\r\\nBcc: x@example.com\"", "[ana].mail: is not an address"),
            ("[ana]\nslack = '!channel'", "[ana].slack: is not a member id"),
            ("[ana]\nphone = 'ana@example.com'", "line 2: unknown field `phone`"),
            ("[ana]\nmail = 'ana@example.com'\n[ana]\n", "line 3: duplicate key"),
            ("['a b']\nmail = 'ana@example.com'", "[a b]: "),
        ] {
            let said = Contacts::parse(text).unwrap_err();
            assert!(said.contains(why) && !said.contains("example.com"), "{why}: {said}");
        }
        let many: String = (0..=CONTACTS_MAX).map(|number| format!("[a{number}]\n")).collect();
        assert!(Contacts::parse(&many).unwrap_err().contains("at most 1000 are allowed"));
    }
}
