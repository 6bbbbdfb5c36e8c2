//! Our reader of heads beside the HTTP library's: whatever a peer sends, the two agree on where each request begins. If
//! they did not, a head could be believed that was never looked at.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pilot_testing::{Dice, asked, fresh_seed};
use pilot_wire::framing::heads::{Faulty, Heads};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CONVERSATIONS: u64 = 20_000;

/// What the library passes on of a conversation: method and target of each request. Bodies are read to their ends.
async fn passed_on(conversation: &[u8], at_once: usize) -> (Vec<String>, bool) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let seen = Arc::clone(&seen);
        async move {
            seen.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let (peer, here) = tokio::io::duplex(at_once);
    let served =
        http1::Builder::new().header_read_timeout(None).half_close(true).serve_connection(TokioIo::new(here), service);
    let (mut answers, mut questions) = tokio::io::split(peer);
    let talk = async {
        // The library may hang up in the middle.
        let _ = questions.write_all(conversation).await;
        let _ = questions.shutdown().await;
    };
    let listen = async {
        let mut answered = Vec::new();
        let _ = answers.read_to_end(&mut answered).await;
    };
    let (served, (), ()) = tokio::join!(served, talk, listen);
    (std::mem::take(&mut seen.lock().unwrap()), served.is_ok())
}

/// What we see of it: method and target of each head whose first line is there, and the head at fault.
fn seen(conversation: &[u8]) -> (Vec<String>, Option<Faulty>) {
    let (mut heads, mut lines, mut begins) = (Heads::default(), Vec::new(), None);
    for (place, byte) in conversation.iter().enumerate() {
        let faulty = heads.see(&[*byte]);
        match (heads.is_in_request_line(), begins) {
            // The first bytes of a connection could also be those of HTTP/2, so it begins before that is known.
            (true, None) if lines.is_empty() => {
                begins = conversation.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
            }
            (true, None) => begins = Some(place),
            (false, Some(begin)) => {
                let line = String::from_utf8_lossy(&conversation[begin..place]).into_owned();
                lines.push(line.split([' ', '\r']).take(2).collect::<Vec<_>>().join(" "));
                begins = None;
            }
            _ => {}
        }
        if faulty.is_some() {
            return (lines, faulty);
        }
    }
    (lines, None)
}

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "HEAD", "DELETE"];
const BODIES: [&str; 4] =
    ["", "x", "\r\n\r\n", "POST /smuggled HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"];

/// One request. Most state one length, a few state two.
fn request(dice: &mut Dice, number: usize) -> String {
    let body = *dice.pick(&BODIES);
    let mut fields = vec!["Host: a".to_owned()];
    let sent = match dice.below(4) {
        0 => String::new(),
        1 => {
            fields.push("Transfer-Encoding: chunked".into());
            let end = *dice.pick(&["0\r\n\r\n", "0\r\nX: y\r\n\r\n", "0;last\r\n\r\n"]);
            if body.is_empty() { end.to_owned() } else { format!("{:x};e=f\r\n{body}\r\n{end}", body.len()) }
        }
        _ => {
            fields.push(format!(
                "{}: {}",
                dice.pick(&["Content-Length", "content-length", "CONTENT-LENGTH"]),
                body.len()
            ));
            body.to_owned()
        }
    };
    if fields.len() > 1 && dice.chance(8) {
        fields.push(format!("Content-Length:{}", body.len()));
    }
    for _ in 0..dice.below(3) {
        let further = *dice.pick(&["TE: trailers", "X: Content-Length: 7", "Content-Type: x", "T: y", "Cookie:"]);
        fields.insert(dice.below(fields.len() + 1), further.into());
    }
    let empty = *dice.pick(&["", "", "", "\r\n"]);
    format!("{empty}{} /{number} HTTP/1.1\r\n{}\r\n\r\n{sent}", dice.pick(&METHODS), fields.join("\r\n"))
}

/// A few bytes changed, doubled, left out or put in.
fn spoil(dice: &mut Dice, conversation: &mut Vec<u8>) {
    for _ in 0..dice.below(4) {
        let place = dice.below(conversation.len());
        match dice.below(4) {
            0 => conversation[place] = *dice.pick(b"\r\n :;,0f\tCT"),
            1 => conversation.insert(place, *dice.pick(b"\r\n :;,0f\tCT")),
            2 => drop(conversation.remove(place)),
            _ => {
                let end = (place + 1 + dice.below(40_usize)).min(conversation.len());
                let piece = conversation[place..end].to_vec();
                conversation.splice(place..place, piece);
            }
        }
    }
}

#[tokio::test]
async fn the_library_and_we_agree_on_where_each_request_begins() {
    let (first, count) = match asked("PILOT_SEED") {
        Some(seed) => (seed, 1),
        None => (fresh_seed(), CONVERSATIONS * asked("PILOT_LONG").unwrap_or(1)),
    };
    println!("seeds {first} to {}", first + count - 1);
    let (mut requests, mut at_fault) = (0, 0);
    for seed in first..first + count {
        let dice = &mut Dice::new(seed);
        let several = 1 + dice.below(4_usize);
        let mut conversation: Vec<u8> = (0..several).flat_map(|number| request(dice, number).into_bytes()).collect();
        let is_spoilt = dice.chance(60);
        if is_spoilt {
            spoil(dice, &mut conversation);
        }
        let (theirs, is_ok) = passed_on(&conversation, 1 + dice.below(300_usize)).await;
        let (ours, faulty) = seen(&conversation);
        // A head at fault is refused, wherever it begins, and nothing after it is read.
        let end = faulty.map_or(theirs.len(), |faulty| theirs.len().min(usize::try_from(faulty.index).unwrap()));
        let told = || {
            format!("seed {seed}: {theirs:?}, we {ours:?} {faulty:?}, of {:?}", conversation.escape_ascii().to_string())
        };
        assert!(ours.starts_with(&theirs[..end]), "{}", told());
        if !is_spoilt && faulty.is_none() {
            assert!(is_ok && theirs.len() == several && ours.len() == several, "{}", told());
        }
        requests += end;
        at_fault += u64::from(faulty.is_some());
    }
    println!("{requests} requests in {count} conversations, {at_fault} with a head at fault");
    assert!(count == 1 || requests as u64 > count && at_fault > count / 20, "the test must hit something");
}
