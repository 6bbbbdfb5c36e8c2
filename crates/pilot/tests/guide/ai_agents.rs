//! docs/guide/ai-agents.md, from the first command to the last.

use std::fs;
use std::path::Path;

use super::page::Page;
use super::recorded::Recorder;
use super::shell::Shell;
use crate::support::harness::{Installation, Port};

#[test]
fn the_page_about_ai_agents_works_as_it_is_written() {
    let service = Port::reserve();
    let installation = Installation::bare();
    let home = installation.path("").canonicalize().unwrap();
    let variables = [
        ("PILOT_LISTEN", service.address().to_string()),
        ("PILOT_OPS__LISTEN", "127.0.0.1:0".to_owned()),
        ("PILOT_URL", format!("http://{}", service.address())),
    ];
    let mut shell = Shell::start(&home, &variables);
    Page::open("docs/guide/ai-agents.md").run(&mut shell, &mut Recorder::new(home.to_str().unwrap()));
}

#[test]
fn the_files_on_the_page_are_those_of_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/guide/ai-agents.md")).unwrap();
    for name in ["ask", "role-map.json"] {
        let file = fs::read_to_string(root.join("examples/ai-agent").join(name)).unwrap();
        assert!(page.contains(&file), "{name} differs");
    }
}
