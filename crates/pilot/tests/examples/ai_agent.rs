//! `examples/ai-agent`, with a script in place of a model.

use serde_json::Value;

use super::stage::Stage;

fn stage() -> Stage {
    Stage::new("ai-agent", &["ask"])
}

#[test]
fn a_proposal_is_made_once_and_cannot_be_approved_by_its_agent() {
    let stage = stage();
    let [propose, approve] = &stage.page()[..] else { panic!("the page has other blocks") };
    let first = stage.run("ana", propose).expect(0);
    assert!(first.stdout.starts_with("Proposed. Item "), "{first:#?}");
    let second = stage.run("ana", propose).expect(0);
    assert!(second.stdout.starts_with("This was proposed before; nothing was created."), "{second:#?}");
    for who in ["ana", "ben", "sol", "eli", "ada"] {
        let refused = stage.run(who, approve).expect(0);
        assert!(refused.stdout.starts_with("unknown tool \"approve\""), "{refused:#?}");
    }
    stage.has_no_token();
}

#[test]
fn the_clients_configuration_starts_the_server_with_a_token_from_a_file() {
    let configuration: Value = serde_json::from_str(&stage().text("mcp.json")).unwrap();
    let server = &configuration["mcpServers"]["pilot"];
    assert_eq!((&server["command"], &server["args"][0]), (&"/usr/bin/pilot".into(), &"mcp".into()));
    assert!(server["args"].as_array().unwrap().contains(&"--token-file".into()), "{server}");
}
