//! `[store]`: which engine keeps the ledger, and how to get in.

use std::path::{Path, PathBuf};

use pilot_store::postgres::Access;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "StoreSection")]
#[schemars(with = "StoreSection")]
pub struct Store {
    pub url: String,
    pub password_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub client_certificate: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a section")]
struct StoreSection {
    /// `sqlite:` and the database file, relative to `data_dir`; or `postgres://user@host/database`, without a password.
    /// Several hosts are separated by commas. TLS is used unless every host is this machine, and the server's
    /// certificate is always verified; `?sslmode=disable` turns TLS off, which production allows only on this machine.
    #[serde(default, deserialize_with = "url")]
    #[schemars(extend("default" = Store::default().url))]
    url: Option<String>,
    /// A file with the password for PostgreSQL: one line, mode 0600. It is read for every connection. In production the
    /// password is bound to the TLS connection; add `?channel_binding=disable` to the URL if the server's certificate has
    /// an Ed25519 signature, which does not support that.
    #[schemars(extend("format" = "path"))]
    password_file: Option<PathBuf>,
    /// The certificate authorities that may issue the certificate of the PostgreSQL server. A PEM file; without it, the
    /// system's are trusted.
    #[schemars(extend("format" = "path"))]
    ca_file: Option<PathBuf>,
    /// A client certificate to show to PostgreSQL, instead of a password or in addition to one. A PEM file; needs
    /// `client_key`.
    #[schemars(extend("format" = "path"))]
    client_certificate: Option<PathBuf>,
    /// The private key of the client certificate. An unencrypted PEM file with mode 0600.
    #[schemars(extend("format" = "path"))]
    client_key: Option<PathBuf>,
}

impl Default for Store {
    fn default() -> Self {
        let url = "sqlite:pilot.db".into();
        Store { url, password_file: None, ca_file: None, client_certificate: None, client_key: None }
    }
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let url = String::deserialize(deserializer)?;
    let store = Store { url, ..Store::default() };
    match store.fault() {
        None => Ok(Some(store.url)),
        Some(fault) => Err(D::Error::custom(fault)),
    }
}

impl TryFrom<StoreSection> for Store {
    type Error = String;

    fn try_from(section: StoreSection) -> Result<Store, String> {
        let StoreSection { url, password_file, ca_file, client_certificate, client_key } = section;
        let is_given = url.is_some();
        let url = url.unwrap_or_else(|| Store::default().url);
        let store = Store { url, password_file, ca_file, client_certificate, client_key };
        // If it is not given here, it may be in the environment.
        match store.fault().filter(|_| is_given) {
            None => Ok(store),
            Some(fault) => Err(fault),
        }
    }
}

impl Store {
    pub(super) fn fault(&self) -> Option<String> {
        if let Some(access) = self.postgres() {
            return access.check().err().map(|error| error.to_string());
        }
        if !self.url.starts_with("sqlite:") {
            let forms = "\"sqlite:pilot.db\" or \"postgres://user@host/database\"";
            return Some(format!("store.url: is not the address of a store; write {forms}"));
        }
        let set = self.files().into_iter().find(|(_, file)| file.is_some());
        set.map(|(name, _)| {
            format!("store.{name}: is for a PostgreSQL database; remove it, or set store.url to the database")
        })
    }

    /// Access to the database, if the ledger is in one.
    pub(super) fn postgres(&self) -> Option<Access> {
        let Store { url, password_file, ca_file, client_certificate, client_key } = self.clone();
        let is_postgres = ["postgres:", "postgresql:"].iter().any(|scheme| url.starts_with(scheme));
        is_postgres.then_some(Access {
            url,
            password_file,
            ca_file,
            client_certificate,
            client_key,
            binds_channel: false,
        })
    }

    fn files(&self) -> [(&'static str, &Option<PathBuf>); 4] {
        [
            ("password_file", &self.password_file),
            ("ca_file", &self.ca_file),
            ("client_certificate", &self.client_certificate),
            ("client_key", &self.client_key),
        ]
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        for file in [&mut self.password_file, &mut self.ca_file, &mut self.client_certificate, &mut self.client_key] {
            *file = file.as_ref().map(|path| base.join(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, environment: &[(&str, &str)], expected: &Expect) {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let verdict = match Config::parse(Path::new("pilot.toml"), text, &environment) {
            Ok(config) => match config.postgres() {
                None => config.store.url,
                Some(access) => format!("{}; {:?}", access.place().unwrap(), access.password_file),
            },
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn the_ledger_is_in_a_file_or_in_a_database() {
        check("[store]", &[], &expect!["sqlite:pilot.db"]);
        check("[store]\nurl = 'sqlite:other.db'", &[], &expect!["sqlite:other.db"]);
        check("[store]\nurl = 'postgres://u@localhost/d'", &[], &expect!["postgres://localhost:5432/d; None"]);
        check(
            "[store]\nurl = 'postgresql://u@db1,db2:5433/d'\npassword_file = 'p'",
            &[],
            &expect![[r#"postgres://db1:5432,db2:5433/d, with TLS; Some("p")"#]],
        );
        check(
            "[store]\npassword_file = 'p'",
            &[("PILOT_STORE__URL", "postgres://u@db/d")],
            &expect![[r#"postgres://db:5432/d, with TLS; Some("p")"#]],
        );
    }

    #[test]
    fn an_address_that_cannot_be_used_is_refused_with_its_line() {
        for url in ["mysql://u:hunter2@db/d", "pilot.db", "sqlite3:x", ""] {
            check(
                &format!("[store]\nurl = '{url}'"),
                &[],
                &expect![[
                    r#"pilot.toml, line 2, column 7: store.url: is not the address of a store; write "sqlite:pilot.db" or "postgres://user@host/database""#
                ]],
            );
        }
        check(
            "[store]\nurl = 'postgres://u:hunter2@db/d'",
            &[],
            &expect![
                "pilot.toml, line 2, column 7: store.url: has a password in it; remove it, and name a private file in store.password_file"
            ],
        );
        check(
            "",
            &[("PILOT_STORE__URL", "postgres://u:hunter2@db/d")],
            &expect![
                "the environment overrides the configuration with an invalid value: store.url: has a password in it; remove it, and name a private file in store.password_file (set by PILOT_STORE__URL)"
            ],
        );
        check(
            "[store]\nurl = 'postgres:/db/d'",
            &[],
            &expect!["pilot.toml, line 2, column 7: store.url: does not begin with postgres:// or postgresql://"],
        );
        check(
            "[store]\nurl = 'postgres://u@db/d?sslmode=prefer'",
            &[],
            &expect![
                "pilot.toml, line 2, column 7: store.url: with sslmode=prefer, anyone on the network path can turn TLS off; write sslmode=require"
            ],
        );
    }

    #[test]
    fn files_for_a_database_need_one() {
        for name in ["password_file", "ca_file", "client_certificate", "client_key"] {
            let text = format!("[store]\nurl = 'sqlite:pilot.db'\n{name} = 'f'");
            let error = Config::parse(Path::new("pilot.toml"), &text, &[]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("pilot.toml, line 1, column 1: store.{name}: is for a")), "{error}");
        }
        check(
            "[store]\npassword_file = 'p'",
            &[],
            &expect![
                "pilot.toml: store.password_file: is for a PostgreSQL database; remove it, or set store.url to the database"
            ],
        );
        check(
            "[store]\nurl = 'postgres://u@db/d'\nclient_key = 'k'",
            &[],
            &expect!["pilot.toml, line 1, column 1: store.client_key: needs store.client_certificate"],
        );
        check(
            "[store]\nurl = 'postgres://u@db/d?sslmode=disable'\nca_file = 'c'",
            &[],
            &expect![
                "pilot.toml, line 1, column 1: store.url: sslmode=disable, but ca_file, client_certificate and client_key are for TLS"
            ],
        );
    }
}
