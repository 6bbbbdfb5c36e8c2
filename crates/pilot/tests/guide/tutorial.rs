//! docs/guide/tutorial.md, from the first command to the last.

use super::page::Page;
use super::recorded::Recorder;
use super::shell::Shell;
use crate::support::harness::{Installation, Port};

#[test]
fn the_tutorial_works_as_it_is_written() {
    let (service, operations) = (Port::reserve(), Port::reserve());
    let installation = Installation::bare();
    let home = installation.path("").canonicalize().unwrap();
    let variables = [
        ("PILOT_LISTEN", service.address().to_string()),
        ("PILOT_OPS__LISTEN", operations.address().to_string()),
        ("PILOT_URL", format!("http://{}", service.address())),
    ];
    let mut shell = Shell::start(&home, &variables);
    Page::open("docs/guide/tutorial.md").run(&mut shell, &mut Recorder::new(home.to_str().unwrap()));
}
