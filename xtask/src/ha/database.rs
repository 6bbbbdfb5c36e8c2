//! The three database machines: etcd, and Patroni, which starts and watches PostgreSQL.

use std::fs;

use super::network::{self, DATABASES, NETWORK, as_user, database_address, database_name};
use super::place::{Place, filled, password};
use super::process::{output, start, wait_until};
use crate::postgres;
use crate::step::{Failure, program, run};

const START_SECONDS: u64 = 120;

pub(crate) fn start_all(place: &Place) -> Result<(), Failure> {
    let passwords = [password()?, password()?, password()?];
    certificates(place)?;
    for member in DATABASES {
        prepare(place, member, &passwords)?;
        start_etcd(place, member)?;
    }
    for member in DATABASES {
        start_patroni(place, member)?;
        // The first to come creates the database, and it should not matter which one that is; but a copy of an empty
        // one is quicker than a race.
        if member == 1 {
            wait_until("a primary", START_SECONDS, || primary().is_some())?;
        }
    }
    wait_until("two standbys, one of them synchronous", START_SECONDS, || is_whole(place))?;
    let password = password()?;
    place.write(&place.base().join("database-password"), &format!("{password}\n"))?;
    create_database(place, &password)
}

fn words(place: &Place, member: usize) -> Vec<(&'static str, String)> {
    let name = database_name(member);
    let each = |form: &dyn Fn(usize) -> String| DATABASES.map(form).join(",");
    vec![
        ("@NAME@", name.clone()),
        ("@ADDRESS@", database_address(member)),
        ("@NETWORK@", NETWORK.to_owned()),
        ("@ETCD_HOSTS@", each(&|other| format!("{}:2379", database_address(other)))),
        ("@ETCD_PEERS@", each(&|other| format!("{}=http://{}:2380", database_name(other), database_address(other)))),
        ("/etc/patroni", place.text(&name, "")),
        ("/usr/lib/postgresql/15/bin", postgres::programs().display().to_string()),
        ("/var/lib/postgresql/15/pilot", place.text(&name, "data")),
        ("/var/lib/postgresql/.patroni-pgpass", place.text(&name, "pgpass")),
        ("/run/postgresql", place.text(&name, "run")),
        ("/var/lib/etcd/pilot", place.text(&name, "etcd")),
        // The machine that runs this may have a real one.
        ("mode: required", "mode: off".to_owned()),
    ]
}

fn prepare(place: &Place, member: usize, passwords: &[String; 3]) -> Result<(), Failure> {
    let name = database_name(member);
    place.directory(&place.of(&name, "run"))?;
    let mut words = words(place, member);
    let secrets = ["@SUPERUSER_PASSWORD@", "@REPLICATION_PASSWORD@", "@REWIND_PASSWORD@"];
    words.extend(secrets.into_iter().zip(passwords.iter().cloned()));
    let words: Vec<(&str, &str)> = words.iter().map(|(word, value)| (*word, value.as_str())).collect();
    for file in ["patroni.yml", "etcd.env"] {
        place.write(&place.of(&name, file), &filled(file, &words)?)?;
    }
    Ok(())
}

/// An authority for this cluster only, and a certificate for each member.
fn certificates(place: &Place) -> Result<(), Failure> {
    let openssl = |arguments: &str| run(&mut quiet_openssl(arguments));
    let (authority, key) = (place.text("", "database-ca.pem"), place.text("", "database-ca.key"));
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 30";
    openssl(&format!("{new} -subj /CN=pilot-ha -keyout {key} -out {authority}"))?;
    for member in DATABASES {
        let name = database_name(member);
        place.directory(&place.of(&name, ""))?;
        let (secret, certificate) = (place.of(&name, "server.key"), place.of(&name, "server.pem"));
        openssl(&format!(
            "{new} -subj /CN={name} -addext subjectAltName=IP:{} -addext basicConstraints=critical,CA:FALSE \
             -CA {authority} -CAkey {key} -keyout {} -out {}",
            database_address(member),
            secret.display(),
            certificate.display()
        ))?;
        place.own(&secret)?;
        place.own(&certificate)?;
        place.copy(&place.base().join("database-ca.pem"), &place.of(&name, "ca.pem"))?;
    }
    place.own(&place.base().join("database-ca.pem"))
}

fn quiet_openssl(arguments: &str) -> std::process::Command {
    let mut command = program("openssl", &arguments.split_whitespace().collect::<Vec<_>>());
    command.stderr(std::process::Stdio::null());
    command
}

pub(crate) fn start_etcd(place: &Place, member: usize) -> Result<(), Failure> {
    let name = database_name(member);
    let file = place.of(&name, "etcd.env");
    let settings = fs::read_to_string(&file).map_err(|error| Failure::environment(format!("etcd.env: {error}")))?;
    let mut command = as_user(Some(&name), "etcd", &[]);
    command.envs(settings.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('=')));
    start(&mut command, &place.of(&name, "etcd.log")).map(drop)
}

pub(crate) fn start_patroni(place: &Place, member: usize) -> Result<(), Failure> {
    let name = database_name(member);
    let mut command = as_user(Some(&name), "patroni", &[&place.text(&name, "patroni.yml")]);
    start(&mut command, &place.of(&name, "patroni.log")).map(drop)
}

fn create_database(place: &Place, password: &str) -> Result<(), Failure> {
    let member = primary().ok_or_else(|| Failure::environment("there is no primary"))?;
    for statement in [
        format!("CREATE ROLE pilot LOGIN PASSWORD '{password}'"),
        "CREATE DATABASE pilot OWNER pilot ENCODING 'UTF8' TEMPLATE template0".to_owned(),
    ] {
        let created = ask(place, member, "postgres", &statement);
        created.ok_or_else(|| Failure::environment("the database could not be created; see patroni.log"))?;
    }
    Ok(())
}

pub(crate) fn ask(place: &Place, member: usize, database: &str, statement: &str) -> Option<String> {
    let socket = place.text(&database_name(member), "run");
    let arguments = ["--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-h", &socket, "-d", database, "-c", statement];
    let mut command = as_user(None, "timeout", &["5", "psql"]);
    output(command.args(arguments).env("PGCONNECT_TIMEOUT", "2"))
}

/// The member that takes writes, as its own Patroni sees it: it holds the leader's key.
pub(crate) fn primary() -> Option<usize> {
    DATABASES.into_iter().find(|&member| status(member, "primary") == 200)
}

fn status(member: usize, path: &str) -> u16 {
    let url = format!("http://{}:8008/{path}", database_address(member));
    network::status(&url)
}

/// One primary, two standbys that stream, one of them synchronous and named.
pub(crate) fn is_whole(place: &Place) -> bool {
    let Some(primary) = primary() else { return false };
    let statement = "SELECT count(*) FILTER (WHERE state = 'streaming'), count(*) FILTER (WHERE sync_state = 'sync'), \
                     current_setting('synchronous_standby_names') <> '*' FROM pg_stat_replication";
    ask(place, primary, "postgres", statement).is_some_and(|answer| answer.trim() == "2|1|t")
        && DATABASES.iter().filter(|&&member| status(member, "replica") == 200).count() == 2
}
