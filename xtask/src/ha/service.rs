//! Three nodes of pilot on the database, with the same credentials, role map and signing key.

use super::network::{self, DATABASES, NODES, as_user, database_address, node_address, node_name};
use super::place::Place;
use super::process::{output, start, wait_until};
use crate::step::{Failure, run, target_dir};

pub(crate) const PORT: u16 = 7450;
const START_SECONDS: u64 = 60;

const ACTORS: [(&str, &str); 5] =
    [("ana", "initiator"), ("ben", "approver"), ("sol", "security_admin"), ("eli", "executor"), ("ada", "auditor")];

pub(crate) fn start_all(place: &Place, guests: &[String]) -> Result<(), Failure> {
    let bin = place.base().join("bin");
    place.directory(&bin)?;
    place.copy(&target_dir().join("debug/pilot"), &bin.join("pilot"))?;
    make_house(place, guests)?;
    for node in NODES {
        prepare(place, node)?;
        start_node(place, node)?;
        // The first one creates the tables.
        wait_until(&format!("node {node} ready"), START_SECONDS, || is_ready(node))?;
    }
    Ok(())
}

fn pilot(place: &Place, machine: Option<&str>, arguments: &[&str]) -> std::process::Command {
    as_user(machine, &place.text("bin", "pilot"), arguments)
}

/// What all nodes have in common.
fn make_house(place: &Place, guests: &[String]) -> Result<(), Failure> {
    let house = place.text("house", "");
    run(pilot(place, None, &["init", &house, "--log-name", "ha.example"]).stdout(std::process::Stdio::null()))?;
    let guests = guests.iter().map(|guest| (guest.as_str(), "initiator"));
    let actors: Vec<(&str, &str)> = ACTORS.into_iter().chain(guests).collect();
    let lines = actors.iter().map(|(actor, role)| format!(r#"{{"actor_id":"{actor}","role":"{role}"}}"#));
    let lines = lines.collect::<Vec<_>>().join(",");
    let map = format!(r#"{{"schema_version":1,"approved_by":["Ina","Jo"],"actors":[{lines}]}}"#);
    place.write(&place.of("house", "role-map.json"), &map)?;
    place.directory(&place.base().join("tokens"))?;
    let config = place.text("house", "pilot.toml");
    for (actor, role) in actors {
        let token = place.text("tokens", actor);
        let new = ["credential", "new", "--config", &config, "--actor", actor, "--role", role, "--token-out", &token];
        // For each of them it says that a service has to be restarted.
        output(&mut pilot(place, None, &new))
            .ok_or_else(|| Failure::environment(format!("{actor} could not be given a credential")))?;
    }
    Ok(())
}

fn prepare(place: &Place, node: usize) -> Result<(), Failure> {
    let name = node_name(node);
    place.directory(&place.of(&name, ""))?;
    place.directory(&place.of(&name, "data"))?;
    place.copy(&place.of("house", "data/log.key"), &place.of(&name, "data/log.key"))?;
    let hosts = DATABASES.map(|member| format!("{}:5432", database_address(member))).join(",");
    let base = place.base().display();
    let text = format!(
        r#"listen = "{address}:{PORT}"

[node]
name = "{name}"

[store]
url = "postgres://pilot@{hosts}/pilot"
password_file = "{base}/database-password"
ca_file = "{base}/database-ca.pem"

[credentials]
file = "{base}/house/credentials.json"
role_map = "{base}/house/role-map.json"

[ops]
listen = "{address}:{ops}"
"#,
        address = node_address(node),
        ops = PORT + 1,
    );
    place.write(&place.of(&name, "pilot.toml"), &text)
}

pub(crate) fn start_node(place: &Place, node: usize) -> Result<(), Failure> {
    let name = node_name(node);
    let mut command = pilot(place, Some(&name), &["serve", "--config", &place.text(&name, "pilot.toml")]);
    start(&mut command, &place.of(&name, "pilot.log")).map(drop)
}

pub(crate) fn is_ready(node: usize) -> bool {
    network::status(&format!("http://{}:{PORT}/readyz", node_address(node))) == 200
}
