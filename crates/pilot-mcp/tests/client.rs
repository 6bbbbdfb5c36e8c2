//! A client that writes lines and reads lines.

use pilot_core::actor::Actor;
use pilot_core::role::Role;
use pilot_mcp::{Agent, ServeError, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};
use tokio::task::JoinHandle;

use crate::fake::Fake;

pub struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<(), ServeError>>,
    next: u64,
}

impl Client {
    /// A client that has introduced itself to a server for this role.
    pub async fn new(fake: &Fake, role: Role) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = split(theirs);
        let actor = Actor::new("ana".parse().unwrap(), role);
        let agent = Agent { service: fake.clone(), actor, session: "s1".into(), version: "0" };
        let server = tokio::spawn(serve(agent, read, write));
        let (read, writer) = split(ours);
        let mut client = Client { lines: BufReader::new(read).lines(), writer, server, next: 1 };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let id = client.send("initialize", &hello).await;
        client.answer(id).await;
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn write(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub async fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub async fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments})).await
    }

    pub async fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    }

    /// The next answer, whichever it is.
    pub async fn next_answer(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().expect("an answer")).unwrap()
    }

    pub async fn answer(&mut self, id: u64) -> Value {
        let answer = self.next_answer().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The result of a call.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments).await;
        self.answer(id).await["result"].clone()
    }

    pub async fn must(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// What the server says when the client is gone.
    pub async fn leave(mut self) -> Result<(), ServeError> {
        self.writer.shutdown().await.unwrap();
        drop((self.writer, self.lines));
        self.server.await.unwrap()
    }
}

/// The words of a refusal.
pub fn words(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "a refusal does not pass for a result: {result}");
    result["content"][0]["text"].as_str().unwrap()
}
