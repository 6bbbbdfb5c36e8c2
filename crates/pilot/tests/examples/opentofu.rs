//! `examples/opentofu`, with a stand-in for tofu and for terraform.

use super::stage::{Stage, change_a_byte, sha256_of};

/// Plans into the file it is told, shows what is in it, and applies by being recorded.
const TOFU: &str = r#"case $1 in
plan) for word; do case $word in -out=*) cp main.tf "${word#-out=}" ;; esac; done; exit ;;
show) sed 's/^/  + /' "$3"; exit ;;
esac"#;

fn stage() -> Stage {
    let stage = Stage::new("opentofu", &["propose", "apply"]);
    stage.stand_in("bin/tofu", TOFU);
    stage.stand_in("bin/terraform", TOFU);
    std::fs::write(stage.path("work/main.tf"), "replicas = 2\n").unwrap();
    stage
}

#[test]
fn the_approved_plan_is_applied_and_shown_to_those_who_approve() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    assert_eq!(stage.item(&id)["payload"]["expected_outcome"], "  + replicas = 2\n");
    // What would be planned now is not what was approved.
    std::fs::write(stage.path("work/main.tf"), "replicas = 9\n").unwrap();
    stage.run("eli", work).expect(0);
    let plan = sha256_of(&stage.path("work/approved.tfplan"));
    assert_eq!(stage.record(), format!("tofu apply -input=false -no-color {plan}\n"));
    stage.succeeded(&id);
    stage.has_no_token();
}

#[test]
fn a_plan_with_one_byte_changed_is_not_applied() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let id = stage.propose(propose);
    change_a_byte(&stage.path("work/approved.tfplan"));
    stage.run("eli", work).expect(1);
    stage.refused(&id, &["approved.tfplan: its bytes are not those that were approved", "propose a new item"]);
}

#[test]
fn terraform_is_one_variable_away_and_not_what_was_approved_for_tofu() {
    let stage = stage();
    let [propose, work] = &stage.page()[..] else { panic!("the page has other blocks") };
    let with_terraform = format!("export TOFU=terraform\n{}", work.replace("--exec", "--env-allow TOFU --exec"));
    let id = stage.propose(propose);
    stage.run("eli", &with_terraform).expect(1);
    stage.refused(&id, &["word 0 of the command line is", "/bin/tofu"]);
    let id = stage.propose(&format!("export TOFU=terraform\n{propose}"));
    stage.run("eli", &with_terraform).expect(0);
    assert!(stage.record().starts_with("terraform apply "), "{}", stage.record());
    stage.succeeded(&id);
}
