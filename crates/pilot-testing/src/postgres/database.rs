//! A database of a test's own.

use std::sync::atomic::{AtomicU32, Ordering};

use super::installation::psql;

/// An empty database. On the shared server it is removed when this is dropped, with every connection to it.
pub struct Database {
    name: String,
    url: String,
    /// Where to remove it.
    shared: Option<String>,
}

impl Database {
    /// `maintenance` is the URL of a superuser's database on the same server.
    pub(super) fn create(maintenance: String, is_shared: bool, url: impl FnOnce(&str) -> String) -> Database {
        // For the whole program: a standby has the databases of its primary.
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        psql(&maintenance, &format!("CREATE DATABASE {name} TEMPLATE template0")).unwrap();
        Database { url: url(&name), name, shared: is_shared.then_some(maintenance) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(maintenance) = &self.shared {
            // Not worth a panic, least of all one during another.
            let _ = psql(maintenance, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}
