//! The options of `pilot log follow`, and the destination they name.

use std::path::PathBuf;

use http::uri::Authority;
use pilot_wire::outgoing::{Issuers, Lines, Pair};

use super::destination::Destination;
use super::file::EntryFile;
use super::message::{Facility, Frame, app_name, sd_id};
use super::syslog::Syslog;
use crate::client::{ClientArguments, tls};
use crate::exit::Failure;

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("destination").required(true)))]
pub(crate) struct Arguments {
    /// Append each entry to this file, as a line of JSON. It may be renamed at any time: then it is created again
    #[arg(long, value_name = "FILE", group = "destination")]
    to_file: Option<PathBuf>,
    /// Write each entry to standard output, as a line of JSON, for a program that reads it through a pipe
    #[arg(long, group = "destination")]
    to_stdout: bool,
    /// Send each entry to this syslog server, over TLS
    #[arg(long, value_name = "HOST:PORT", group = "destination", value_parser = host_and_port)]
    to_syslog: Option<Authority>,
    /// The issuer of the syslog server's certificate, in PEM [default: those the system trusts]
    #[arg(long, value_name = "FILE", requires = "to_syslog")]
    syslog_ca_file: Option<PathBuf>,
    /// The certificate to show to the syslog server, in PEM, if it asks for one
    #[arg(long, value_name = "FILE", requires = "to_syslog", requires = "syslog_key")]
    syslog_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "syslog_cert")]
    syslog_key: Option<PathBuf>,
    /// The facility of syslog messages
    #[arg(long, value_enum, default_value_t = Facility::Audit, hide_possible_values = true)]
    facility: Facility,
    /// The name of the application in syslog messages
    #[arg(long, value_name = "NAME", default_value = "pilot", value_parser = app_name)]
    app_name: String,
    /// The name of the structured data in syslog messages: a name, @ and your private enterprise number
    #[arg(long, value_name = "ID", default_value = "pilot@32473", value_parser = sd_id)]
    sd_id: String,
    /// The directory that keeps how far it has come; created at the first run
    #[arg(long, value_name = "DIR")]
    pub(super) state: PathBuf,
    /// Where the first run begins: an index, start or now. Later runs go on where the last one ended
    #[arg(long, value_name = "INDEX", default_value = "start", value_parser = begin)]
    pub(super) from: Begin,
    /// A file to write metrics to, for the textfile collector of Prometheus
    #[arg(long, value_name = "FILE")]
    pub(super) metrics: Option<PathBuf>,
    #[command(flatten)]
    pub(super) client: ClientArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    Start,
    Now,
    Index(u64),
}

fn begin(text: &str) -> Result<Begin, String> {
    match text {
        "start" => Ok(Begin::Start),
        "now" => Ok(Begin::Now),
        _ => text.parse().map(Begin::Index).map_err(|_| "must be the index of an entry, start or now".into()),
    }
}

fn host_and_port(text: &str) -> Result<Authority, String> {
    let authority = text.parse::<Authority>().ok();
    let complete = authority.filter(|named| named.port_u16().is_some() && !named.as_str().contains('@'));
    complete.ok_or_else(|| "must be a host and a port, as in syslog.example:6514".into())
}

impl Arguments {
    /// `log` is the name of the log that is followed.
    pub(super) fn destination(&self, log: &str) -> Result<Destination, Failure> {
        if let Some(path) = &self.to_file {
            return Ok(Destination::File(EntryFile::new(path.clone())));
        }
        let Some(server) = &self.to_syslog else { return Ok(Destination::Stdout) };
        let issuers = self.syslog_ca_file.as_deref().map_or(Issuers::SystemAnd(None), Issuers::Only);
        let own = match (&self.syslog_cert, &self.syslog_key) {
            (Some(certificate), Some(key)) => Some(Pair { certificate: certificate.clone(), key: key.clone() }),
            _ => None,
        };
        let host = server.host().trim_matches(['[', ']']);
        let port = server.port_u16().unwrap_or_default();
        let lines = Lines::new(host, port, &issuers, own.as_ref()).map_err(tls::refused)?;
        let frame = Frame {
            facility: self.facility,
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            app_name: self.app_name.clone(),
            sd_id: self.sd_id.clone(),
            log: log.to_owned(),
        };
        let syslog = Syslog::new(server.to_string(), lines, frame);
        Ok(Destination::Syslog(Box::new(syslog)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_an_index_or_one_of_two_words() {
        assert_eq!([begin("start"), begin("now"), begin("7")], [Ok(Begin::Start), Ok(Begin::Now), Ok(Begin::Index(7))]);
        assert!(begin("-1").is_err() && begin("end").is_err());
    }

    #[test]
    fn a_syslog_server_is_named_with_its_port() {
        assert!(host_and_port("syslog.example:6514").is_ok() && host_and_port("[::1]:6514").is_ok());
        for wrong in ["syslog.example", "a@b:1", "x:99999", "x:", "tls://x:1", ""] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
