//! Servers that take their time: nobody waits longer than they said they would.

use std::time::Duration;

use pilot_notices::mail::{MailError, MailServer, MailTls, Mailer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::letter::a_letter;

const PATIENCE: Duration = Duration::from_millis(300);

async fn send(port: u16, tls: MailTls) -> Result<(), MailError> {
    let server = MailServer {
        host: "127.0.0.1".to_owned(),
        port,
        tls,
        login: None,
        from: "pilot@example.com".to_owned(),
        ca_file: None,
    };
    Mailer::open(&server).unwrap().send("ben@example.com", &a_letter(), "1@pilot.example", PATIENCE).await
}

/// A server that treats its one connection like this.
async fn serving<F: Future<Output = ()> + Send + 'static>(talk: impl FnOnce(TcpStream) -> F + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { talk(listener.accept().await.unwrap().0).await });
    port
}

async fn forever<T>(kept: T) {
    std::future::pending::<()>().await;
    drop(kept);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    for tls in [MailTls::Off, MailTls::StartTls, MailTls::Implicit] {
        let port = serving(forever).await;
        assert_eq!(send(port, tls).await, Err(MailError::TooSlow(PATIENCE)), "{tls:?}");
    }
}

#[tokio::test]
async fn a_server_that_drips_is_given_up() {
    let port = serving(|mut stream| async move {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        for byte in b"220-a\r\n".iter().cycle() {
            tick.tick().await;
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    });
    assert_eq!(send(port.await, MailTls::Off).await, Err(MailError::TooSlow(PATIENCE)));
}

/// Answers each line with the next of these, and then says nothing more.
async fn answering(stream: TcpStream, answers: &[&str]) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    for answer in answers {
        writer.write_all(answer.as_bytes()).await.unwrap();
        if answer.starts_with("354") {
            while lines.next_line().await.unwrap().is_some_and(|line| line != ".") {}
        } else {
            let _ = lines.next_line().await;
        }
    }
    forever((lines, writer)).await;
}

const TALK: [&str; 6] = ["220 hi\r\n", "250 hi\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n", "250 accepted\r\n"];

#[tokio::test]
async fn a_server_that_is_silent_after_the_mail_may_have_accepted_it() {
    let port = serving(|stream| answering(stream, &TALK[..5])).await;
    assert_eq!(send(port, MailTls::Off).await, Err(MailError::TooSlow(PATIENCE)));
}

#[tokio::test]
async fn a_mail_is_accepted_even_if_the_server_does_not_say_goodbye() {
    let port = serving(|stream| answering(stream, &TALK)).await;
    assert_eq!(send(port, MailTls::Off).await, Ok(()));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure_and_one_that_talks_nonsense_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    assert!(matches!(send(port, MailTls::Off).await, Err(MailError::Failed(_))));
    let port = serving(|stream| answering(stream, &["HTTP/1.1 400 Bad Request\r\n\r\n"])).await;
    assert!(matches!(send(port, MailTls::Off).await, Err(MailError::Failed(_))));
    let port = serving(|stream| answering(stream, &["554 no service here\r\n"])).await;
    assert!(matches!(send(port, MailTls::Off).await, Err(MailError::Failed(_) | MailError::TooSlow(_))));
}
