//! A monitor watches a log from outside: what it keeps, and when it raises an alarm.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::operations::second_place::{copy_database, verifier_key, work};
use crate::operations::witnesses::{Witness, begun, configure};
use crate::support::harness::{Finished, Installation, Server};
use crate::support::team::token;

/// One look at this service, with the state in `monitor`.
fn look(installation: &Installation, server: &Server, more: &[&str]) -> Finished {
    look_at(installation, &server.url(), more)
}

fn look_at(installation: &Installation, url: &str, more: &[&str]) -> Finished {
    let key = verifier_key(installation).to_string();
    let mut arguments = vec!["log", "monitor", "--once", "--state", "monitor", "--key", &key, "--url", url];
    arguments.extend(["--alarm", "./alarm.sh", "--metrics", "monitor.prom"]);
    arguments.extend(more);
    installation.pilot_as(&token("ada"), &arguments)
}

fn with_alarm(installation: &Installation) {
    installation.write("alarm.sh", "#!/bin/sh\ncat >> alarms.json\n");
    fs::set_permissions(installation.path("alarm.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn read(installation: &Installation, name: &str) -> String {
    fs::read_to_string(installation.path(name)).unwrap_or_default()
}

#[test]
fn a_monitor_keeps_checkpoints_and_follows_a_log_that_grows() {
    let installation = begun();
    with_alarm(&installation);
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &[&witness], 1);
    let running = witness.start();
    let server = installation.serve();
    work(&server, 2);
    let cosigner = witness.key.to_string();
    let first = look(&installation, &server, &["--witness-key", &cosigner]).expect(0).stdout;
    assert!(first.contains("first seen; cosigned by w1.example"), "{first}");
    let kept = read(&installation, "monitor/checkpoint");
    work(&server, 300);
    let second = look(&installation, &server, &["--witness-key", &cosigner]).expect(0).stdout;
    assert!(second.contains("continues the"), "{second}");
    assert_ne!(read(&installation, "monitor/checkpoint"), kept);
    let days = fs::read_dir(installation.path("monitor")).unwrap();
    let days = days.filter(|file| file.as_ref().unwrap().file_name().to_str().unwrap().starts_with("checkpoint-2"));
    assert!(days.count() >= 1, "the first of a day is kept for good");
    let metrics = read(&installation, "monitor.prom");
    assert!(metrics.contains("pilot_monitor_ok{") && metrics.contains("} 1\n"), "{metrics}");
    assert_eq!(read(&installation, "alarms.json"), "", "nothing was wrong");
    drop(running);
    let url = server.url();
    server.stop().expect(0);
    look_at(&installation, &url, &[]).expect(3);
    assert!(read(&installation, "alarms.json").contains("\"kind\":\"unreachable\""), "and then the service was gone");
}

#[test]
fn a_log_that_contradicts_what_was_seen_of_it_raises_an_alarm_and_both_sides_are_kept() {
    let (installation, twin) = (begun(), begun());
    with_alarm(&installation);
    copy_database(&installation.path("data"), &twin.path("data"));
    for name in ["log.key", "log.checkpoint"] {
        fs::copy(installation.path("data").join(name), twin.path("data").join(name)).unwrap();
    }
    let (server, fork) = (installation.serve(), twin.serve());
    work(&server, 5);
    look(&installation, &server, &[]).expect(0);
    // Shorter than what was seen, then longer: neither continues it.
    look(&installation, &fork, &[]).expect(1).says(&["entries are missing"]);
    work(&fork, 40);
    look(&installation, &fork, &[]).expect(1).says(&["does not continue"]);
    let alarms = read(&installation, "alarms.json");
    assert!(alarms.contains("\"kind\":\"shrunk\"") && alarms.contains("\"kind\":\"fork\""), "{alarms}");
    assert!(read(&installation, "monitor.prom").contains("kind=\"fork\"} 1"));
    for kept in ["monitor/conflict-first", "monitor/conflict-last"] {
        let both = read(&installation, kept);
        assert!(both.contains("shown now:") && both.contains("kept before:"), "{both}");
    }
    work(&server, 1);
    let honest = look(&installation, &server, &[]).expect(0).stdout;
    assert!(honest.contains("continues the"), "{honest}");
}
