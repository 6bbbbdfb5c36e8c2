//! What has ended stays ended, whatever the clock says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::register::{NamedCredential, Register};
use pilot_server::identity::Unknown;
use pilot_server::identity::credential_file::CredentialFile;
use pilot_store::sqlite::Sqlite;
use pilot_testing::Scratch;

const TOKEN: &str = "a-token-of-ana-that-is-long-enough-to-be-one";

fn file(not_before: &str, expires_at: &str) -> Credentials {
    let digest = Digest::of(TOKEN.as_bytes()).to_hex();
    let text = format!(
        r#"{{"schema_version":2,"credentials":[{{"credential_id":"ana-1","actor_id":"ana","roles":["initiator"],
            "token_sha3_256":"{digest}","not_before":"{not_before}","expires_at":"{expires_at}"}}]}}"#
    );
    Credentials::parse_expiring(text.as_bytes()).unwrap()
}

async fn identity(credentials: Credentials, clock: &Clock, directory: &std::path::Path) -> CredentialFile {
    let now = clock.clone();
    let store = Sqlite::open(&directory.join("pilot.db"), Arc::new(move || now.now())).unwrap();
    let present: BTreeSet<_> = credentials.entries().iter().map(NamedCredential::from).collect();
    let outside = directory.join("log.checkpoint.revocations");
    let outside = (outside.as_path(), "log.example");
    let register = Register::open(&store, &present, &BTreeSet::new(), true, outside, clock.now()).await.unwrap();
    let guard = Arc::new(LeakGuard::new(credentials.clone(), 7));
    CredentialFile::new(credentials, None, guard, Arc::new(register), clock.clone())
}

#[tokio::test]
async fn a_clock_that_steps_back_revives_no_credential_and_one_that_runs_ahead_ends_it_for_good() {
    let scratch = Scratch::new();
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {TOKEN}")).unwrap());
    let at = |text: &str| text.parse::<Time>().unwrap();
    let clock = Clock::manual(at("2026-10-31T23:59:59.999999Z"));
    let set = |text: &str| {
        if let Clock::Manual(micros) = &clock {
            micros.store(at(text).unix_micros(), Ordering::SeqCst);
        }
    };
    let identity = identity(file("2026-11-01T00:00:00Z", "2027-02-01T00:00:00Z"), &clock, scratch.path()).await;
    let verdict = || {
        let identified = identity.identify(&headers).map_err(|denial| denial.unknown);
        identified.map(|caller| caller.actor.actor_id.to_string())
    };
    for (now, expected) in [
        ("2026-10-31T23:59:59.999999Z", Err(Unknown::NotYet)),
        ("2026-11-01T00:00:00Z", Ok("ana".to_owned())),
        ("2027-01-31T23:59:59.999999Z", Ok("ana".to_owned())),
        // Nobody looked at the time while it was up, and it steps back.
        ("2026-11-02T00:00:00Z", Ok("ana".to_owned())),
        ("2027-02-01T00:00:00Z", Err(Unknown::Expired)),
        ("2027-01-31T23:00:00Z", Err(Unknown::Expired)),
        ("1970-01-01T00:00:00Z", Err(Unknown::Expired)),
        ("2037-01-01T00:00:00Z", Err(Unknown::Expired)),
        ("2026-11-02T00:00:00Z", Err(Unknown::Expired)),
    ] {
        set(now);
        assert_eq!(verdict(), expected, "{now}");
    }
}
