//! Clients that ask for one path after the other, each waiting for its answer.

use std::sync::Arc;

use crate::Anything;
use crate::clock::{micros_since, now, print_percentiles};
use crate::connection::{Connection, get};

pub(crate) struct Asked {
    pub(crate) tokens: Vec<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) clients: usize,
    pub(crate) count: usize,
}

impl Asked {
    pub(crate) async fn run(self, address: &str) -> Result<(), Anything> {
        if self.tokens.is_empty() || self.paths.is_empty() || self.clients == 0 {
            return Err("a token, a path and a client are needed".into());
        }
        let asked = Arc::new(self);
        let mut connections = Vec::new();
        for _ in 0..asked.clients {
            connections.push(Connection::open(address).await?);
        }
        let start = now();
        let clients: Vec<_> = (0..)
            .zip(connections)
            .map(|(number, connection)| tokio::spawn(client(Arc::clone(&asked), number, connection)))
            .collect();
        let (mut micros, mut bytes) = (Vec::new(), 0);
        for client in clients {
            let (of_client, bytes_of_client) = client.await??;
            micros.extend(of_client);
            bytes += bytes_of_client;
        }
        println!("answers {}\nseconds {:.6}\nbytes {bytes}", micros.len(), start.elapsed().as_secs_f64());
        print_percentiles(micros);
        Ok(())
    }
}

/// Its part of the requests; gives the time each answer took, and the bytes of all of them.
async fn client(asked: Arc<Asked>, number: usize, mut connection: Connection) -> Result<(Vec<u64>, usize), Anything> {
    let token = asked.tokens.get(number % asked.tokens.len()).ok_or("a token is needed")?;
    let requests: Vec<_> = asked.paths.iter().map(|path| get(path, token)).collect();
    let (mut micros, mut bytes) = (Vec::new(), 0);
    for request in (number..asked.count).step_by(asked.clients).map(|turn| requests.get(turn % requests.len())) {
        let start = now();
        connection.ask(request.ok_or("a path is needed")?).await?;
        micros.push(micros_since(start));
        bytes += connection.body().len();
    }
    Ok((micros, bytes))
}
