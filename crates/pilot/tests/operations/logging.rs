//! What the service logs, and how an operator changes that while it runs.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::support::harness::{Installation, TOKEN};
use crate::support::team::{person, team};

fn requests(log: &str) -> usize {
    log.lines().filter(|line| line.contains("request answered")).count()
}

#[test]
fn what_is_logged_changes_for_a_while_without_a_restart() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    server.session(TOKEN);
    let shown = installation.pilot(&["logging", "set", "--level", "error", "--for", "2h", "--output", "json"]);
    assert_eq!(shown.expect(0).json()["level"], "error");
    server.wait_for_log("an operator changed what is logged");
    server.session(TOKEN);
    installation.pilot(&["logging", "set", "--level", "debug", "--format", "text", "--for", "3s"]).expect(0);
    // In the new format, and back by itself when the time is over.
    server.wait_for_log("WARN an operator changed what is logged level=debug format=text until=");
    server.wait_for_log("logging is back to the configured settings\", \"level\": \"info\"");
    server.session(TOKEN);
    let log = server.stop().expect(0).stderr;
    assert_eq!(requests(&log), 2, "{log}");
}

#[test]
fn settings_outlive_a_restart_until_they_are_reset_and_a_faulty_file_changes_nothing() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    server.stop().expect(0);
    installation.pilot(&["logging", "set", "--level", "warn"]).expect(0);
    let server = installation.serve();
    server.wait_for_log("an operator changed what is logged");
    server.session(TOKEN);
    fs::write(installation.path("data/logging.json"), "{}").unwrap();
    server.wait_for_log("the log settings stay as they are");
    server.wait_for_log("is not what `pilot logging set` writes");
    installation.pilot(&["logging", "show"]).expect(3).says(&["pilot logging reset"]);
    installation.pilot(&["logging", "reset"]).expect(0);
    server.wait_for_log("logging is back to the configured settings");
    server.session(TOKEN);
    let log = server.stop().expect(0).stderr;
    assert_eq!(requests(&log), 1, "{log}");
    installation.pilot(&["logging", "set", "--level", "loud"]).expect(2).says(&["possible values"]);
    installation.pilot(&["logging", "set", "--level", "warn", "--for", "8d"]).expect(2).says(&["at most 7d"]);
    installation.pilot(&["logging", "set"]).expect(2).says(&["--level", "--format"]);
}

#[test]
fn the_configuration_says_what_is_logged_and_a_flag_of_the_command_comes_before_it() {
    let installation = Installation::with_ana();
    installation.write("pilot.toml", "listen = '127.0.0.1:0'\n[logging]\nlevel = 'warn'\nformat = 'text'\n");
    let server = installation.serve();
    server.session(TOKEN);
    assert_eq!(requests(&server.stop().expect(0).stderr), 0);
    let server = installation.serve_with(&["--log-level", "info"], &[]);
    server.session(TOKEN);
    let log = server.stop().expect(0).stderr;
    assert!(log.contains(" INFO request answered "), "{log}");
}

#[test]
fn signals_that_mean_nothing_here_do_not_end_the_service() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    for (signal, said) in [(Signal::USR1, "SIGUSR1 is ignored"), (Signal::USR2, "SIGUSR2 is ignored")] {
        server.signal(signal);
        server.wait_for_log(said);
    }
    assert_eq!(server.session(TOKEN).status, 200);
}

#[test]
fn where_requests_come_from_is_recorded_only_where_the_configuration_says() {
    for (origin, in_log, in_ledger) in
        [("off", false, json!(null)), ("log", true, json!(null)), ("log_and_ledger", true, json!(["127.0.0.1"]))]
    {
        let installation = team();
        installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[logging]\norigin = '{origin}'\n"));
        let server = installation.serve();
        let refused = person(&server, "ada").post("/v1/items", &json!({}));
        assert_eq!(refused.verdict(), "403 role_forbidden");
        let log = server.stop().expect(0).stderr;
        assert_eq!(log.contains("\"origin\": \"127.0.0.1\""), in_log, "{origin}: {log}");
        // The count of attempts is written when the service ends.
        let server = installation.serve();
        let events = person(&server, "ada").get("/v1/events?limit=200").json();
        let mut events = events["events"].as_array().unwrap().iter();
        let entry = events.find(|event| event["type"] == "access.refused").unwrap();
        assert_eq!(entry["details"]["origins"], in_ledger, "{origin}");
    }
}
