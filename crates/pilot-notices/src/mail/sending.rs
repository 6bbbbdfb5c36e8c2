//! The way to the mail server: a connection per mail, over TLS unless the server is on this machine.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lettre::address::{Address, Envelope};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters, TlsVersion};
use lettre::transport::smtp::extension::ClientId;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use super::Letter;
use super::by_byte::ByByte;
use crate::words::shown;
use pilot_setup::config::MailTls;

/// How many characters of a server's reply are kept.
const REPLY_MAX: usize = 200;
const SUBJECT_MAX: usize = 120;
const MESSAGE_ID_MAX: usize = 200;
/// Nobody waits longer for a mail, and a deadline cannot be infinitely far away.
const PATIENCE_MAX: Duration = Duration::from_hours(1);

/// Not printable, because it contains a password.
#[derive(Clone)]
pub struct MailServer {
    pub host: String,
    pub port: u16,
    pub tls: MailTls,
    pub login: Option<(String, Zeroizing<String>)>,
    /// `pilot@example.com` or `Pilot <pilot@example.com>`.
    pub from: String,
    /// Issuers to trust in addition to the system's, in PEM.
    pub ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The configuration cannot be used; only [`Mailer::open`] says so.
    #[error("{0}")]
    Unusable(String),
    /// For good, because of this recipient or this message: another attempt would end in the same way.
    #[error("the mail was refused: {0}")]
    Refused(String),
    /// For now: another attempt may succeed.
    #[error("the mail could not be sent: {0}")]
    Failed(String),
    /// For now. The server may have accepted it nevertheless; a repeat has the same `Message-ID`.
    #[error("the mail server did not accept the mail within {0:?}")]
    TooSlow(Duration),
}

impl MailError {
    /// Whether another attempt would end in the same way.
    pub fn is_final(&self) -> bool {
        matches!(self, MailError::Unusable(_) | MailError::Refused(_))
    }
}

/// Sends mails by one server.
pub struct Mailer {
    server: MailServer,
    from: Mailbox,
    hello: ClientId,
    way: Way,
}

/// How a connection becomes one that may carry a mail, with what is needed for that.
enum Way {
    Implicit(TlsParameters),
    StartTls(TlsParameters),
    OnThisMachine,
}

impl Mailer {
    pub fn open(server: &MailServer) -> Result<Mailer, MailError> {
        let from = sender(&server.from)?;
        let way = match server.tls {
            MailTls::Implicit => Way::Implicit(trust(server)?),
            MailTls::StartTls => Way::StartTls(trust(server)?),
            MailTls::Off if is_this_machine(&server.host) => Way::OnThisMachine,
            MailTls::Off => return Err(clear_text(&server.host)),
        };
        // Not the machine's name, which is nobody's business and often not a name that a mail server accepts.
        let hello = ClientId::Domain(from.email.domain().to_owned());
        Ok(Mailer { server: server.clone(), from, hello, way })
    }

    /// `message_id` has the form `left@right`. A repeat with the same one is recognised as a repeat by those who look.
    pub async fn send(&self, to: &str, letter: &Letter, message_id: &str, patience: Duration) -> Result<(), MailError> {
        let to = recipient(to)?;
        let (envelope, bytes) = self.written(&to, letter, message_id)?;
        let deadline = Instant::now() + patience.min(PATIENCE_MAX);
        let delivered = timeout_at(deadline, self.deliver(&envelope, &bytes)).await;
        let mut connection = delivered.map_err(|_| MailError::TooSlow(patience))??;
        // The mail is accepted, however the server takes the farewell.
        let _ = timeout_at(deadline, connection.quit()).await;
        Ok(())
    }

    fn written(&self, to: &Address, letter: &Letter, message_id: &str) -> Result<(Envelope, Vec<u8>), MailError> {
        if !is_message_id(message_id) {
            return Err(refused("the message id is not of the form left@right"));
        }
        let header = |name, value: &str| HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned());
        let mail = lettre::Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to.clone()))
            .subject(shown(&letter.subject, SUBJECT_MAX))
            .message_id(Some(format!("<{message_id}>")))
            .date_now()
            // RFC 3834: nobody's absence is answered, and Exchange has a header of its own for that.
            .raw_header(header("Auto-Submitted", "auto-generated"))
            .raw_header(header("X-Auto-Response-Suppress", "All"))
            .multipart(MultiPart::alternative_plain_html(letter.text.clone(), letter.html.clone()))
            .map_err(|error| refused(&error.to_string()))?;
        Ok((mail.envelope().clone(), mail.formatted()))
    }

    async fn deliver(&self, envelope: &Envelope, mail: &[u8]) -> Result<AsyncSmtpConnection, MailError> {
        let mut connection = self.connected().await?;
        if let Some((name, password)) = &self.server.login {
            let credentials = Credentials::new(name.clone(), String::clone(password));
            let said = connection.auth(DEFAULT_MECHANISMS, &credentials).await;
            said.map_err(|error| not_logged_in(&error))?;
        }
        let sent = connection.send(envelope, mail).await;
        sent.map_err(|error| not_sent(&error, envelope))?;
        Ok(connection)
    }

    async fn connected(&self) -> Result<AsyncSmtpConnection, MailError> {
        let address = (self.server.host.as_str(), self.server.port);
        let at_once = match &self.way {
            Way::Implicit(trust) => Some(trust.clone()),
            Way::StartTls(trust) => return self.upgraded(address, trust).await,
            Way::OnThisMachine => None,
        };
        // No limit of its own: the caller's is for everything together.
        let connected = AsyncSmtpConnection::connect_tokio1(address, None, &self.hello, at_once, None).await;
        connected.map_err(|error| failed(&error))
    }

    async fn upgraded(&self, address: (&str, u16), trust: &TlsParameters) -> Result<AsyncSmtpConnection, MailError> {
        let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
        let connected = AsyncSmtpConnection::connect_with_transport(Box::new(ByByte(stream)), &self.hello).await;
        let mut connection = connected.map_err(|error| failed(&error))?;
        if !connection.can_starttls() {
            return Err(MailError::Failed("the server does not offer STARTTLS".to_owned()));
        }
        connection.starttls(trust.clone(), &self.hello).await.map_err(|error| failed(&error))?;
        Ok(connection)
    }
}

fn failed(error: &impl std::error::Error) -> MailError {
    MailError::Failed(shown(&error.to_string(), REPLY_MAX))
}

fn sender(from: &str) -> Result<Mailbox, MailError> {
    let unusable =
        || MailError::Unusable("the sender is not a mail address such as `Pilot <pilot@example.com>`".into());
    if from.chars().any(|character| character.is_control() || pilot_core::visible::is_hidden(character)) {
        return Err(unusable());
    }
    from.parse().map_err(|_| unusable())
}

/// Nothing that could end the address in a header or a command, even where the standard would allow it in quotes.
fn recipient(to: &str) -> Result<Address, MailError> {
    let not_one = || refused("the recipient's address is not a mail address");
    let ends =
        |character: char| character.is_control() || character.is_whitespace() || "<>()[],;:\\\"".contains(character);
    if to.contains(ends) {
        return Err(not_one());
    }
    to.parse().map_err(|_| not_one())
}

/// The system's issuers and those of the file; TLS 1.2 or later.
fn trust(server: &MailServer) -> Result<TlsParameters, MailError> {
    let mut builder = TlsParameters::builder(server.host.clone()).set_min_tls_version(TlsVersion::Tlsv12);
    if let Some(path) = &server.ca_file {
        builder = builder.add_root_certificate(issuers(path)?);
    }
    builder.build_rustls().map_err(|error| match &server.ca_file {
        Some(path) => unusable_file(path, &error.to_string()),
        None => MailError::Unusable(shown(&error.to_string(), REPLY_MAX)),
    })
}

fn issuers(path: &Path) -> Result<Certificate, MailError> {
    let pem = std::fs::read(path).map_err(|error| unusable_file(path, &error.to_string()))?;
    // A file without any is read as an empty list, and would leave the system's issuers only.
    if !pem.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----") {
        return Err(unusable_file(path, "it contains no PEM certificate"));
    }
    Certificate::from_pem(&pem).map_err(|error| unusable_file(path, &error.to_string()))
}

fn unusable_file(path: &Path, why: &str) -> MailError {
    MailError::Unusable(format!("`{}` cannot be used: {}", path.display(), shown(why, REPLY_MAX)))
}

fn clear_text(host: &str) -> MailError {
    MailError::Unusable(format!(
        "mail to `{}` has to use TLS: only a server on this machine may go without",
        shown(host, 60)
    ))
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn is_message_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(fits);
    id.len() <= MESSAGE_ID_MAX && id.split_once('@').is_some_and(|(left, right)| is_part(left) && is_part(right))
}

fn refused(why: &str) -> MailError {
    MailError::Refused(shown(why, REPLY_MAX))
}

/// Without the server's words, which may repeat what it was sent. It is not about a message, so never final.
fn not_logged_in(error: &SmtpError) -> MailError {
    MailError::Failed(match error.status() {
        Some(code) => format!("the server does not accept the login ({code})"),
        None if error.is_client() => "the server offers no login that is supported (PLAIN, LOGIN)".to_owned(),
        None => "the connection broke during the login".to_owned(),
    })
}

fn not_sent(error: &SmtpError, envelope: &Envelope) -> MailError {
    let mut reply = error.to_string();
    for address in envelope.to() {
        reply = reply.replace(address.as_ref() as &str, "recipient");
    }
    let reply = shown(&reply, REPLY_MAX);
    // These ask for a login or for TLS: about the configuration, and not about the message.
    let is_about_access = error.status().is_some_and(|code| matches!(u16::from(code), 530 | 534 | 535 | 538));
    if (error.is_permanent() && !is_about_access) || error.is_client() {
        MailError::Refused(reply)
    } else {
        MailError::Failed(reply)
    }
}

#[cfg(test)]
mod tests;
