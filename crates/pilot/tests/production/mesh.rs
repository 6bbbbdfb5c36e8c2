//! Behind a mesh: who is believed, and who is not.

use std::net::{IpAddr, SocketAddr, TcpStream};

use tokio::net::TcpSocket;

use crate::support::authority::{IDENTITY, MESH, ROLE_MAP, installation};
use crate::support::harness::{Server, TOKEN, bearer};
use crate::support::wire::{Response, Wire};

const TRUSTED: [u8; 4] = [127, 0, 0, 1];
const STRANGER: [u8; 4] = [127, 0, 0, 2];
const LIMITS: &str = "[rate_limits]\nanonymous_per_minute = 2\n";

/// A request from one of this machine's own addresses.
fn get_from(server: &Server, source: [u8; 4], headers: &[&str]) -> Response {
    let mut wire = Wire::over(connect_from(source, server.address));
    wire.request("GET /v1/session HTTP/1.1", headers);
    wire.response().expect("an answer")
}

fn connect_from(source: [u8; 4], address: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(IpAddr::from(source), 0)).unwrap();
        let stream = socket.connect(address).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
    })
}

#[test]
fn in_production_only_the_mesh_is_answered() {
    let (installation, _) = installation("production", &[MESH, ROLE_MAP, LIMITS, IDENTITY]);
    let server = installation.serve();
    let token = bearer(TOKEN);
    assert_eq!(get_from(&server, TRUSTED, &[&token]).verdict(), "200");
    let refused = get_from(&server, STRANGER, &[&token]);
    assert_eq!(refused.verdict(), "400 invalid_request");
    assert!(refused.text().contains("Connect through the mesh"), "{}", refused.text());
    assert_eq!(refused.header("connection"), Some("close"));
    // Whatever it says of itself.
    for claim in ["X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "Client-Cert: :MAA=:"] {
        assert_eq!(get_from(&server, STRANGER, &[&token, claim]).verdict(), "400 invalid_request");
    }
}

#[test]
fn callers_behind_the_mesh_have_budgets_of_their_own() {
    let (installation, _) = installation("production", &[MESH, ROLE_MAP, LIMITS, IDENTITY]);
    let server = installation.serve();
    let as_caller = |address: &str| get_from(&server, TRUSTED, &[&format!("X-Forwarded-For: {address}")]).status;
    let statuses = |address: &str| [as_caller(address), as_caller(address), as_caller(address)];
    assert_eq!(statuses("192.0.2.1"), [401, 401, 429]);
    assert_eq!(statuses("192.0.2.2"), [401, 401, 429]);
    // What the caller itself wrote stands further left, and counts for nothing.
    assert_eq!(as_caller("6.6.6.6, 192.0.2.1"), 429);
    assert_eq!(as_caller("192.0.2.1, 127.0.0.1"), 429);
    assert_eq!(get_from(&server, TRUSTED, &[&bearer(TOKEN), "X-Forwarded-For: 192.0.2.1"]).status, 200);
}

#[test]
fn a_stranger_cannot_take_another_address_by_naming_it() {
    let (installation, _) = installation("pilot", &[MESH, LIMITS]);
    let server = installation.serve();
    let claims = ["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2", "X-Real-IP: 192.0.2.3"];
    let statuses: Vec<_> = claims.iter().map(|claim| get_from(&server, STRANGER, &[claim]).status).collect();
    assert_eq!(statuses, [401, 401, 429], "the third request of one address, whatever it claims");
    assert_eq!(get_from(&server, TRUSTED, &["X-Forwarded-For: 192.0.2.1"]).status, 401);
}
