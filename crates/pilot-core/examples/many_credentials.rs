//! Makes a credential file of any size, for benchmarks: `many_credentials 1000`.
//!
//! Prints the clear token of the middle entry on the first line and the credential file on those after it; with `tokens`
//! as second argument, token, actor and role of each entry, one entry per line. The tokens come from a counter, so a
//! file made here must never guard anything.
#![allow(clippy::print_stdout, reason = "the benchmark reads token and file from standard output")]

use std::error::Error;

use pilot_core::actor::Actor;
use pilot_core::credentials::{Credential, Credentials, Schema};
use pilot_core::role::Role;
use pilot_core::token::Token;

fn main() -> Result<(), Box<dyn Error>> {
    let count: u32 = std::env::args().nth(1).ok_or("how many credentials?")?.parse()?;
    let mut entries = Vec::new();
    for (number, role) in (0..count).zip(Role::ALL.iter().cycle()) {
        let actor = Actor::new(format!("actor-{number:04}@example.org").parse()?, *role);
        entries.push(Credential::new(actor, &token(number)));
    }
    if std::env::args().nth(2).is_some_and(|what| what == "tokens") {
        for (number, Credential { actor, .. }) in (0..count).zip(&entries) {
            println!("{} {} {}", *token(number).hand_over(), actor.actor_id, actor.role);
        }
        return Ok(());
    }
    println!("{}", *token(count / 2).hand_over());
    print!("{}", Credentials::new(Schema::One, entries).to_json());
    Ok(())
}

fn token(number: u32) -> Token {
    let mut bytes = [0x5A; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    Token::generate(&bytes)
}
