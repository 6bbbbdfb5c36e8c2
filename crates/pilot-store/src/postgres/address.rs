//! Where the database is, and how to get in.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use zeroize::Zeroizing;

use super::tls::{Connector, Encrypted, Files, of_file};
use crate::{Result, StoreError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// For everything until a host has let us in.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

const PASSWORD_BYTES_MAX: u64 = 4096;

/// Settings of other clients that are files here. In a URL they would be relative to nothing in particular.
const FILES_ELSEWHERE: &[(&str, &str)] = &[
    ("passfile", "password_file"),
    ("sslrootcert", "ca_file"),
    ("sslcert", "client_certificate"),
    ("sslkey", "client_key"),
];

/// What `[store]` says about a PostgreSQL database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// `postgres://user@host1,host2/database`, without a password.
    pub url: String,
    /// Read for every connection, so that a new password needs no restart.
    pub password_file: Option<PathBuf>,
    /// Who issues the server's certificate. Without it, whom the system trusts.
    pub ca_file: Option<PathBuf>,
    pub client_certificate: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    /// With a password and TLS, the server has to prove that no other one is in between, unless the URL says otherwise.
    pub binds_channel: bool,
}

impl Access {
    /// Whether it can be used, as far as that shows without looking at the files.
    pub fn check(&self) -> Result<()> {
        Address::parse(self).map(|_| ())
    }

    /// Whether the files about TLS can be used, and there is a password in its file.
    pub fn check_files(&self) -> Result<()> {
        let Address { files, password_file, .. } = Address::parse(self)?;
        files.map_or(Ok(()), |files| files.load().map(|_| ()))?;
        password_file.map_or(Ok(()), |path| read_password(&path).map(|_| ()))
    }

    /// For people, without anything secret.
    pub fn place(&self) -> Result<String> {
        let address = Address::parse(self)?;
        let encryption = if address.files.is_some() { ", with TLS" } else { "" };
        Ok(format!("{}{encryption}", address.place()))
    }

    /// Whether others on the network path can read and change everything: there is no TLS, and a host is not this
    /// machine.
    pub fn is_exposed(&self) -> bool {
        Address::parse(self).is_ok_and(|address| address.files.is_none() && !is_here(&address.config))
    }
}

#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    /// If connections are encrypted.
    files: Option<Files>,
    password_file: Option<PathBuf>,
    /// The number of the host to try first. All connections of a node share it.
    first: Arc<AtomicUsize>,
}

impl Address {
    pub(super) fn parse(access: &Access) -> Result<Address> {
        let Options { rest, encryption, says_binding } = Options::of(&access.url)?;
        let mut config: Config = rest.parse().map_err(|error| not_an_address(&error))?;
        if config.get_password().is_some() {
            return Err(refused("has a password in it; remove it, and name a private file in store.password_file"));
        }
        if config.get_user().is_none() || config.get_dbname().is_none() || config.get_hosts().is_empty() {
            return Err(refused("needs a user, a host and a database; write postgres://user@host/database"));
        }
        let files = files(access, encryption, &config)?;
        match config.get_channel_binding() {
            ChannelBinding::Require if files.is_none() => return Err(refused("channel_binding=require needs TLS")),
            _ if access.binds_channel && access.password_file.is_some() && files.is_some() && !says_binding => {
                config.channel_binding(ChannelBinding::Require);
            }
            _ => {}
        }
        config.ssl_mode(if files.is_some() { SslMode::Require } else { SslMode::Disable });
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("pilot");
        // A host that was cut off ends its connections in time.
        config.tcp_user_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(5)).keepalives_interval(Duration::from_secs(2));
        config.keepalives_retries(3);
        Ok(Address { config, files, password_file: access.password_file.clone(), first: Arc::default() })
    }

    /// For people, without anything secret.
    pub(super) fn place(&self) -> String {
        let ports = self.config.get_ports();
        let port = |number: usize| ports.get(number).or(ports.first()).copied().unwrap_or(5432);
        let hosts = self.config.get_hosts().iter().enumerate().map(|(number, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(number)),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<_> = hosts.collect();
        format!("postgres://{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }

    /// This host takes commits: other connections need not ask one before it that may be silent.
    pub(super) fn prefer(&self, host: usize) {
        self.first.store(host, Ordering::Relaxed);
    }

    /// This host did not confirm a commit. It may have been replaced without knowing, and still call itself writable:
    /// it is tried last.
    pub(super) fn avoid(&self, host: usize) {
        self.first.store(host + 1, Ordering::Relaxed);
    }

    /// A connection, and the number of the host that it is to.
    pub(super) async fn connect(&self) -> std::result::Result<(Client, Connection<Socket, Encrypted>, usize), Error> {
        let mut config = self.config.clone();
        match self.password_file.as_deref().map(read_password).transpose() {
            Ok(Some(password)) => drop(config.password(&*password)),
            Ok(None) => {}
            // Without it, the connection fails with an error of the kind that callers know.
            Err(error) => tracing::warn!("the password for the database is not usable: {error}"),
        }
        self.connect_to_any(&config).await
    }

    /// One host after the other, each within its time: one that takes connections and never answers must not keep this
    /// node from the others.
    async fn connect_to_any(
        &self,
        config: &Config,
    ) -> std::result::Result<(Client, Connection<Socket, Encrypted>, usize), Error> {
        let (hosts, first) = (config.get_hosts().len(), self.first.load(Ordering::Relaxed));
        let mut failed = None;
        for number in (0..hosts).map(|number| (first + number) % hosts) {
            let one = only(config, number);
            match tokio::time::timeout(ANSWER_TIMEOUT, one.connect(Connector(self.files.clone()))).await {
                Ok(Ok((client, connection))) => return Ok((client, connection, number)),
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = None,
            }
        }
        Err(failed.unwrap_or_else(Error::__private_api_timeout))
    }
}

/// The same, with only this one of its hosts.
fn only(config: &Config, number: usize) -> Config {
    let mut one = Config::new();
    match config.get_hosts().get(number) {
        Some(Host::Tcp(name)) => drop(one.host(name)),
        Some(Host::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(number).or(ports.first()) {
        one.port(*port);
    }
    if let Some(address) = config.get_hostaddrs().get(number) {
        one.hostaddr(*address);
    }
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(database) = config.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding()).target_session_attrs(config.get_target_session_attrs());
    one
}

/// Neither the text nor what the library quotes of it is repeated: a password may be in there.
fn not_an_address(error: &Error) -> StoreError {
    use std::error::Error as _;
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    if cause.starts_with("unknown option") {
        return refused("has an option that is not known");
    }
    let named = cause.strip_prefix("invalid value for option ").map(|option| format!(" ({option} is invalid)"));
    let named = named.unwrap_or_default();
    refused(&format!("is not the address of a PostgreSQL database{named}; write postgres://user@host/database"))
}

fn refused(what: &str) -> StoreError {
    StoreError::Refused(format!("store.url: {what}"))
}

/// What is decided here and not by the library.
struct Options {
    /// The URL without it.
    rest: String,
    encryption: Option<Encryption>,
    says_binding: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encryption {
    Off,
    Verified,
}

impl Options {
    fn of(url: &str) -> Result<Options> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(refused("does not begin with postgres:// or postgresql://"));
        }
        let (rest, text) = url.split_once('?').unwrap_or((url, ""));
        if text.contains('@') {
            return Err(refused("has a ? or @ that is part of a value; write it as %3F or %40"));
        }
        let mut options = Options { rest: rest.to_owned(), encryption: None, says_binding: false };
        let mut separator = '?';
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
            let name = decoded(name);
            if let Some((_, setting)) = FILES_ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == name) {
                return Err(refused(&format!("has the option {name}; use store.{setting} instead")));
            }
            if name == "sslmode" {
                options.encryption = Some(encryption(&decoded(value))?);
                continue;
            }
            options.says_binding |= name == "channel_binding";
            options.rest.push(separator);
            options.rest.push_str(option);
            separator = '&';
        }
        Ok(options)
    }
}

fn encryption(mode: &str) -> Result<Encryption> {
    match mode {
        "disable" => Ok(Encryption::Off),
        // Connections that are encrypted are always verified.
        "require" | "verify-full" => Ok(Encryption::Verified),
        "prefer" | "allow" => {
            let why = "anyone on the network path can turn TLS off";
            Err(refused(&format!("with sslmode={mode}, {why}; write sslmode=require")))
        }
        _ => Err(refused("sslmode must be require, verify-full or disable")),
    }
}

fn files(access: &Access, encryption: Option<Encryption>, config: &Config) -> Result<Option<Files>> {
    let Access { ca_file, client_certificate, client_key, .. } = access;
    let has_files = [ca_file, client_certificate, client_key].iter().any(|file| file.is_some());
    let is_encrypted = match encryption {
        Some(Encryption::Off) if has_files => {
            return Err(refused("sslmode=disable, but ca_file, client_certificate and client_key are for TLS"));
        }
        Some(encryption) => encryption == Encryption::Verified,
        None => has_files || !is_here(config),
    };
    if !is_encrypted {
        return Ok(None);
    }
    if config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_))) {
        return Err(refused("TLS is not possible over a Unix socket; name the host, or leave TLS out"));
    }
    Files::new(ca_file.clone(), (client_certificate.clone(), client_key.clone())).map(Some)
}

/// Whether the database is on this machine, whichever host answers.
fn is_here(config: &Config) -> bool {
    let is_name_here = |host: &Host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        Host::Unix(_) => true,
    };
    // An address in the options is where a connection goes, and the name is whom it is meant for.
    config.get_hostaddrs().iter().all(IpAddr::is_loopback) && config.get_hosts().iter().all(is_name_here)
}

fn read_password(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let unusable = |what: &str| of_file("store.password_file", path, what);
    let mut bytes = Zeroizing::new(Vec::new());
    let read = File::open(path).and_then(|file| file.take(PASSWORD_BYTES_MAX + 1).read_to_end(&mut bytes));
    let count = read.map_err(|error| unusable(&format!("cannot be read ({error})")))?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if count as u64 > PASSWORD_BYTES_MAX || line.is_empty() || line.contains(&b'\n') {
        return Err(unusable("must contain the password on one line, and nothing else"));
    }
    Ok(Zeroizing::new(line.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(url: &str) -> Access {
        Access { url: url.to_owned(), ..Access::default() }
    }

    fn refusal(access: &Access) -> String {
        access.check().unwrap_err().to_string()
    }

    #[track_caller]
    fn check_tls(url: &str, is_expected: bool) {
        let address = Address::parse(&access(url)).unwrap();
        assert_eq!(address.files.is_some(), is_expected, "{url}");
        let mode = if is_expected { SslMode::Require } else { SslMode::Disable };
        assert_eq!(address.config.get_ssl_mode(), mode, "{url}");
    }

    #[test]
    fn tls_is_used_unless_every_host_is_this_machine() {
        for here in ["localhost", "127.0.0.1", "127.0.0.2:5433", "[::1]:5433", "%2Frun%2Fpostgresql", "127.0.0.1,[::1]"]
        {
            check_tls(&format!("postgres://u@{here}/d"), false);
        }
        check_tls("postgresql://u@localhost/d?hostaddr=127.0.0.1", false);
        for elsewhere in ["db", "10.0.0.1", "localhost,db", "db1:5433,db2:5434", "localhost.example", "[fd00::1]"] {
            check_tls(&format!("postgres://u@{elsewhere}/d"), true);
        }
        check_tls("postgres://u@localhost/d?hostaddr=10.0.0.1", true);
    }

    #[test]
    fn the_url_may_insist_on_tls_or_switch_it_off() {
        check_tls("postgres://u@localhost/d?sslmode=require", true);
        check_tls("postgres://u@db/d?sslmode=verify-full", true);
        check_tls("postgres://u@db/d?connect_timeout=5&sslmode=disable&keepalives_idle=3", false);
        check_tls("postgres://u@db/d?ssl%6Dode=disable", false);
        assert!(access("postgres://u@db/d?sslmode=disable").is_exposed());
        for protected in ["db/d", "localhost/d?sslmode=disable", "db/d?sslmode=require"] {
            assert!(!access(&format!("postgres://u@{protected}")).is_exposed(), "{protected}");
        }
    }

    #[test]
    fn a_file_about_tls_means_tls() {
        let ca_file = Some(PathBuf::from("ca.pem"));
        let with_file = |url: &str| Access { ca_file: ca_file.clone(), ..access(url) };
        assert!(Address::parse(&with_file("postgres://u@localhost/d")).unwrap().files.is_some());
        assert!(refusal(&with_file("postgres://u@localhost/d?sslmode=disable")).contains("are for TLS"));
        assert!(refusal(&with_file("postgres:///d?user=u&host=/run")).contains("Unix socket"));
        let alone = Access { client_key: ca_file.clone(), ..access("postgres://u@db/d") };
        assert_eq!(refusal(&alone), "store.client_key: needs store.client_certificate");
        let alone = Access { client_certificate: ca_file.clone(), ..access("postgres://u@db/d") };
        assert_eq!(refusal(&alone), "store.client_certificate: needs store.client_key");
    }

    #[test]
    fn an_unusable_url_is_refused_with_a_remedy_and_never_repeated() {
        for (url, expected) in [
            ("postgres://u:hunter2@db/d", "has a password in it"),
            ("postgres://u@db/d?password=hunter2", "has a password in it"),
            ("postgres://u:hun?ter2@db/d", "write it as %3F or %40"),
            ("postgres://u:hunter2@db/d?options=a@b", "write it as %3F or %40"),
            ("postgres://u:hunter2/d", "`port` is invalid"),
            ("postgres://hunter2", "needs a user, a host and a database"),
            ("postgres://db/d?hunter2=3", "has an option that is not known"),
            ("host=db user=u password=hunter2", "does not begin with postgres://"),
            ("postgres://u@db/d?sslmode=prefer", "anyone on the network path can turn TLS off; write sslmode=require"),
            ("postgres://u@db/d?sslmode=allow", "anyone on the network path can turn TLS off"),
            ("postgres://u@db/d?sslmode=hunter2", "sslmode must be require, verify-full or disable"),
            ("postgres://u@db/d?sslrootcert=hunter2", "use store.ca_file instead"),
            ("postgres://u@localhost/d?channel_binding=require", "channel_binding=require needs TLS"),
            ("postgres://u@%2Frun/d?sslmode=require", "TLS is not possible over a Unix socket"),
        ] {
            let refusal = refusal(&access(url));
            assert!(refusal.starts_with("store.url: ") && refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("hun") && !refusal.contains("ter2"), "{url}: {refusal}");
            assert!(!access(url).is_exposed());
        }
    }

    #[test]
    fn the_channel_is_bound_if_that_is_asked_for_and_the_url_does_not_say_otherwise() {
        let binding = |url: &str, password_file: Option<&str>| {
            let password_file = password_file.map(PathBuf::from);
            let access = Access { password_file, binds_channel: true, ..access(url) };
            Address::parse(&access).unwrap().config.get_channel_binding()
        };
        assert_eq!(binding("postgres://u@db/d", Some("p")), ChannelBinding::Require);
        assert_eq!(binding("postgres://u@db/d?channel_binding=disable", Some("p")), ChannelBinding::Disable);
        assert_eq!(binding("postgres://u@db/d?channel_binding=prefer", Some("p")), ChannelBinding::Prefer);
        for (url, password_file) in [("postgres://u@db/d", None), ("postgres://u@localhost/d", Some("p"))] {
            assert_eq!(binding(url, password_file), ChannelBinding::Prefer, "{url}");
        }
    }

    #[test]
    fn each_host_has_its_port_and_two_seconds() {
        let address = Address::parse(&access("postgres://u@db1,db2:5433,[::1]:5434/d")).unwrap();
        assert_eq!(address.place(), "postgres://db1:5432,db2:5433,::1:5434/d");
        assert_eq!(address.config.get_connect_timeout(), Some(&CONNECT_TIMEOUT));
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let address = Address::parse(&access("postgres://u@db/d?connect_timeout=5&target_session_attrs=any")).unwrap();
        assert_eq!(address.config.get_connect_timeout(), Some(&Duration::from_secs(5)));
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn a_password_is_one_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_password(file.path()).map(|password| password.to_vec()).map_err(|error| error.to_string())
        };
        for text in ["p w", "p w\n", "p w\r\n"] {
            assert_eq!(read(text).unwrap(), b"p w");
        }
        for text in ["", "\n", "a\nb", "a\n\n", &"a".repeat(5000)] {
            assert!(read(text).unwrap_err().ends_with("must contain the password on one line, and nothing else"));
        }
        assert!(read_password(Path::new("/nowhere")).unwrap_err().to_string().contains("/nowhere: cannot be read"));
    }
}
