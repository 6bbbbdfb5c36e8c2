//! Production starts with everything it insists on, and says everything that is missing.

use crate::support::authority::{IDENTITY, MESH, RATE_LIMITS, ROLE_MAP, TLS, configure, installation};
use crate::support::harness::set_mode;

const ALL: [&str; 4] = [TLS, ROLE_MAP, RATE_LIMITS, IDENTITY];
/// What is said when the section is missing.
const SAID: [&str; 4] =
    ["TLS: set [tls]", "role map: set [credentials]", "rate limits: add", "identity: set [identity]"];

#[test]
fn each_single_missing_piece_refuses_the_start_by_name() {
    let (installation, _) = installation("production", &[]);
    let finished = installation.serve_in_vain().expect(2);
    finished.says(&SAID);
    assert_eq!(finished.stdout, "");
    for (left_out, said) in SAID.iter().enumerate() {
        let rest: Vec<_> = (0..ALL.len()).filter(|at| *at != left_out).map(|at| ALL[at]).collect();
        configure(&installation, "production", &rest);
        let finished = installation.serve_in_vain().expect(2);
        finished.says(&[said]);
        for other in SAID.iter().filter(|other| *other != said) {
            assert!(!finished.stderr.contains(other), "{other:?} is not missing: {finished:#?}");
        }
        // The check says the same, and in the same words.
        let checked = installation.pilot(&["check-config"]).expect(2);
        assert!(checked.stdout.contains(said), "{checked:#?}");
    }
    assert!(!installation.path("data").exists(), "a refused start leaves nothing behind");
}

#[test]
fn with_all_pieces_it_starts_with_tls_here_or_at_a_mesh() {
    let (installation, _) = installation("production", &ALL);
    installation.pilot(&["check-config"]).expect(0);
    let server = installation.serve();
    assert!(server.url().starts_with("https://"), "{}", server.url());
    server.stop().expect(0);
    configure(&installation, "production", &[MESH, ROLE_MAP, RATE_LIMITS, IDENTITY]);
    let server = installation.serve();
    assert!(server.url().starts_with("http://"), "{}", server.url());
    server.stop().expect(0);
}

#[test]
fn files_that_others_may_read_are_refused_in_production_and_tolerated_in_pilot() {
    let (installation, _) = installation("production", &ALL);
    for file in ["credentials.json", "tls.key"] {
        set_mode(&installation.path(file), 0o640);
        installation.serve_in_vain().expect(2).says(&[file, "others can read it (mode 0640)", "chmod 600"]);
        configure(&installation, "pilot", &ALL);
        let server = installation.serve();
        server.wait_for_log("others can read it");
        server.stop().expect(0);
        configure(&installation, "production", &ALL);
        set_mode(&installation.path(file), 0o600);
    }
}
