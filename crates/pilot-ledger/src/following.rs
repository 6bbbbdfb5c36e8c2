//! What other nodes write takes effect here too: a credential that was revoked anywhere is refused everywhere.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::entry::{Entry, EntryType};
use pilot_store::{Store, StoreError};

use crate::register::Register;

/// How many entries are read at a time.
const READ_MAX: usize = 1_000;
const RETRIED: Duration = Duration::from_millis(100);

/// Runs as long as the service does. `applied` is how many entries the service knew when it started.
pub async fn run(store: Arc<dyn Store>, register: Arc<Register>, applied: u64) {
    if !store.is_shared() {
        return;
    }
    let (mut head, mut next) = (store.head(), applied);
    loop {
        let size = head.borrow_and_update().size();
        if next >= size {
            if head.changed().await.is_err() {
                return;
            }
            continue;
        }
        match apply(&*store, &register, next).await {
            Ok(after) => next = after,
            Err(error) => {
                // Until this works again, the others wait for this node only as long as it answers anyone.
                tracing::warn!(cause = %error, "what other nodes wrote cannot be read; retrying");
                tokio::time::sleep(RETRIED).await;
            }
        }
        store.has_applied(next);
    }
}

/// Applies a page of entries, and returns the index after the last.
async fn apply(store: &dyn Store, register: &Register, from: u64) -> Result<u64, StoreError> {
    let mut next = from;
    for stored in store.entries_on_duty(from, READ_MAX).await? {
        next = stored.index + 1;
        if is_revocation(&stored.bytes) {
            let entry = Entry::parse(&stored.bytes)
                .map_err(|error| StoreError::Unavailable(format!("entry {}: {error}", stored.index)))?;
            register.follow(&entry).await;
        }
    }
    Ok(next)
}

/// Most entries are about items; only these are worth reading whole.
fn is_revocation(bytes: &[u8]) -> bool {
    let kind = EntryType::CredentialRevoked.as_str();
    std::str::from_utf8(bytes).is_ok_and(|text| text.contains(kind))
}
