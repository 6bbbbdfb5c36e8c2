//! An agent that is a script: it starts `pilot mcp`, sends lines and reads lines.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::support::harness::{Installation, PATIENCE};
use crate::support::team::token;

pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    next: u64,
}

impl Agent {
    /// The agent with this person's credential, introduced.
    pub fn new(installation: &Installation, url: &str, who: &str) -> Agent {
        let mut agent = Agent::started(installation, url, who);
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "script", "version": "1"}});
        let answer = agent.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "pilot", "{answer}");
        agent.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        agent
    }

    fn started(installation: &Installation, url: &str, who: &str) -> Agent {
        let mut command = installation.command(&["mcp", "--url", url]);
        let mut child = command.env("PILOT_TOKEN", token(who)).stdin(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let (sender, errors) = channel();
        let mut stderr = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        Agent { stdin: child.stdin.take(), child, lines, errors, next: 1 }
    }

    pub fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).unwrap();
    }

    /// Sends a request and does not wait for its answer.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    pub fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The next line, which is a message of the protocol like every line.
    #[track_caller]
    pub fn next_answer(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["jsonrpc"], "2.0", "{line}");
        answer
    }

    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let answer = self.next_answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// What a call that succeeds brings.
    #[track_caller]
    pub fn must(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// What a call that fails says.
    #[track_caller]
    pub fn fails(&mut self, tool: &str, arguments: &Value) -> String {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The agent goes, and the command ends in order. Gives what it wrote to standard error.
    #[track_caller]
    pub fn leaves(mut self) -> String {
        drop(self.stdin.take());
        let errors = self.errors.recv_timeout(PATIENCE).expect("the command ended");
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{errors}");
        errors
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
