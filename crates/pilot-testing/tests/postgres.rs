//! PostgreSQL servers for tests.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use pilot_testing::asked;
use pilot_testing::postgres::{Access, CERTIFIED, Cluster, ServerKey, Settings, psql, until};

const COUNT_WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

fn data_directory(cluster: &Cluster) -> PathBuf {
    cluster.sql("postgres", "SHOW data_directory").into()
}

/// The directory in `/proc` of a server's first process.
fn process(data: &Path) -> io::Result<PathBuf> {
    let text = fs::read_to_string(data.join("postmaster.pid"))?;
    Ok(Path::new("/proc").join(text.lines().next().ok_or(io::ErrorKind::InvalidData)?))
}

/// One that has ended may stay in the list until someone asks for its result.
fn has_ended(process: &Path) -> bool {
    fs::read_to_string(process.join("stat")).map_or(true, |line| line.contains(") Z "))
}

#[test]
fn two_databases_of_the_shared_server_are_separate() {
    let cluster = Cluster::shared();
    let (one, other) = (cluster.fresh_database(), cluster.fresh_database());
    psql(one.url(), "CREATE TABLE here (n int); INSERT INTO here VALUES (1)").unwrap();
    assert_eq!(cluster.sql(one.name(), "SELECT n FROM here"), "1");
    let error = psql(other.url(), "SELECT n FROM here").unwrap_err();
    assert!(error.contains("relation \"here\" does not exist"), "{error}");
}

#[test]
fn a_database_of_the_shared_server_is_gone_after_the_test() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", database.name());
    assert_eq!(cluster.sql("postgres", &count), "1");
    drop(database);
    assert_eq!(cluster.sql("postgres", &count), "0");
}

#[test]
fn the_settings_are_in_effect() {
    let options = vec![("default_transaction_isolation", "serializable"), ("application_name", "it's")];
    let cluster = Cluster::start(&Settings { options, checksums: true, ..Settings::default() });
    let shown = |name: &str| cluster.sql("postgres", &format!("SHOW {name}"));
    assert_eq!(shown("default_transaction_isolation"), "serializable");
    assert_eq!(shown("data_checksums"), "on");
    assert_eq!(shown("fsync"), "on");
    assert_eq!(shown("server_encoding"), "UTF8");
}

#[test]
#[should_panic(expected = "unrecognized configuration parameter")]
fn a_server_that_does_not_start_shows_its_log() {
    let _ = Cluster::start(&Settings { options: vec![("no_such_option", "1")], ..Settings::default() });
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_file() {
    for is_killed in [false, true] {
        let mut cluster = Cluster::start(&Settings::default());
        let data = data_directory(&cluster);
        let process = process(&data).unwrap();
        assert!(process.exists());
        if is_killed {
            cluster.kill();
        }
        drop(cluster);
        assert!(!process.exists());
        assert!(!data.parent().unwrap().exists());
    }
}

#[test]
fn a_killed_server_starts_again_with_its_data() {
    let mut cluster = Cluster::start(&Settings::default());
    let url = cluster.url("postgres");
    psql(&url, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").unwrap();
    cluster.kill();
    let error = psql(&url, "SELECT n FROM kept").unwrap_err();
    assert!(error.contains("Connection refused"), "{error}");
    cluster.start_again();
    assert_eq!(psql(&url, "SELECT n FROM kept").unwrap(), "1");
}

#[test]
fn a_commit_waits_for_a_paused_standby_and_goes_on_when_it_is_resumed() {
    let primary = Cluster::start(&Settings::default());
    primary.sql("postgres", "CREATE TABLE kept (n int)");
    let standby = primary.standby("second");
    primary.require_standby("second");
    primary.sql("postgres", "INSERT INTO kept VALUES (1)");
    standby.pause();
    thread::scope(|scope| {
        let insert = scope.spawn(|| primary.sql("postgres", "INSERT INTO kept VALUES (2)"));
        until("the commit to wait", || (primary.sql("postgres", COUNT_WAITING) == "1").then_some(()));
        assert_eq!(primary.sql("postgres", "SELECT count(*) FROM kept"), "1", "what waits is not visible");
        standby.resume();
        insert.join().unwrap();
    });
    assert_eq!(primary.sql("postgres", "SELECT count(*) FROM kept"), "2");
}

#[test]
fn a_promoted_standby_has_what_was_committed_and_accepts_writes() {
    let mut primary = Cluster::start(&Settings::default());
    primary.require_standby("ANY 1 (second, third)");
    let standbys = [primary.standby("second"), primary.standby("third")];
    let database = {
        let database = primary.fresh_database();
        primary.sql(database.name(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)");
        database.name().to_owned()
    };
    primary.require_standby("FIRST 2 (second, third)");
    primary.sql(&database, "INSERT INTO kept VALUES (2)");
    primary.kill();
    let [second, third] = standbys;
    second.promote();
    second.sql(&database, "INSERT INTO kept VALUES (3)");
    assert_eq!(second.sql(&database, "SELECT count(*) FROM kept"), "3");
    assert_ne!(second.fresh_database().name(), database);
    let error = psql(&third.url(&database), "INSERT INTO kept VALUES (3)").unwrap_err();
    assert!(error.contains("read-only transaction"), "{error}");
}

#[test]
fn a_server_with_a_password_refuses_without_it() {
    let cluster = Cluster::start(&Settings { access: Access::Password, ..Settings::default() });
    assert_eq!(psql(cluster.fresh_database().url(), "SELECT 1").unwrap(), "1");
    for (user, expected) in
        [("postgres", "no password supplied"), ("postgres:wrong", "password authentication failed for user")]
    {
        let error = psql(&cluster.url_for(user, "postgres"), "SELECT 1").unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_server_with_tls_asks_for_a_password_or_a_certificate() {
    for key in [ServerKey::Rsa, ServerKey::Ecdsa, ServerKey::Ed25519] {
        let cluster = Cluster::start(&Settings { access: Access::Tls(key), ..Settings::default() });
        let files = cluster.tls();
        let binding = if key == ServerKey::Ed25519 { "disable" } else { "require" };
        let rooted = format!("?sslmode=verify-full&sslrootcert={}", files.ca.display());
        let checked = format!("{rooted}&channel_binding={binding}");
        let certified = format!("{rooted}&sslcert={}&sslkey={}", files.certificate.display(), files.key.display());
        let run = |user: &str, options: &str| {
            let url = format!("{}{options}", cluster.url_for(user, "postgres"));
            psql(&url, "SELECT ssl, current_user FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        };
        let with_password = format!("postgres:{}", cluster.password());
        assert_eq!(run(&with_password, &checked).unwrap(), "t|postgres", "{key:?}");
        assert_eq!(run(CERTIFIED, &certified).unwrap(), format!("t|{CERTIFIED}"), "{key:?}");
        for (user, options, expected) in [
            ("postgres", checked.as_str(), "no password supplied"),
            ("postgres", certified.as_str(), "no password supplied"),
            (CERTIFIED, checked.as_str(), "connection requires a valid client certificate"),
            (&with_password, "?sslmode=disable", "no encryption"),
            (&with_password, "?sslmode=verify-full&sslrootcert=/dev/null", "certificate"),
        ] {
            let error = run(user, options).unwrap_err();
            assert!(error.contains(expected), "{key:?}: {error}");
        }
    }
}

#[test]
fn a_killed_test_program_leaves_no_server_and_no_file() {
    const HOLD: &str = "PILOT_HOLD_SERVERS";
    const ANNOUNCED: &str = "data directory: ";
    if asked(HOLD).is_some() {
        let paused = Cluster::start(&Settings::default());
        for cluster in [Cluster::shared(), &paused] {
            println!("\n{ANNOUNCED}{}", data_directory(cluster).display());
        }
        paused.pause();
        loop {
            thread::park();
        }
    }
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "postgres::a_killed_test_program_leaves_no_server_and_no_file", "--nocapture"]);
    let mut program = program.env(HOLD, "1").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines().map_while(Result::ok);
    let announced = lines.filter_map(|line| line.strip_prefix(ANNOUNCED).map(PathBuf::from));
    let servers: Vec<_> = announced.take(2).map(|data| (process(&data).unwrap(), data)).collect();
    assert_eq!(servers.len(), 2);
    program.kill().unwrap();
    program.wait().unwrap();
    for (process, data) in servers {
        until("the server to end", || has_ended(&process).then_some(()));
        until("its files to go", || (!data.parent().unwrap().exists()).then_some(()));
    }
}
