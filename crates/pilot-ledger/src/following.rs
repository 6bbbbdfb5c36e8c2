//! What other nodes write takes effect here too: a credential that was revoked anywhere is refused everywhere.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::entry::{Entry, EntryType};
use pilot_store::{Store, StoreError};

use crate::register::Register;

/// How many entries are looked through at a time.
const LOOKED_THROUGH_MAX: u64 = 10_000;
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
        let until = size.min(next + LOOKED_THROUGH_MAX);
        match apply(&*store, &register, next, until).await {
            Ok(()) => {
                next = until;
                store.has_applied(next);
            }
            Err(error) => {
                // Until this works again, the node soon answers nobody.
                tracing::warn!(cause = %error, "what other nodes wrote cannot be read; retrying");
                tokio::time::sleep(RETRIED).await;
            }
        }
    }
}

async fn apply(store: &dyn Store, register: &Register, from: u64, until: u64) -> Result<(), StoreError> {
    for stored in store.service_entries(from, until).await? {
        if is_revocation(&stored.bytes) {
            let entry = Entry::parse(&stored.bytes)
                .map_err(|error| StoreError::Unavailable(format!("entry {}: {error}", stored.index)))?;
            register.follow(&entry).await;
        }
    }
    Ok(())
}

/// Only these are worth reading whole.
fn is_revocation(bytes: &[u8]) -> bool {
    let kind = EntryType::CredentialRevoked.as_str();
    std::str::from_utf8(bytes).is_ok_and(|text| text.contains(kind))
}
