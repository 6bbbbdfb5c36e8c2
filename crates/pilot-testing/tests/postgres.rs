//! PostgreSQL servers for tests.

use pilot_testing::postgres::{Cluster, Settings, psql};

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
