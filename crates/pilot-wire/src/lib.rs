//! A listener and a client for HTTP and TLS: deadlines, framing, peers, limits. Nothing here knows what is served.

pub mod body;
pub mod caps;
pub mod clock;
pub mod deadline;
pub mod exposition;
pub mod framing;
pub mod listen;
pub mod outgoing;
pub mod peer;
pub mod served;
pub mod socket_file;
pub mod tls;
pub mod traffic;
