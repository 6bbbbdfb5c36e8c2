//! Readers for `bench reads`, `bench growth` and `bench feed`, on connections that stay open. The first line of standard
//! input has the tokens of the readers, with spaces between them.
//!
//! - `readers_load ADDRESS ask CLIENTS COUNT` asks for the paths on the following lines, over and over, COUNT times in
//!   all, and prints `answers N`, `seconds S`, `bytes B`, `p50_micros M` and `p99_micros M`.
//! - `readers_load ADDRESS show PATH` prints the body of one answer.
//! - `readers_load ADDRESS follow PATH PAGES` turns that many pages of a list and prints the cursor it arrived at.
//! - `readers_load ADDRESS feeds` reads commands from the following lines, see `feeds.rs`.
//!
//! It speaks just enough HTTP/1.1 to this service to cost little itself: both share the machine's cores.
#![allow(clippy::print_stdout, reason = "the benchmark reads the figures from standard output")]

use std::error::Error;

use serde_json::Value;

use crate::connection::{Connection, get};

mod clock;
mod connection;
mod feeds;
mod requests;

type Anything = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Anything> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut lines = std::io::stdin().lines();
    let first = lines.next().ok_or("tokens are needed on standard input")??;
    let tokens: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
    // One thread: more would only take from the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments.as_slice() {
        [address, "ask", clients, count] => {
            let paths = lines.collect::<Result<Vec<_>, _>>()?;
            let asked = requests::Asked { tokens, paths, clients: clients.parse()?, count: count.parse()? };
            runtime.block_on(asked.run(address))
        }
        [address, "show", path] => runtime.block_on(show(address, &tokens, path)),
        [address, "follow", path, pages] => runtime.block_on(follow(address, &tokens, path, pages.parse()?)),
        [address, "feeds"] => feeds::run(&runtime, address, &tokens, lines),
        _ => Err("usage: readers_load ADDRESS ask CLIENTS COUNT | show PATH | follow PATH PAGES | feeds".into()),
    }
}

async fn show(address: &str, tokens: &[String], path: &str) -> Result<(), Anything> {
    let token = tokens.first().ok_or("a token is needed")?;
    let mut connection = Connection::open(address).await?;
    connection.ask(&get(path, token)).await?;
    print!("{}", String::from_utf8_lossy(connection.body()));
    Ok(())
}

async fn follow(address: &str, tokens: &[String], path: &str, pages: u64) -> Result<(), Anything> {
    let token = tokens.first().ok_or("a token is needed")?;
    let mut connection = Connection::open(address).await?;
    let mut cursor = None::<String>;
    for _ in 0..pages {
        let page = cursor.as_ref().map_or_else(|| path.to_owned(), |cursor| format!("{path}&cursor={cursor}"));
        connection.ask(&get(&page, token)).await?;
        let body: Value = serde_json::from_slice(connection.body())?;
        let next = body.get("next").and_then(Value::as_str).ok_or("the list has fewer pages")?;
        cursor = Some(next.to_owned());
    }
    println!("{}", cursor.unwrap_or_default());
    Ok(())
}
