//! Compressed answers: smaller on the wire, and the same text.

use std::process::Command;
use std::thread;

use serde_json::json;

use crate::support::harness::{Server, bearer};
use crate::support::team::{payload, person, team, token};
use crate::support::wire::Response;

const WAITING: usize = 1_000;
const WIRE_BYTES_MAX: usize = 60_000;
const INBOX: &str = "/v1/items?waiting_for=me&view=summary&limit=1000&sort=due";

fn ask(server: &Server, method: &str, path: &str, encoding: &str) -> Response {
    let mut wire = server.wire();
    let authorization = bearer(&token("ben"));
    let accept = format!("Accept-Encoding: {encoding}");
    wire.request(&format!("{method} {path} HTTP/1.1"), &[&authorization, &accept]);
    if method == "HEAD" { wire.response_without_body().unwrap() } else { wire.response().unwrap() }
}

fn decompressed(response: &Response) -> Vec<u8> {
    assert_eq!(response.header("content-encoding"), Some("gzip"), "{:?}", response.headers);
    let place = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(place.path(), &response.body).unwrap();
    let output = Command::new("gzip").arg("-dc").stdin(place.reopen().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn an_inbox_of_1000_waiting_items_is_one_small_answer() {
    let server = team().serve_with(&["--log-level", "warn"], &[]);
    thread::scope(|scope| {
        for writer in 0..4 {
            let mut person = person(&server, if writer % 2 == 0 { "ana" } else { "amy" });
            scope.spawn(move || {
                for number in (writer..WAITING).step_by(4) {
                    let title = format!("Rotate the certificate of gateway {number}");
                    let risk = ["low", "medium", "high"][number % 3];
                    let body = json!({"workflow": "controlled-operation", "title": title, "payload": payload(risk)});
                    let id = person.post("/v1/items", &body).json()["id"].as_str().unwrap().to_owned();
                    person.must(&id, &json!({"action": "submit"}));
                }
            });
        }
    });
    let plain = ask(&server, "GET", INBOX, "identity");
    let packed = ask(&server, "GET", INBOX, "gzip, br");
    assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
    let page = plain.json();
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (WAITING, &json!(null)));
    assert_eq!(page["total"], WAITING);
    assert!(decompressed(&packed) == plain.body, "the same text");
    println!("{} bytes, compressed {}", plain.body.len(), packed.body.len());
    assert!(packed.body.len() <= WIRE_BYTES_MAX, "{} bytes on the wire", packed.body.len());
}

#[test]
fn a_compressed_answer_is_the_same_text_and_only_for_those_who_accept_it() {
    let server = team().serve();
    let mut ana = person(&server, "ana");
    let mut large = payload("low");
    large["purpose"] = "why this is done, at length. ".repeat(1_000).into();
    let id = ana.creates("controlled-operation", &large);
    let path = format!("/v1/items/{id}");
    let plain = ask(&server, "GET", &path, "gzip;q=0");
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")));
    let packed = ask(&server, "GET", &path, "gzip");
    assert_eq!(packed.header("vary"), Some("accept-encoding"));
    assert_eq!((packed.header("etag"), plain.header("etag")), (Some("\"1\""), Some("\"1\"")), "one version, one tag");
    assert!(decompressed(&packed) == plain.body && packed.body.len() < plain.body.len() / 10);
    let head = ask(&server, "HEAD", &path, "gzip");
    assert_eq!(head.header("content-encoding"), Some("gzip"));
    assert_eq!(head.header("content-length"), Some(&*packed.body.len().to_string()));
    // Too small to be worth it, and still not the same for everyone.
    let small = ask(&server, "GET", "/v1/session", "gzip");
    assert_eq!((small.header("content-encoding"), small.header("vary")), (None, Some("accept-encoding")));
    // Not JSON: signed notes and tiles are what their specifications say, to the byte.
    let checkpoint = ask(&server, "GET", "/v1/log/checkpoint", "gzip");
    assert_eq!(
        (checkpoint.status, checkpoint.header("content-encoding"), checkpoint.header("vary")),
        (200, None, None)
    );
    let refused = ask(&server, "GET", "/v1/items/nothing", "gzip");
    assert_eq!((refused.status, refused.header("content-encoding")), (404, None));
}
