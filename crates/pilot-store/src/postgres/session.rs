//! A connection that we drive ourselves, so that no warning is missed: PostgreSQL can answer COMMIT with success and a
//! warning that no standby has it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::Severity;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row, Statement};

use super::address::Address;

/// Takes the size that a notification named.
pub(super) type Heard = Box<dyn Fn(u64) + Send>;

pub(super) type Values<'v> = [&'v (dyn ToSql + Sync)];

/// Set on every connection: a lock is not waited for indefinitely, and a node that is stopped in the middle of a
/// transaction loses its lock to the next. Keep-alives end a connection whose other side has gone.
const SETTINGS: &str = "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; \
     SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '2s'; \
     SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; \
     SET tcp_user_timeout = 10000; SET client_min_messages = warning";

/// Set on the connections of a node. All it asks can be answered by an index; but the tables begin empty and grow, so
/// what PostgreSQL has counted in them is often long out of date, and then it would read a whole table.
const PLANS: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
     SET plan_cache_mode = force_generic_plan; SET jit = off";

/// For the first words on a connection: a server that stops in the middle of them must not keep anyone.
const GREETING_TIMEOUT: Duration = Duration::from_secs(4);

/// A server that was replaced by another may go on answering queries; by this they are told apart.
pub(super) type Server = String;

const SERVER: &str = "SELECT concat_ws(' ', inet_server_addr(), inet_server_port(), pg_postmaster_start_time())";

pub(super) struct Session {
    client: Client,
    /// Few: the texts are constants, or put together from a few parts.
    statements: Mutex<HashMap<String, Statement>>,
    warned: Arc<AtomicBool>,
    /// Which server this is, and since when it runs.
    pub(super) server: Server,
    /// Its number in the address.
    pub(super) host: usize,
}

impl Session {
    /// A connection of a running node.
    pub(super) async fn open_for_node(address: &Address, heard: Option<Heard>) -> Result<Session, Error> {
        Session::greet(address, heard, &format!("{SETTINGS}; {PLANS}")).await
    }

    pub(super) async fn open(address: &Address) -> Result<Session, Error> {
        Session::greet(address, None, SETTINGS).await
    }

    /// `heard` is told of every notification that arrives on this connection, which says how long the ledger is.
    async fn greet(address: &Address, heard: Option<Heard>, settings: &str) -> Result<Session, Error> {
        let (client, mut connection, host) = address.connect().await?;
        let warned = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&warned);
        let drive = poll_fn(move |context| {
            loop {
                match ready!(connection.poll_message(context)) {
                    Some(Ok(AsyncMessage::Notice(notice))) => {
                        // What this program cannot read counts as a warning too.
                        let is_harmless = notice.parsed_severity().is_some_and(|severity| {
                            matches!(severity, Severity::Notice | Severity::Info | Severity::Log | Severity::Debug)
                        });
                        if !is_harmless {
                            tracing::warn!(cause = notice.message(), "PostgreSQL warns");
                            seen.store(true, Ordering::Release);
                        }
                    }
                    Some(Ok(AsyncMessage::Notification(notification))) => {
                        if let (Some(heard), Ok(size)) = (&heard, notification.payload().parse()) {
                            heard(size);
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Poll::Ready(()),
                }
            }
        });
        tokio::spawn(drive);
        let greeting = async {
            client.batch_execute(settings).await?;
            client.query_one(SERVER, &[]).await?.try_get(0)
        };
        let greeted = tokio::time::timeout(GREETING_TIMEOUT, greeting).await;
        let server = greeted.unwrap_or_else(|_| Err(Error::__private_api_timeout()))?;
        Ok(Session { client, statements: Mutex::default(), warned, server, host })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether a warning arrived since this was last asked.
    pub(super) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }

    /// So that sending them later takes no trip of its own.
    pub(super) async fn prepare(&self, texts: &[&'static str]) -> Result<(), Error> {
        for text in texts {
            self.prepared(text).await?;
        }
        Ok(())
    }

    async fn prepared(&self, text: &str) -> Result<Statement, Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(text).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(statements.entry(text.to_owned()).or_insert(statement).clone())
    }

    pub(super) async fn query(&self, text: &str, values: &Values<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(text).await?;
        self.client.query(&statement, values).await
    }

    pub(super) async fn query_opt(&self, text: &str, values: &Values<'_>) -> Result<Option<Row>, Error> {
        Ok(self.query(text, values).await?.into_iter().next())
    }

    pub(super) async fn execute(&self, text: &str, values: &Values<'_>) -> Result<u64, Error> {
        let statement = self.prepared(text).await?;
        self.client.execute(&statement, values).await
    }

    /// Takes rows in the binary form of COPY.
    pub(super) async fn copy_in(&self, text: &str, types: &[Type]) -> Result<BinaryCopyInWriter, Error> {
        let statement = self.prepared(text).await?;
        Ok(BinaryCopyInWriter::new(self.client.copy_in(&statement).await?, types))
    }

    pub(super) async fn run(&self, text: &str) -> Result<(), Error> {
        self.client.batch_execute(text).await
    }
}
