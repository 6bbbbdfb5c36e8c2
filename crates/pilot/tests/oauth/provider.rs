//! The provider's process, and a door in front of it that can be shut or left to hang.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::harness::{Installation, PATIENCE};
use crate::support::wire::{Response, Wire};

pub const AUDIENCE: &str = "https://pilot.example";
const SECRET: &str = "a-secret-for-the-tests-alone";
/// Clients that speak for themselves; `pilot` is the service, which asks about tokens.
const CLIENTS: [&str; 7] = ["ana", "ben", "sam", "ada", "hugo", "eve", "pilot"];

/// How the door in front of the provider behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Door {
    Open,
    /// Connections are taken, and nothing is ever said.
    Hangs,
    /// Connections are closed at once.
    Shut,
}

pub struct Provider {
    pub address: SocketAddr,
    door: Arc<AtomicU8>,
    /// Where the real one listens; it moves with every start.
    behind: Arc<Mutex<Option<SocketAddr>>>,
    /// Connections that came to the door.
    knocks: Arc<AtomicUsize>,
    child: Option<Child>,
    lifetime: u32,
    renews: bool,
    files: Installation,
}

impl Provider {
    pub fn start() -> Provider {
        Provider::with_lifetime(600)
    }

    pub fn with_lifetime(lifetime: u32) -> Provider {
        let mut provider = Provider::absent(lifetime);
        provider.run();
        provider
    }

    /// One that is not there yet.
    pub fn absent(lifetime: u32) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Provider {
            address,
            door: Arc::new(AtomicU8::new(Door::Open as u8)),
            behind: Arc::default(),
            knocks: Arc::default(),
            child: None,
            lifetime,
            renews: false,
            files: Installation::bare(),
        };
        let (door, behind, knocks) =
            (Arc::clone(&provider.door), Arc::clone(&provider.behind), Arc::clone(&provider.knocks));
        thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                knocks.fetch_add(1, Ordering::SeqCst);
                let target = *behind.lock().unwrap();
                match (door.load(Ordering::SeqCst), target) {
                    (0, Some(target)) => pass_through(stream, target),
                    (1, _) => hanging.push(stream),
                    _ => drop(stream),
                }
            }
        });
        provider
    }

    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set_door(&self, door: Door) {
        self.door.store(door as u8, Ordering::SeqCst);
    }

    pub fn knocks(&self) -> usize {
        self.knocks.load(Ordering::SeqCst)
    }

    /// Starts the process; with the keys it had, if it was there before.
    pub fn run(&mut self) {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oauth/provider");
        let remedy = "run `npm install --no-save --ignore-scripts` there, or `cargo xtask check`, which does";
        assert!(directory.join("node_modules").is_dir(), "{}: has no packages; {remedy}", directory.display());
        let clients: serde_json::Map<_, _> = CLIENTS.iter().map(|name| ((*name).to_owned(), json!(SECRET))).collect();
        let options = json!({
            "issuer": self.issuer(), "audience": AUDIENCE, "lifetime": self.lifetime,
            "keys": self.files.path("keys.json"), "clients": clients, "refresh": self.renews,
        });
        let mut command = Command::new("node");
        command.arg("provider.mjs").arg(options.to_string()).current_dir(directory);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("node is needed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        self.child = Some(child);
        let (ready, port) = channel();
        thread::spawn(move || {
            let port = lines.find_map(|line| line.ok()?.strip_prefix("ready ")?.parse::<u16>().ok());
            port.map(|port| ready.send(port));
            // It goes on to say things, and would end if nobody listened.
            lines.for_each(drop);
        });
        let port = port.recv_timeout(PATIENCE).expect("the provider says that it is ready");
        *self.behind.lock().unwrap() = Some(SocketAddr::from(([127, 0, 0, 1], port)));
    }

    pub fn stop(&mut self) {
        *self.behind.lock().unwrap() = None;
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Other keys from now on, and the old ones are gone.
    pub fn rotate_keys(&mut self) {
        self.stop();
        std::fs::remove_file(self.files.path("keys.json")).unwrap();
        self.run();
    }

    /// A token for a client that speaks for itself.
    pub fn token(&self, client: &str) -> String {
        self.token_for(client, AUDIENCE)
    }

    pub fn token_for(&self, client: &str, audience: &str) -> String {
        let form =
            format!("grant_type=client_credentials&resource={}", audience.replace(':', "%3A").replace('/', "%2F"));
        let answer = self.post("/token", client, &form);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    pub fn token_with_scope(&self, client: &str, scope: &str) -> String {
        let answer = self.post("/token", client, &format!("grant_type=client_credentials&scope={scope}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// The provider's own revocation, of which only it knows.
    pub fn revoke(&self, token: &str) {
        assert_eq!(self.post("/revoke-signed", "pilot", &format!("token={token}")).status, 200);
    }

    /// What a person says in the browser about the code of a device: who they are, or no.
    pub fn decide_on_device(&self, user_code: &str, sub: Option<&str>) {
        let said = sub.map_or("denied=yes".to_owned(), |sub| format!("sub={sub}"));
        let answer = self.post("/device-decision", "pilot", &format!("user_code={user_code}&{said}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Tokens can be renewed.
    pub fn renewing(lifetime: u32) -> Provider {
        let mut provider = Provider::absent(lifetime);
        provider.renews = true;
        provider.run();
        provider
    }

    fn post(&self, path: &str, client: &str, form: &str) -> Response {
        let behind = self.behind.lock().unwrap().expect("the provider is there");
        let mut wire = Wire::connect(behind);
        let pair = data_encoding::BASE64.encode(format!("{client}:{SECRET}").as_bytes());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Basic {pair}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{form}",
            self.address,
            form.len()
        );
        wire.send(head.as_bytes());
        wire.response().expect("the provider answers")
    }

    /// The section that trusts it.
    pub fn section(&self) -> String {
        format!(
            "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = '{}'\naudience = '{AUDIENCE}'\nleeway_seconds = 0\n",
            self.issuer()
        )
    }

    /// The same, and asks it whether a token is still active.
    pub fn section_with_introspection(&self, installation: &Installation) -> String {
        installation.write("secret", &format!("{SECRET}\n"));
        let issuer = self.issuer();
        format!(
            "{}[identity.oauth.introspection]\nurl = '{issuer}/status'\nclient_id = 'pilot'\nclient_secret_file = 'secret'\n",
            self.section()
        )
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop();
    }
}

fn pass_through(near: TcpStream, target: SocketAddr) {
    let Ok(far) = TcpStream::connect(target) else { return };
    for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
        from.set_read_timeout(Some(PATIENCE)).unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

/// What a token says, unchecked: for tests that have to name it.
pub fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&data_encoding::BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap()
}
