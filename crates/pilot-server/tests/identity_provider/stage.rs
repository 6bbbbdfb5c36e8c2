//! A provider that says what the test tells it to, and holds its answers back when asked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_server::identity::oauth::provider::Provider;
use pilot_setup::config::Oauth;
use pilot_testing::Scratch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// What it has heard and what it says.
pub struct Stage {
    pub url: String,
    answers: Mutex<HashMap<String, (u16, String)>>,
    requests: Mutex<Vec<String>>,
    arrived: watch::Sender<usize>,
    /// A permit for each answer that may be given.
    gate: Semaphore,
}

const FREELY: usize = 1_000;

impl Stage {
    pub async fn open() -> Arc<Stage> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stage = Arc::new(Stage {
            url,
            answers: Mutex::default(),
            requests: Mutex::default(),
            arrived: watch::Sender::new(0),
            gate: Semaphore::new(FREELY),
        });
        let serving = Arc::clone(&stage);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).answer(socket));
            }
        });
        stage.say("/.well-known/oauth-authorization-server", 404, "");
        stage.say("/.well-known/openid-configuration", 200, &stage.document(&stage.url));
        stage.publish(&["one"]);
        stage
    }

    pub fn document(&self, issuer: &str) -> String {
        let url = &self.url;
        format!(
            r#"{{"issuer":"{issuer}","jwks_uri":"{url}/jwks","authorization_endpoint":"{url}/auth","token_endpoint":"{url}/token"}}"#
        )
    }

    pub fn say(&self, path: &str, status: u16, body: &str) {
        self.answers.lock().unwrap().insert(path.to_owned(), (status, body.to_owned()));
    }

    /// Keys with these names; what is in them matters to nobody here.
    pub fn publish(&self, kids: &[&str]) {
        let x = data_encoding::BASE64URL_NOPAD.encode(&[7; 32]);
        let key = |kid: &&str| format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"{kid}","x":"{x}"}}"#);
        let keys = kids.iter().map(key).collect::<Vec<_>>().join(",");
        self.say("/jwks", 200, &format!(r#"{{"keys":[{keys}]}}"#));
    }

    pub fn fail(&self) {
        self.say("/jwks", 500, "");
        self.say("/.well-known/openid-configuration", 500, "");
    }

    pub fn heard(&self, path: &str) -> usize {
        let target = format!(" {path} ");
        self.requests.lock().unwrap().iter().filter(|request| request.lines().next().unwrap().contains(&target)).count()
    }

    pub fn last_request(&self) -> String {
        self.requests.lock().unwrap().last().unwrap().clone()
    }

    /// From now on nothing is answered.
    pub fn hold_back(&self) {
        self.gate.forget_permits(FREELY);
    }

    pub fn let_go(&self) {
        self.gate.add_permits(FREELY);
    }

    /// Until so many requests have come in.
    pub async fn hears(&self, requests: usize) {
        self.arrived.subscribe().wait_for(|arrived| *arrived >= requests).await.unwrap();
    }

    pub fn requests(&self) -> usize {
        *self.arrived.borrow()
    }

    async fn answer(self: Arc<Self>, mut socket: TcpStream) {
        let Some(request) = read(&mut socket).await else { return };
        let path = request.split(' ').nth(1).unwrap_or("").to_owned();
        self.requests.lock().unwrap().push(request);
        self.arrived.send_modify(|arrived| *arrived += 1);
        self.gate.acquire().await.unwrap().forget();
        self.gate.add_permits(1);
        let answer = self.answers.lock().unwrap().get(&path).cloned();
        let (status, body) = answer.unwrap_or((404, String::new()));
        let location = if status == 302 { format!("Location: {}/elsewhere\r\n", self.url) } else { String::new() };
        let head =
            format!("HTTP/1.1 {status} X\r\n{location}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let _ = socket.write_all((head + &body).as_bytes()).await;
        let _ = socket.shutdown().await;
    }
}

/// Head and body.
async fn read(socket: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = socket.read(&mut part).await.ok().filter(|length| *length > 0)?;
        request.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some(text.into_owned());
        }
    }
}

/// A directory of its own for what is kept of the provider.
pub struct Kept(Scratch);

impl Kept {
    pub fn new() -> Kept {
        Kept(Scratch::new())
    }

    pub fn path(&self) -> PathBuf {
        self.0.file("identity-provider.json")
    }
}

pub fn clock() -> Clock {
    Clock::manual(Time::from_unix_micros(1_800_000_000_000_000))
}

pub fn advance(clock: &Clock, seconds: i64) {
    let Clock::Manual(micros) = clock else { panic!("a clock that can be moved") };
    micros.fetch_add(seconds * 1_000_000, std::sync::atomic::Ordering::SeqCst);
}

pub fn config(issuer: &str) -> Oauth {
    toml::from_str(&format!("issuer = '{issuer}'\naudience = 'https://pilot.example'\n")).unwrap()
}

pub fn provider(stage: &Stage, kept: &Kept, clock: &Clock) -> Arc<Provider> {
    Arc::new(Provider::new(config(&stage.url), kept.path(), clock.clone()).unwrap())
}
