//! Servers that follow another one.

use std::fs;

use super::cluster::Cluster;
use super::home::Home;
use super::installation::{as_server, output};
use super::processes::until;

impl Cluster {
    /// A copy that follows this server under a name, and accepts queries. Returns when it streams.
    pub fn standby(&self, name: &str) -> Cluster {
        self.must_not_be_shared();
        let home = Home::new();
        let source = self.home.path().display();
        let mut copy = as_server("pg_basebackup", &[]);
        copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--pgdata"]).arg(home.data());
        copy.arg("--dbname").arg(format!("host={source} port={} user=postgres application_name={name}", self.port()));
        output(&mut copy);
        forget_required_standbys(&home);
        let standby = Cluster::start_in(home, self.password.clone());
        let streams =
            format!("SELECT FROM pg_stat_replication WHERE application_name = '{name}' AND state = 'streaming'");
        until("the standby to stream", || self.is_true(&format!("EXISTS ({streams})")).then_some(()));
        standby
    }

    /// Sets `synchronous_standby_names`. From then on a commit waits for these standbys; with an empty text, for none.
    /// Returns when that is in effect, whether or not the standbys are connected.
    pub fn require_standby(&self, names: &str) {
        self.must_not_be_shared();
        let names = names.replace('\'', "''");
        self.sql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        self.sql("postgres", "SELECT pg_reload_conf()");
        // A new connection knows what the postmaster knows, which by then has told the others. The checkpointer switches
        // the waiting on for all of them, and hears of it before it begins another checkpoint.
        let setting = format!("current_setting('synchronous_standby_names') = '{names}'");
        until("the setting to be read", || self.is_true(&setting).then_some(()));
        self.sql("postgres", "CHECKPOINT");
    }

    /// Makes a standby a server of its own. Returns when it accepts writes.
    pub fn promote(&self) {
        assert_eq!(self.sql("postgres", "SELECT pg_promote(true, 60)"), "t", "{}", self.log());
    }

    fn is_true(&self, condition: &str) -> bool {
        self.sql("postgres", &format!("SELECT {condition}")) == "t"
    }
}

/// Once promoted, it would wait for itself.
fn forget_required_standbys(home: &Home) {
    let file = home.data().join("postgresql.auto.conf");
    let text = fs::read_to_string(&file).unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("synchronous_standby_names"));
    fs::write(&file, kept.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}
