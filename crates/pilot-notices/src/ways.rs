//! How a message gets to where people are: posted to a chat, or mailed.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use pilot_core::leak::LeakGuard;
use pilot_core::limits::NOTICE_DEADLINE;
use pilot_setup::config::{Config, Notice, NoticeKind};
use pilot_setup::error::StartError;
use pilot_setup::secret_line;
use pilot_wire::outgoing::{Outgoing, Reach, Receipt, Target};
use zeroize::Zeroizing;

use crate::mail::{self, MailError, MailServer, Mailer};
use crate::message::Message;
use crate::{slack, teams};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a message did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undelivered {
    /// It never will: trying again would change nothing.
    Refused(String),
    Failed {
        said: String,
        retry_after: Option<Duration>,
    },
}

pub(crate) type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), Undelivered>> + Send + 'a>>;

pub(crate) trait Way: Send + Sync {
    /// `to` is an address, if the way needs one. `id` has letters, digits, dots and hyphens, and is the same for every
    /// attempt.
    fn send<'a>(&'a self, to: Option<&'a str>, message: &'a Message, id: &'a str) -> Sending<'a>;
}

/// A notice's files have been read.
pub(crate) struct Opened {
    pub(crate) way: Arc<Channel>,
    /// Where it goes, without what is secret.
    pub(crate) shown: String,
    secret: Option<Zeroizing<String>>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) enum Channel {
    Chat {
        kind: NoticeKind,
        target: Target,
        reach: Reach,
        outgoing: Outgoing,
    },
    /// With the domain of the sender, which every message id ends with.
    Mail(Mailer, String),
}

impl Opened {
    pub(crate) fn open(config: &Config, notice: &Notice) -> Result<Opened, StartError> {
        let refused = |what: String| StartError::Refused(format!("notice `{}`: {what}", notice.name));
        let mut warnings = Vec::new();
        let mut read = |path: &PathBuf| secret_line::read(config, path, &mut warnings);
        if let Some(path) = &notice.url_file {
            let (url, reach) = (read(path).map_err(refused)?, notice.reach());
            let target = Target::parse(&url, &reach).map_err(|error| refused(format!("its address {error}")))?;
            let outgoing = Outgoing::new(target.is_https(), notice.ca_file.as_deref());
            let outgoing = outgoing.map_err(|error| refused(error.to_string()))?;
            let shown = target.shown();
            let way = Channel::Chat { kind: notice.kind, target, reach, outgoing };
            return Ok(Opened { way: Arc::new(way), shown, secret: Some(url), warnings });
        }
        let (host, port) = notice.mail_server().ok_or_else(|| refused("server: is missing".to_owned()))?;
        let password = notice.password_file.as_ref().map(&mut read).transpose().map_err(refused)?;
        let server = MailServer {
            host: host.to_owned(),
            port,
            tls: notice.tls,
            login: notice.user.clone().zip(password.clone()),
            from: notice.from.clone().unwrap_or_default(),
            ca_file: notice.ca_file.clone(),
        };
        let mailer = Mailer::open(&server).map_err(|error| refused(error.to_string()))?;
        let from = server.from.trim_end_matches('>').rsplit_once('@');
        let is_plain = |domain: &str| domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        let domain = from.map(|(_, domain)| domain).filter(|domain| domain.len() <= 100 && is_plain(domain));
        let domain = domain.unwrap_or("pilot.invalid").to_owned();
        Ok(Opened {
            way: Arc::new(Channel::Mail(mailer, domain)),
            shown: format!("{host}:{port}"),
            secret: password,
            warnings,
        })
    }

    /// From then on what is secret is found wherever tokens are looked for.
    pub(crate) fn make_known(&self, guard: &LeakGuard) {
        if let Some(secret) = &self.secret {
            secret_line::remember(secret, guard);
        }
    }
}

impl Way for Channel {
    fn send<'a>(&'a self, to: Option<&'a str>, message: &'a Message, id: &'a str) -> Sending<'a> {
        match self {
            Channel::Chat { kind, target, reach, outgoing } => Box::pin(async move {
                let body = if *kind == NoticeKind::Teams { teams::body(message) } else { slack::body(message) };
                let (headers, body) = ([(CONTENT_TYPE, JSON)], Bytes::from(body.to_string()));
                match outgoing.deliver(target, reach, &headers, body, NOTICE_DEADLINE).await {
                    Ok(Receipt { status, .. }) if (200..300).contains(&status) => Ok(()),
                    // About the message itself, which would be the same at the next attempt.
                    Ok(Receipt { status: status @ (400 | 413 | 422), .. }) => {
                        Err(Undelivered::Refused(format!("answered {status}")))
                    }
                    Ok(Receipt { status, retry_after }) => {
                        Err(Undelivered::Failed { said: format!("answered {status}"), retry_after })
                    }
                    Err(error) => Err(Undelivered::Failed { said: error.to_string(), retry_after: None }),
                }
            }),
            Channel::Mail(mailer, domain) => Box::pin(async move {
                let id = format!("{id}@{domain}");
                let sent = mailer.send(to.unwrap_or_default(), &mail::letter(message), &id, NOTICE_DEADLINE).await;
                sent.map_err(|error| match error {
                    MailError::Refused(said) => Undelivered::Refused(said),
                    other => Undelivered::Failed { said: other.to_string(), retry_after: None },
                })
            }),
        }
    }
}
