//! Where the database is, and how to get in.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};

use crate::{Result, StoreError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// What `[store]` says about a PostgreSQL database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// `postgres://user@host1,host2/database`, without a password.
    pub url: String,
    pub password_file: Option<PathBuf>,
}

#[derive(Clone)]
pub(super) struct Address {
    config: Config,
}

impl Address {
    pub(super) fn parse(access: &Access) -> Result<Address> {
        let mut config: Config = access.url.parse().map_err(|error: Error| {
            // The text is not repeated: it may have a password in it.
            StoreError::Refused(format!("store.url: is not an address of a PostgreSQL database: {error}"))
        })?;
        if config.get_password().is_some() {
            let remedy = "remove it from there, and name a private file in store.password_file";
            return Err(StoreError::Refused(format!("store.url: has a password in it; {remedy}")));
        }
        if config.get_user().is_none() || config.get_dbname().is_none() || config.get_hosts().is_empty() {
            let form = "postgres://user@host/database";
            return Err(StoreError::Refused(format!("store.url: names no user, host or database; write {form}")));
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("pilot");
        Ok(Address { config })
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

    pub(super) async fn connect(
        &self,
    ) -> std::result::Result<(Client, Connection<Socket, tokio_postgres::tls::NoTlsStream>), Error> {
        self.config.connect(NoTls).await
    }
}
