//! Reports the service's state to its supervisor: systemd's notification protocol, one datagram per message.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use crate::environment::Environment;

/// How long a message may wait for a busy supervisor.
const PATIENCE: Duration = Duration::from_millis(200);

/// Does nothing unless the environment names a socket. A service that cannot notify still serves.
#[derive(Clone, Default)]
pub(crate) struct Supervisor {
    socket: Option<Arc<UnixDatagram>>,
    ping_every: Option<Duration>,
}

impl Supervisor {
    /// Faults in the variables are logged: the supervisor will notice when it receives nothing.
    pub(crate) fn find(environment: &Environment) -> Supervisor {
        let Some(name) = environment.get("NOTIFY_SOCKET") else { return Supervisor::default() };
        let socket = match connect(name) {
            Ok(socket) => Some(Arc::new(socket)),
            Err(error) => {
                tracing::warn!(error = %error, "NOTIFY_SOCKET is set, but cannot be used");
                None
            }
        };
        Supervisor { socket, ping_every: ping_every(environment, std::process::id()) }
    }

    pub(crate) fn starting(&self) {
        self.tell("STATUS=starting: reading credentials, definitions and the ledger");
    }

    /// From now on connections are accepted. `announcement` is the line of standard output.
    pub(crate) fn ready(&self, announcement: &str) {
        self.tell(&format!("READY=1\nSTATUS={announcement}"));
    }

    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping: requests in progress are finished");
    }

    /// Keeps notifying that the serving runtime is alive, for as long as that is true and `is_alive` says so.
    pub(crate) fn keep_informed(&self, is_alive: impl Fn() -> bool + Send + 'static) {
        let Some(every) = self.ping_every else { return };
        let supervisor = self.clone();
        tokio::spawn(async move {
            let mut pings = tokio::time::interval(every);
            loop {
                pings.tick().await;
                if is_alive() {
                    supervisor.tell("WATCHDOG=1");
                }
            }
        });
    }

    fn tell(&self, message: &str) {
        let sent = self.socket.as_ref().map(|socket| socket.send(message.as_bytes()));
        if let Some(Err(error)) = sent {
            tracing::warn!(error = %error, "the supervisor could not be notified");
        }
    }
}

/// A name that begins with `@` is not in the file system.
fn connect(name: &str) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None if name.starts_with('/') => SocketAddr::from_pathname(name)?,
        None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name begins with neither / nor @")),
    };
    let socket = UnixDatagram::unbound()?;
    // A few messages wait in the kernel. A supervisor that reads none of them must not delay callers.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

/// Twice within the supervisor's timeout; never if it watches another process.
fn ping_every(environment: &Environment, own_id: u32) -> Option<Duration> {
    let micros = environment.get("WATCHDOG_USEC")?;
    if environment.get("WATCHDOG_PID").is_some_and(|id| id != own_id.to_string()) {
        return None;
    }
    let micros = micros.parse().ok().filter(|micros| *micros >= 2);
    if micros.is_none() {
        tracing::warn!("WATCHDOG_USEC is set, but is not a number of microseconds; the watchdog is not notified");
    }
    micros.map(|micros| Duration::from_micros(micros) / 2)
}
