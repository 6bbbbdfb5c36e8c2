//! A service with short leases, an agent, and a wire between them that can be cut.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::harness::{Finished, Installation, PATIENCE, Server, finish, now};
use crate::support::team::{payload, person, team, token, with_times};

pub const WORKFLOW: &str = "quick-operation";

/// An installation with a workflow whose lease is this long.
pub fn installation(lease: &str) -> Installation {
    let built_in = include_str!("../../../../workflows/controlled-operation.toml");
    let quick = built_in.replace("name = \"controlled-operation\"", &format!("name = \"{WORKFLOW}\""));
    let installation = team();
    fs::create_dir(installation.path("workflows")).unwrap();
    installation.write("workflows/quick.toml", &quick.replace("\"15m\"", &format!("\"{lease}\"")));
    installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[workflows]\ndir = \"workflows\"\n");
    installation
}

/// An item that may be started.
pub fn cleared(server: &Server) -> String {
    let id = person(server, "ana").creates(WORKFLOW, &payload("low"));
    let digest = person(server, "ada").item(&id)["content_digest"].clone();
    for (who, action) in [("ana", "submit"), ("ben", "approve"), ("sol", "clear")] {
        let mut body = json!({"action": action, "content_digest": digest});
        if action == "clear" {
            body["inputs"] = with_times(&json!({"not_after": "in an hour"}), &id);
        }
        person(server, who).must(&id, &body);
    }
    id
}

pub fn state(server: &Server, id: &str) -> String {
    person(server, "ada").item(id)["state"].as_str().unwrap().to_owned()
}

/// The transitions of an item, oldest first.
pub fn history(server: &Server, id: &str) -> Vec<Value> {
    let answer = person(server, "ada").get(&format!("/v1/items/{id}/transitions"));
    answer.json()["transitions"].as_array().unwrap().clone()
}

pub fn comments(server: &Server, id: &str) -> String {
    let answer = person(server, "ada").get(&format!("/v1/items/{id}/history"));
    answer.text()
}

/// Looks until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// `pilot work` with these arguments, as eli. The command is a shell script.
pub fn work(installation: &Installation, url: &str, arguments: &[&str], script: &str) -> Command {
    let mut command = installation.command(&["work", "--url", url, "--journal", "journal", "--kill-grace", "1s"]);
    command.args(arguments).args(["--exec", "/bin/sh", "-c", script]);
    command.env("PILOT_TOKEN", token("eli")).env("PATH", "/usr/bin:/bin");
    command
}

/// Executes one item to its end.
pub fn once(installation: &Installation, server: &Server, arguments: &[&str], script: &str) -> Finished {
    let arguments = [&["--workflow", WORKFLOW, "--once"], arguments].concat();
    finish(work(installation, &server.url(), &arguments, script), None)
}

/// An agent that goes on until it is stopped.
pub struct Agent {
    child: Child,
    log: PathBuf,
}

impl Agent {
    pub fn start(installation: &Installation, mut command: Command) -> Agent {
        let log = installation.path("agent.log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Agent { child, log }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn ends(mut self) -> ExitStatus {
        let began = now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the agent did not end: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn kill(self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.ends()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that have this in their environment.
pub fn processes_with(variable: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|found| found == variable.as_bytes())
    };
    pids.filter(is_marked).collect()
}

/// A wire to the service that can be cut: connections end, and new ones are refused.
pub struct Cable {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cable {
    pub fn to(server: &Server) -> Cable {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let cable = Cable {
            address,
            target: Arc::new(Mutex::new(server.address)),
            is_cut: Arc::default(),
            open: Arc::default(),
        };
        let (target, is_cut, open) = (Arc::clone(&cable.target), Arc::clone(&cable.is_cut), Arc::clone(&cable.open));
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let target = *target.lock().unwrap();
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(service) = TcpStream::connect(target) else { continue };
                let mut open = open.lock().unwrap();
                open.retain(|stream: &TcpStream| stream.peer_addr().is_ok());
                open.extend([caller.try_clone().unwrap(), service.try_clone().unwrap()]);
                pass_on(caller.try_clone().unwrap(), service.try_clone().unwrap());
                pass_on(service, caller);
            }
        });
        cable
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn mend(&self, server: &Server) {
        *self.target.lock().unwrap() = server.address;
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let mut piece = [0; 16 * 1024];
        while let Ok(length) = from.read(&mut piece) {
            if length == 0 || to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
