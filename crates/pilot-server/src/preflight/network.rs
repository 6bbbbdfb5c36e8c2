//! Whether the others that the service needs can be reached now. A start needs only the database; without the rest,
//! something will not work.

use std::future::Future;
use std::time::Duration;

use http::Uri;
use pilot_ledger::clock::Clock;
use pilot_setup::config::Config;
use pilot_setup::log_key::LogKey;
use pilot_store::postgres;
use tokio::net::TcpStream;

use super::{Finding, Verdict};
use crate::identity::oauth::Trusted;

/// Someone is waiting for the result.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks all of them at the same time.
pub async fn reach(config: &Config) -> Vec<Finding> {
    let (provider, database, signer) =
        tokio::join!(reach_provider(config), reach_database(config), reach_signer(config));
    let witnesses = config.log.witnesses.iter().map(|witness| ("witnesses", witness.url.clone()));
    let authority = config.log.timestamps.iter().map(|timestamps| ("timestamps", timestamps.url.clone()));
    let collector = config.traces.iter().map(|traces| ("traces", traces.url.clone()));
    let asked: Vec<_> = witnesses
        .chain(authority)
        .chain(collector)
        .map(|(check, url)| tokio::spawn(async move { reach_url(check, &url).await }))
        .collect();
    let mut findings: Vec<_> = database.into_iter().chain(provider).chain(signer).collect();
    for asked in asked {
        findings.extend(asked.await.ok().flatten());
    }
    findings
}

async fn in_time<T>(asked: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("there was no answer within {} s", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, asked).await.map_err(late).flatten()
}

/// Nothing if the log's key is in a file.
async fn reach_signer(config: &Config) -> Option<Finding> {
    let signer = config.log.signer.as_ref()?;
    Some(match LogKey::expected(config, signer).await {
        Ok(key) => {
            let detail = format!("{} signs for {}", signer.exec.program.display(), key.verifier());
            Finding::new("log signer", Verdict::Ok, detail)
        }
        Err(error) => Finding::failed("log signer", &error),
    })
}

async fn reach_provider(config: &Config) -> Vec<Finding> {
    // What is wrong with the section itself is a finding of its own.
    let Ok(Some(Trusted { provider, introspector })) = Trusted::open(config, &Clock::System) else { return Vec::new() };
    let mut findings = Vec::new();
    match Box::pin(in_time(provider.examine())).await {
        Ok(0) => findings
            .push(("it publishes no key that can be used, so nobody could sign in".to_owned(), Verdict::Warning)),
        Ok(keys) => findings
            .push((format!("the identity provider answers, and has {keys} key(s) that can be used"), Verdict::Ok)),
        Err(cause) => findings.push((format!("nobody could sign in now: {cause}"), Verdict::Warning)),
    }
    if let Some(introspector) = introspector {
        let asked = async {
            introspector.probe(provider.outgoing()).await;
            introspector.check().map_err(|undecided| undecided.0)
        };
        if let Err(cause) = Box::pin(in_time(asked)).await {
            findings.push((format!("nobody could sign in now: {cause}"), Verdict::Warning));
        }
    }
    findings.into_iter().map(|(detail, verdict)| Finding::new("provider", verdict, detail)).collect()
}

async fn reach_database(config: &Config) -> Option<Finding> {
    let access = config.postgres()?;
    let reached = in_time(async { postgres::reach(&access).await.map_err(|error| error.to_string()) }).await;
    Some(match reached {
        Ok(()) => Finding::new("database", Verdict::Ok, "answers, and accepts the service's user"),
        Err(cause) => Finding::new("database", Verdict::Environment, format!("cannot be used now: {cause}")),
    })
}

/// `None` if it can be reached.
async fn reach_url(check: &'static str, url: &Uri) -> Option<Finding> {
    let host = url.host()?.trim_matches(['[', ']']).to_owned();
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    let connected = async { TcpStream::connect((host, port)).await.map_err(|error| error.to_string()) };
    let cause = in_time(connected).await.err()?;
    Some(Finding::new(check, Verdict::Warning, format!("{url}: cannot be reached now: {cause}")))
}
