//! The yardstick of `cargo xtask bench session`: axum as it comes, one route, a static body, nothing else.
#![allow(clippy::print_stdout, reason = "the benchmark reads the address from standard output")]

use axum::{Router, http::header, routing::get};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let body = r#"{"actor_id":"actor-0500@example.org","role":"approver"}"#;
    let router = Router::new()
        .route("/v1/session", get(move || async move { ([(header::CONTENT_TYPE, "application/json")], body) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router).await
}
