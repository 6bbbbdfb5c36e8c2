//! An installation in a directory of its own, the program run on it, and the service while it runs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pilot_core::digest::Digest;
use pilot_testing::postgres::{Cluster, Database};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpSocket;

use crate::support::wire::{Response, Wire};

/// A port of 127.0.0.1 that nobody else is given while this is held. Nobody listens on it, unless a service is told to.
pub struct Port(TcpSocket);

impl Port {
    pub fn reserve() -> Port {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Port(socket)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// What a service whose ops listener is here tells its monitoring.
    pub fn metrics(&self) -> String {
        let mut wire = Wire::connect(self.address());
        wire.request("GET /metrics HTTP/1.1", &[]);
        wire.response().unwrap().text()
    }
}

/// Far beyond anything the program needs; a test that reaches it has found a hang.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// A hand-made token, valid in every installation made by [`Installation::with_ana`].
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[expect(clippy::disallowed_methods, reason = "tests measure the real program against the real clock")]
pub fn now() -> Instant {
    Instant::now()
}

pub fn digest(token: &[u8]) -> String {
    Digest::of(token).to_hex()
}

/// A credential file with these actors, roles and tokens.
pub fn credential_file(entries: &[(&str, &str, &str)]) -> String {
    let entry = |(actor_id, role, token): &(&str, &str, &str)| json!({"actor_id": actor_id, "roles": [role], "token_sha3_256": digest(token.as_bytes())});
    json!({"schema_version": 1, "credentials": entries.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

/// The same in version 2: each is called by its actor, and expires at this time.
pub fn expiring_credential_file(entries: &[(&str, &str, &str)], expires_at: &str) -> String {
    let entry = |(actor_id, role, token): &(&str, &str, &str)| json!({"credential_id": format!("{actor_id}-1"), "actor_id": actor_id, "roles": [role], "token_sha3_256": digest(token.as_bytes()), "not_before": "2020-01-01T00:00:00Z", "expires_at": expires_at});
    json!({"schema_version": 2, "credentials": entries.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

pub fn role_map(actors: &[(&str, &str)]) -> String {
    let actor = |(actor_id, role): &(&str, &str)| json!({"actor_id": actor_id, "role": role});
    json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": actors.iter().map(actor).collect::<Vec<_>>()})
        .to_string()
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory with a configuration.
pub struct Installation {
    /// Removed with everything in it when the installation and the servers on it are gone.
    home: Arc<Home>,
}

/// What is gone when nobody uses it any more.
struct Home {
    directory: TempDir,
    /// The ledger's database, if it is not a file.
    database: Option<Database>,
}

/// Where ledgers are kept in this run of the tests: in files, or with `PILOT_TEST_STORE=postgres` in databases.
pub fn is_on_postgres() -> bool {
    match pilot_testing::asked_for("PILOT_TEST_STORE").as_deref() {
        Some("postgres") => true,
        Some("sqlite") | None => false,
        Some(other) => panic!("PILOT_TEST_STORE is {other}; it can be sqlite or postgres"),
    }
}

impl Installation {
    /// A directory with nothing in it.
    pub fn bare() -> Installation {
        Installation::new(is_on_postgres())
    }

    /// With an empty database, whatever the other tests run on.
    pub fn with_database() -> Installation {
        Installation::new(true)
    }

    fn new(has_database: bool) -> Installation {
        let private = fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().prefix("pilot-front-door-").permissions(private).tempdir().unwrap();
        let database = has_database.then(|| Cluster::shared().fresh_database());
        Installation { home: Arc::new(Home { directory, database }) }
    }

    /// Where the ledger is, if it is not in a file.
    pub fn database_url(&self) -> Option<&str> {
        self.home.database.as_ref().map(Database::url)
    }

    /// A configuration without a role map, and these credentials.
    pub fn with(entries: &[(&str, &str, &str)]) -> Installation {
        let installation = Installation::bare();
        installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n");
        installation.write("credentials.json", &credential_file(entries));
        installation
    }

    /// One actor, `ana`, an initiator whose token is [`TOKEN`].
    pub fn with_ana() -> Installation {
        Installation::with(&[("ana", "initiator", TOKEN)])
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.directory.path().join(name)
    }

    /// Writes a file with mode 0600.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn make_private_directory(&self, name: &str) {
        fs::create_dir(self.path(name)).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// Every file below the directory.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut directories = vec![self.home.directory.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() { &mut directories } else { &mut files }.push(entry.path());
            }
        }
        files
    }

    /// The program, in this directory, with an environment that holds nothing of ours but what the test adds.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilot"));
        command.args(arguments);
        self.prepare(command)
    }

    pub fn prepare(&self, mut command: Command) -> Command {
        command.current_dir(self.home.directory.path()).env_clear();
        command.env("TMPDIR", self.home.directory.path()).env("PILOT_OPERATOR", "olga");
        // A test that names a store means it.
        let has_store = fs::read_to_string(self.path("pilot.toml")).is_ok_and(|text| text.contains("[store]"));
        if let Some(database) = self.home.database.as_ref().filter(|_| !has_store) {
            command.env("PILOT_STORE__URL", database.url());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn pilot(&self, arguments: &[&str]) -> Finished {
        finish(self.command(arguments), None)
    }

    /// The program with a token in `PILOT_TOKEN`.
    pub fn pilot_as(&self, token: &str, arguments: &[&str]) -> Finished {
        let mut command = self.command(arguments);
        command.env("PILOT_TOKEN", token);
        finish(command, None)
    }

    pub fn pilot_with_input(&self, input: &str, arguments: &[&str]) -> Finished {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped());
        finish(command, Some(input))
    }

    /// The service on this directory's `pilot.toml`, once it accepts connections.
    pub fn serve(&self) -> Server {
        self.serve_with(&[], &[])
    }

    pub fn serve_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut command = self.command(&["serve", "--config", "pilot.toml"]);
        command.args(arguments).envs(environment.iter().copied());
        self.start(command)
    }

    /// Any command that announces where it listens.
    pub fn start(&self, command: Command) -> Server {
        Server::start(command, Arc::clone(&self.home))
    }

    /// The start of a service that must not succeed.
    pub fn serve_in_vain(&self) -> Finished {
        self.pilot(&["serve", "--config", "pilot.toml"])
    }
}

/// What a run of the program left behind.
#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    #[track_caller]
    pub fn expect(self, code: i32) -> Finished {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing in {self:#?}");
        }
    }

    #[track_caller]
    pub fn never_says(&self, secret: &str) {
        assert!(!self.stdout.contains(secret) && !self.stderr.contains(secret), "{secret:?} is in {self:#?}");
    }
}

/// Runs a command to its end, or kills it and fails.
pub fn finish(mut command: Command, input: Option<&str>) -> Finished {
    let mut child = command.spawn().unwrap();
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // The program may end without reading: then there is nobody to write to.
        let _ = stdin.write_all(input.as_bytes());
    }
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let (Ok(stdout), Ok(stderr)) = (stdout.recv_timeout(PATIENCE), stderr.recv_timeout(PATIENCE)) else {
        child.kill().unwrap();
        panic!("the program did not end: {command:?}");
    };
    Finished { code: child.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
}

fn collect(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Standard error as it grows.
#[derive(Default)]
struct Log {
    text: Mutex<String>,
    grown: Condvar,
}

/// A running service.
pub struct Server {
    child: Option<Child>,
    /// Not an address that can be used if the service listens on a Unix socket.
    pub address: SocketAddr,
    /// `http`, `https`, or `unix:` with the path.
    scheme: String,
    log: Arc<Log>,
    /// Standard output so far; whole once `stdout_ended` was heard.
    printed: Arc<Mutex<String>>,
    stdout_ended: Receiver<()>,
    /// Hears once that standard error has ended, which is when the process has.
    ended: Receiver<()>,
    _home: Arc<Home>,
}

impl Server {
    fn start(mut command: Command, home: Arc<Home>) -> Server {
        let mut child = command.spawn().unwrap();
        let (log, ended) = follow_log(child.stderr.take().unwrap());
        let (printed, address, stdout_ended) = follow_stdout(child.stdout.take().unwrap());
        let Ok((scheme, address)) = address.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the service did not announce itself: {}", log.text.lock().unwrap());
        };
        Server { child: Some(child), address, scheme, log, printed, stdout_ended, ended, _home: home }
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn wire(&self) -> Wire {
        match self.scheme.strip_prefix("unix:") {
            Some(path) => Wire::over_unix(UnixStream::connect(path).unwrap()),
            None => Wire::connect(self.address),
        }
    }

    /// Sends bytes on a connection of their own and reads one answer.
    #[track_caller]
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Response {
        let mut wire = self.wire();
        wire.send(bytes.as_ref());
        wire.response().expect("an answer")
    }

    /// A request of one line and these header lines, with the `Host` it needs.
    #[track_caller]
    pub fn request(&self, line: &str, headers: &[&str]) -> Response {
        let mut wire = self.wire();
        wire.request(line, headers);
        let response = if line.starts_with("HEAD ") { wire.response_without_body() } else { wire.response() };
        response.expect("an answer")
    }

    #[track_caller]
    pub fn get(&self, path: &str, headers: &[&str]) -> Response {
        self.request(&format!("GET {path} HTTP/1.1"), headers)
    }

    /// `GET /v1/session` with this token.
    #[track_caller]
    pub fn session(&self, token: &str) -> Response {
        self.get("/v1/session", &[&bearer(token)])
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Returns when the log contains `text`.
    pub fn wait_for_log(&self, text: &str) {
        let log = self.log.text.lock().unwrap();
        let missing = |log: &mut String| !log.contains(text);
        let (log, timeout) = self.log.grown.wait_timeout_while(log, PATIENCE, missing).unwrap();
        assert!(!timeout.timed_out(), "{text:?} was never logged: {log}");
    }

    /// The end of the log, for a test that fails.
    pub fn last_lines(&self) -> String {
        let log = self.log.text.lock().unwrap();
        let lines: Vec<_> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Words that begin like this in what was printed up to the announcement, each once, in their order.
    pub fn printed_words_with(&self, prefix: &str) -> Vec<String> {
        let printed = self.printed.lock().unwrap();
        let mut words: Vec<String> = Vec::new();
        for word in printed.split(|character: char| character.is_whitespace() || character == '\'') {
            if word.starts_with(prefix) && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        }
        words
    }

    /// How it is doing, for a test that fails: whether it has ended and how, and what it logged last.
    fn last_words(&mut self) -> String {
        let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
        let state = ended.map_or("it is running".to_owned(), |status| format!("it has ended: {status}"));
        let log = self.log.text.lock().unwrap();
        let lines: Vec<_> = log.lines().rev().take(10).collect();
        format!("{state}; its log ends with\n{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    /// SIGTERM, then the end: exit code, standard output and the whole log.
    pub fn stop(self) -> Finished {
        self.signal(Signal::TERM);
        self.ends()
    }

    /// Waits for the end without asking for it.
    pub fn ends(mut self) -> Finished {
        assert!(self.ended.recv_timeout(PATIENCE).is_ok(), "the service did not end: {}", self.last_lines());
        let code = self.child.take().unwrap().wait().unwrap().code().unwrap_or(-1);
        self.stdout_ended.recv_timeout(PATIENCE).unwrap();
        let stdout = self.printed.lock().unwrap().clone();
        let stderr = self.log.text.lock().unwrap().clone();
        Finished { code, stdout, stderr }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() && self.child.is_some() {
            let last_words = self.last_words();
            let _ = writeln!(std::io::stderr(), "the service at {}: {last_words}", self.address);
        }
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn follow_log(stderr: ChildStderr) -> (Arc<Log>, Receiver<()>) {
    let (sender, ended) = channel();
    let log = Arc::new(Log::default());
    let written = Arc::clone(&log);
    thread::spawn(move || {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            written.text.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            written.grown.notify_all();
            line.clear();
        }
        let _ = sender.send(());
    });
    (log, ended)
}

type Announced = (String, SocketAddr);

/// Standard output as it grows, scheme and address from the `listening on` line, and the end.
fn follow_stdout(stdout: ChildStdout) -> (Arc<Mutex<String>>, Receiver<Announced>, Receiver<()>) {
    let ((found, address), (sender, ended)) = (channel(), channel());
    let printed = Arc::new(Mutex::new(String::new()));
    let written = Arc::clone(&printed);
    thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
            written.lock().unwrap().push_str(&line);
            let url = line.trim_end().strip_prefix("listening on ");
            if let Some((scheme, address)) = url.and_then(|url| url.split_once("://")) {
                let _ = found.send((scheme.to_owned(), address.parse().unwrap()));
            }
            if let Some(path) = url.and_then(|url| url.strip_prefix("unix:")) {
                let _ = found.send((format!("unix:{path}"), SocketAddr::from(([0, 0, 0, 0], 0))));
            }
            line.clear();
        }
        let _ = sender.send(());
    });
    (printed, address, ended)
}
