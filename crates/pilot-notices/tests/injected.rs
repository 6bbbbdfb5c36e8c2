//! Somebody on the way who adds answers of their own, before the connection is encrypted.

use std::time::Duration;

use pilot_notices::mail::{MailError, MailServer, MailTls, Mailer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy};
use tokio::net::{TcpListener, TcpStream};

use crate::letter::a_letter;
use crate::server::Server;

/// Passes everything on, and adds these lines to the answer that TLS may begin.
async fn between(listener: TcpListener, server: u16, added: &str) {
    let (client, _) = listener.accept().await.unwrap();
    let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
    let ((mut from_client, mut to_client), (from_server, mut to_server)) = (client.into_split(), server.into_split());
    tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
    let mut from_server = BufReader::new(from_server);
    let mut line = String::new();
    while !line.contains("Ready to start TLS") {
        line.clear();
        from_server.read_line(&mut line).await.unwrap();
        let added = if line.contains("Ready to start TLS") { added } else { "" };
        to_client.write_all(format!("{line}{added}").as_bytes()).await.unwrap();
    }
    let _ = copy(&mut from_server, &mut to_client).await;
}

async fn send_through(server: &Server, added: &'static str) -> Result<(), MailError> {
    let settings = server.settings(MailTls::StartTls);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(between(listener, settings.port, added));
    let mailer = Mailer::open(&MailServer { port, ..settings }).unwrap();
    mailer.send("ben@example.com", &a_letter(), "1@pilot.example", Duration::from_mins(1)).await
}

#[tokio::test]
async fn an_answer_that_came_before_tls_is_not_taken_for_one_within_it() {
    let mut server = Server::start("starttls");
    send_through(&server, "").await.unwrap();
    server.accepted();
    let all = "250-x\r\n250 AUTH PLAIN\r\n235 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 accepted\r\n221 bye\r\n";
    for added in ["250 x\r\n", "250-x", all] {
        let sent = send_through(&server, added).await;
        assert!(matches!(&sent, Err(MailError::Failed(why)) if why.contains("corrupt message")), "{added:?}: {sent:?}");
    }
}
