//! Writes whose answer is lost on the way: repeated, and recorded once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::desk::Desk;
use crate::support::harness::{Finished, finish};
use crate::support::team::{payload, person};

/// Stands between the program and the service, and loses the answers to the first writes.
struct Thief {
    address: SocketAddr,
    stolen: Arc<AtomicUsize>,
}

impl Thief {
    fn before(service: SocketAddr, answers: usize) -> Thief {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stolen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&stolen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                pass(stream, service, answers, &count);
            }
        });
        Thief { address, stolen }
    }

    fn stolen(&self) -> usize {
        self.stolen.load(Ordering::SeqCst)
    }
}

/// One connection is one request of the program.
fn pass(mut client: TcpStream, service: SocketAddr, answers: usize, stolen: &AtomicUsize) {
    let request = read_message(&mut client);
    let is_write = request.starts_with(b"POST ") || request.starts_with(b"PATCH ");
    let mut onward = TcpStream::connect(service).unwrap();
    onward.write_all(&request).unwrap();
    let answer = read_message(&mut onward);
    if is_write && stolen.load(Ordering::SeqCst) < answers {
        stolen.fetch_add(1, Ordering::SeqCst);
        return;
    }
    let _ = client.write_all(&answer);
}

/// A request or an answer with its body.
fn read_message(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text[..end].split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return bytes;
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return bytes,
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
        }
    }
}

fn through(thief: &Thief, desk: &Desk, name: &str, arguments: &[&str]) -> Finished {
    let mut command = desk.command(name, arguments);
    command.env("PILOT_URL", format!("http://{}", thief.address));
    finish(command, None)
}

#[test]
fn a_creation_an_edit_and_a_decision_whose_answers_are_lost_happen_once() {
    let desk = Desk::new();
    desk.installation.write("payload.json", &payload("low").to_string());
    let thief = Thief::before(desk.server.address, 2);
    let new = ["item", "new", "--title", "Rotate", "--payload", "payload.json", "--fields", "id"];
    let created = through(&thief, &desk, "ana", &new).expect(0);
    created.says(&["trying again (2 of 5)", "trying again (3 of 5)"]);
    assert_eq!(thief.stolen(), 2);
    let id = created.stdout.trim();
    assert_eq!(desk.json("ana", &["item", "list"])["items"].as_array().unwrap().len(), 1);

    let thief = Thief::before(desk.server.address, 1);
    let edited = through(&thief, &desk, "ana", &["item", "edit", id, "--title", "Rotate it", "--fields", "version"]);
    assert_eq!((edited.expect(0).stdout.trim(), thief.stolen()), ("2", 1));

    person(&desk.server, "ana").must(id, &json!({"action": "submit"}));
    let thief = Thief::before(desk.server.address, 1);
    through(&thief, &desk, "ben", &["item", "act", id, "approve", "--digest", &desk.digest(id)]).expect(0);
    assert_eq!(thief.stolen(), 1);
    let history = desk.json("ana", &["item", "show", id])["history"].as_array().unwrap().len();
    assert_eq!(history, 4, "create, edit, submit, approve");
}

#[test]
fn when_no_answer_ever_comes_the_key_repeats_it_safely_later() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    let thief = Thief::before(desk.server.address, usize::MAX);
    let digest = desk.digest(&id);
    let approve = ["item", "act", &id, "approve", "--digest", &digest];
    let lost = through(&thief, &desk, "ben", &approve).expect(3);
    lost.says(&["it is not known whether this was recorded", "--idempotency-key"]);
    assert_eq!(thief.stolen(), 5, "a bounded number of times");
    let key = lost.stderr.split("--idempotency-key ").nth(1).unwrap().split(' ').next().unwrap();
    let again = desk.run("ben", &[&approve[..], &["--idempotency-key", key]].concat()).expect(0);
    assert!(again.stdout.starts_with("approve: submitted to approved"), "{again:?}");
    assert_eq!(desk.json("ana", &["item", "show", &id])["history"].as_array().unwrap().len(), 3);
    desk.run("ben", &approve).expect(1).says(&["409 already_decided"]);
}
