//! The sections `[[notices]]`: where people are told that something waits for them.

use std::path::{Path, PathBuf};

use pilot_core::limits::{NOTICES_MAX, WEBHOOK_NAME_CHARS_MAX};
use pilot_core::role::Role;
use pilot_wire::outgoing::Reach;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hours::{Hours, TimeOfDay, Zone};
use super::network::{Network, Networks};
use super::webhooks::{Detail, name, networks, reach};

/// A chat, or mail, by which people are told that something waits for them. At most 8.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// Names it, and its place in the ledger, which survives a change of every other key: 1 to 40 lower-case letters,
    /// digits and hyphens.
    #[serde(deserialize_with = "name")]
    #[schemars(with = "String")]
    pub name: String,
    /// `slack` for Slack, Mattermost and others that take the same messages, `teams` for Microsoft Teams, `mail` for SMTP.
    pub kind: NoticeKind,
    /// A private file with the address of the chat's incoming webhook. It is never logged or shown.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub url_file: Option<PathBuf>,
    /// The mail server, such as `smtp.example.com` or `smtp.example.com:465`.
    #[serde(default)]
    pub server: Option<String>,
    /// `starttls` (port 587) and `implicit` (port 465) encrypt; `off` (port 25) is for a server on this machine only.
    #[serde(default)]
    pub tls: MailTls,
    /// The account at the mail server, with `password_file`.
    #[serde(default)]
    pub user: Option<String>,
    /// A private file with the password of that account.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub password_file: Option<PathBuf>,
    /// Whom mail comes from, such as `Pilot <pilot@example.com>`.
    #[serde(default)]
    pub from: Option<String>,
    /// Certificate authorities to trust for it, in addition to the system's. A PEM file.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// Networks in which a chat may be although they are not public.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(with = "Networks", extend("default" = Vec::<String>::new()))]
    pub allow_addresses: Vec<Network>,
    /// Ports of a chat that may be reached besides 443.
    #[serde(default)]
    pub allow_ports: Vec<u16>,
    /// Whether the address of a chat may begin with `http://`. Only to addresses in `allow_addresses`.
    #[serde(default)]
    pub allow_http: bool,
    /// Only items of these workflows. An empty list means all.
    #[serde(default)]
    pub workflows: Vec<String>,
    /// Only what waits for one of these roles. An empty list means all.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub waits_for: Vec<Role>,
    /// `full` shows the title of an item; `thin` shows its id.
    #[serde(default = "full")]
    pub detail: Detail,
    /// When nobody is to be disturbed, such as `20:00-07:00`. What is urgent is sent all the same.
    #[serde(default)]
    pub quiet_hours: Option<Hours>,
    /// The time zone of these hours, such as `Europe/Berlin`, and of the times in messages. A contact can have its own.
    #[serde(default)]
    pub time_zone: Zone,
    /// When everything that still waits is summarised, once a day, such as `08:00`.
    #[serde(default)]
    pub summary_at: Option<TimeOfDay>,
    /// Workflows whose items are always urgent. An item whose payload has the `risk` `high` is urgent too.
    #[serde(default = "emergencies")]
    pub urgent_workflows: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    Slack,
    Teams,
    Mail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum MailTls {
    // Required, never only offered.
    #[default]
    #[serde(rename = "starttls")]
    StartTls,
    Implicit,
    // Only to a server on this machine.
    Off,
}

impl MailTls {
    const fn port(self) -> u16 {
        match self {
            MailTls::StartTls => 587,
            MailTls::Implicit => 465,
            MailTls::Off => 25,
        }
    }
}

fn full() -> Detail {
    Detail::Full
}

fn emergencies() -> Vec<String> {
    vec!["emergency-operation".to_owned()]
}

impl Notice {
    /// Where a chat may be, besides public addresses by https.
    pub fn reach(&self) -> Reach {
        reach(&self.allow_addresses, &self.allow_ports, self.allow_http)
    }

    /// Host and port of the mail server.
    pub fn mail_server(&self) -> Option<(&str, u16)> {
        let server = self.server.as_deref()?;
        let is_bare = server.ends_with(']') || !server.contains(':');
        let (host, port) = match server.rsplit_once(':').filter(|_| !is_bare) {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0)?),
            None => (server, self.tls.port()),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_sound = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        is_sound.then_some((host, port))
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        for file in [&mut self.url_file, &mut self.password_file, &mut self.ca_file] {
            *file = file.as_ref().map(|path| base.join(path));
        }
    }

    fn fault(&self) -> Option<&'static str> {
        let is_mail = self.kind == NoticeKind::Mail;
        let of_mail =
            self.server.is_some() || self.user.is_some() || self.password_file.is_some() || self.from.is_some();
        let of_chat = self.url_file.is_some() || !self.allow_addresses.is_empty() || !self.allow_ports.is_empty();
        match () {
            () if is_mail && of_chat => Some("url_file: is for chats, and this is mail"),
            () if !is_mail && of_mail => Some("server: is for mail, and this is a chat"),
            () if !is_mail && self.url_file.is_none() => Some("url_file: a chat needs one"),
            () if is_mail && self.from.is_none() => {
                Some("from: mail needs a sender, such as Pilot <pilot@example.com>")
            }
            () if is_mail && self.mail_server().is_none() => {
                Some("server: mail needs one, such as smtp.example.com or smtp.example.com:465")
            }
            () if self.user.is_some() != self.password_file.is_some() => {
                Some("user: needs password_file, and vice versa")
            }
            () if self.allow_http && self.allow_addresses.is_empty() => {
                Some("allow_http: needs allow_addresses, the networks in which plain HTTP is allowed")
            }
            () => None,
        }
    }
}

/// What is wrong with them, each and together.
pub(super) fn faults(notices: &[Notice], has_contacts: bool) -> Vec<String> {
    let mut faults = Vec::new();
    if notices.len() > NOTICES_MAX {
        faults.push(format!("notices: there are {}, and at most {NOTICES_MAX} are allowed", notices.len()));
    }
    for (at, notice) in notices.iter().enumerate() {
        if notices.iter().take(at).any(|earlier| earlier.name == notice.name) {
            faults.push(format!("notices[{at}].name: is given twice; each has its own place in the ledger"));
        }
        if notice.kind == NoticeKind::Mail && !has_contacts {
            faults.push(format!("notices[{at}].kind: mail needs contacts_file, which has the addresses"));
        }
        faults.extend(notice.fault().map(|fault| format!("notices[{at}].{fault}")));
    }
    faults
}

const _: () = assert!(WEBHOOK_NAME_CHARS_MAX == 40, "the text of `name` says so");

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const CHAT: &str = "[[notices]]\nname = 'ops'\nkind = 'slack'\nurl_file = 'ops.url'\n";
    const MAIL: &str = "contacts_file = 'contacts.toml'\n[[notices]]\nname = 'mail'\nkind = 'mail'\n\
                        server = 'smtp.example.com'\nfrom = 'Pilot <pilot@example.com>'\n";

    fn read(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("pilot.toml"), text, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_chat_needs_an_address_in_a_file_and_mail_a_server_a_sender_and_contacts() {
        let config = read(CHAT).unwrap();
        let chat = &config.notices[0];
        assert_eq!((chat.detail, chat.urgent_workflows.as_slice()), (Detail::Full, &emergencies()[..]));
        let server = |more: &str| read(&format!("{MAIL}{more}")).unwrap().notices[0].clone();
        assert_eq!(server("").mail_server(), Some(("smtp.example.com", 587)));
        assert_eq!(server("tls = 'implicit'").mail_server(), Some(("smtp.example.com", 465)));
        let with = |text: &str| {
            server("").mail_server().is_some() && {
                let notice = Notice { server: Some(text.to_owned()), ..server("") };
                notice.mail_server() == Some(("::1", 2525))
            }
        };
        assert!(with("[::1]:2525"));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        let chat = |more: &str| format!("{CHAT}{more}");
        let mail = |more: &str| format!("{MAIL}{more}");
        for (text, why) in [
            (chat("from = 'x'"), "notices[0].server: is for mail, and this is a chat"),
            (CHAT.replace("url_file = 'ops.url'", ""), "notices[0].url_file: a chat needs one"),
            (chat("allow_http = true"), "notices[0].allow_http: needs allow_addresses"),
            (chat("quiet_hours = '8-9'"), "must be a time of day"),
            (chat("time_zone = 'Nowhere'"), "is not a time zone that is known here"),
            (chat("summary_at = 'noon'"), "must be a time of day"),
            (chat(CHAT), "notices[1].name: is given twice"),
            (chat("waits_for = ['boss']"), "is not known"),
            (mail("user = 'pilot'"), "notices[0].user: needs password_file"),
            (mail("url_file = 'x'"), "notices[0].url_file: is for chats"),
            (MAIL.replace("contacts_file = 'contacts.toml'", ""), "mail needs contacts_file"),
            (MAIL.replace("smtp.example.com'", "smtp.example.com:0'"), "notices[0].server: mail needs one"),
            (
                MAIL.replace("kind = 'mail'", "kind = 'pigeon'"),
                "is not known, expected one of `slack`, `teams`, `mail`",
            ),
        ] {
            let said = read(&text).err().unwrap_or_default();
            assert!(said.contains(why), "{why}: {said}");
        }
    }
}
