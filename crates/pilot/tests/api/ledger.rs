//! The ledger as auditors see it: the log recomputed from its pieces, and the entries about access.

use std::thread;

use pilot_core::document::ContentDigest;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::merkle::{Hash, root_of};
use pilot_evidence::note::VerifierKey;
use pilot_evidence::proof::check_inclusion;
use serde_json::{Value, json};

use crate::support::harness::{Installation, Server, bearer, credential_file, digest, role_map};
use crate::support::team::{TEAM, payload, person, team, token};

fn checkpoint(server: &Server, who: &str, key: &VerifierKey) -> Checkpoint {
    let answer = person(server, who).get("/v1/log/checkpoint");
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    Checkpoint::open(&String::from_utf8(answer.body).unwrap(), key).unwrap()
}

fn verifier_key(installation: &Installation) -> VerifierKey {
    let printed = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
    VerifierKey::parse(printed.trim()).unwrap()
}

/// The path of a tile's part: `000`, or `000.p/17`.
fn tile_path(index: u64, width: u64) -> String {
    if width == 256 { format!("{index:03}") } else { format!("{index:03}.p/{width}") }
}

/// Entries of the log up to `size`, from the bundles.
fn entries(server: &Server, size: u64) -> Vec<Vec<u8>> {
    let mut ada = person(server, "ada");
    let mut entries = Vec::new();
    for index in 0..size.div_ceil(256) {
        let width = (size - index * 256).min(256);
        let answer = ada.get(&format!("/v1/log/tile/entries/{}", tile_path(index, width)));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/octet-stream")));
        let mut rest = answer.body.as_slice();
        while let Some((length, more)) = rest.split_first_chunk::<2>() {
            let (entry, more) = more.split_at(usize::from(u16::from_be_bytes(*length)));
            entries.push(entry.to_vec());
            rest = more;
        }
    }
    assert_eq!(entries.len() as u64, size);
    entries
}

#[test]
fn checkpoint_tiles_bundles_and_proofs_agree_beyond_one_full_tile() {
    let installation = team();
    let server = installation.serve_with(&["--log-level", "warn"], &[]);
    let key = verifier_key(&installation);
    let early = checkpoint(&server, "ana", &key);
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    thread::scope(|scope| {
        for _ in 0..8 {
            let (id, mut ben) = (&id, person(&server, "ben"));
            scope.spawn(move || {
                for _ in 0..75 {
                    assert_eq!(ben.post(&format!("/v1/items/{id}/comments"), &json!({"text": "c"})).status, 201);
                }
            });
        }
    });
    let acted = person(&server, "ana").must(&id, &json!({"action": "submit"}));
    let now = checkpoint(&server, "eli", &key);
    assert!(now.size > acted["entry"].as_u64().unwrap(), "an acknowledged entry is under the checkpoint");
    assert!(now.size > 600);
    let entries = entries(&server, now.size);
    let leaves: Vec<_> = entries.iter().map(|entry| Hash::of_leaf(entry)).collect();
    assert_eq!(root_of(&leaves), now.root, "the bundles give the root");
    assert_eq!(root_of(&leaves[..usize::try_from(early.size).unwrap()]), early.root, "and that of the earlier log");
    let bytes = |hashes: &[Hash]| hashes.iter().flat_map(|hash| hash.0).collect::<Vec<u8>>();
    let mut ana = person(&server, "ana");
    for (index, leaves) in leaves.chunks(256).enumerate() {
        let path = tile_path(index as u64, leaves.len() as u64);
        let tile = ana.get(&format!("/v1/log/tile/0/{path}"));
        assert_eq!((tile.status, &tile.body), (200, &bytes(leaves)), "tile 0/{path}");
    }
    let full: Vec<_> = leaves.chunks_exact(256).map(root_of).collect();
    let above = ana.get(&format!("/v1/log/tile/1/{}", tile_path(0, full.len() as u64)));
    assert_eq!(above.body, bytes(&full), "the tile above");
    for (index, entry) in entries.iter().enumerate() {
        let entry: Value = serde_json::from_slice(entry).unwrap();
        assert_eq!(entry["index"], index);
    }
    let proofs = ana.get(&format!("/v1/items/{id}/proof")).json();
    let signed = Checkpoint::open(proofs["checkpoint"].as_str().unwrap(), &key).unwrap();
    assert_eq!(signed, now);
    assert_eq!(proofs["next"], Value::Null, "these are all");
    let proofs = proofs["proofs"].as_array().unwrap();
    assert_eq!(proofs.len(), 602, "creation, comments and submission");
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = ana.get(&format!("/v1/items/{id}/proof?limit=250{after}")).json();
        pages.extend(page["proofs"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_u64() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(pages, *proofs, "page by page they are the same");
    assert_eq!(ana.get(&format!("/v1/items/{id}/proof?after=999999")).json()["proofs"], json!([]));
    for query in ["limit=0", "limit=1001", "after=-1", "after=x", "from=1"] {
        assert_eq!(ana.get(&format!("/v1/items/{id}/proof?{query}")).verdict(), "422 invalid_request", "{query}");
    }
    for proof in proofs {
        let index = proof["index"].as_u64().unwrap();
        let hash = |text: &Value| Hash::from_base64(text.as_str().unwrap()).unwrap();
        let path: Vec<_> = proof["hashes"].as_array().unwrap().iter().map(hash).collect();
        assert_eq!(hash(&proof["leaf_hash"]), leaves[usize::try_from(index).unwrap()]);
        check_inclusion(hash(&proof["leaf_hash"]), index, now.size, &path, now.root).unwrap();
    }
    // Pieces that are not there yet, or are written otherwise.
    for path in [
        "0/003",
        "0/002",
        "0/000.p/0",
        "0/000.p/256",
        "0/0",
        "0/00a",
        "1/000",
        "2/000.p/1",
        "0/x000/000",
        "9/000",
        "00/000",
        "0/000.p/1000",
        "-1/000",
        "",
    ] {
        assert_eq!(ana.get(&format!("/v1/log/tile/{path}")).verdict(), "404 not_found", "{path}");
    }
    assert_eq!(ana.get("/v1/log/tile/0/000.p/17").body, bytes(&leaves[..17]), "any width up to what there is");
}

#[test]
fn entry_bundles_are_for_auditors_alone() {
    let server = team().serve();
    for (name, role) in TEAM {
        let verdict = person(&server, name).get("/v1/log/tile/entries/000.p/1").verdict();
        assert_eq!(verdict, if role == "auditor" { "200" } else { "403 role_forbidden" }, "{name}");
    }
    for path in
        ["%65ntries/000.p/1", "entries%2F000.p/1", "/entries/000.p/1", "./entries/000.p/1", "0/../entries/000.p/1"]
    {
        assert_eq!(person(&server, "ana").get(&format!("/v1/log/tile/{path}")).verdict(), "404 not_found", "{path}");
    }
}

fn events(server: &Server, who: &str) -> Vec<Value> {
    let answer = person(server, who).get("/v1/events?limit=200");
    answer.json()["events"].as_array().unwrap().clone()
}

fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn refused_attempts_are_counted_and_written_down_when_the_service_stops() {
    let installation = team();
    let server = installation.serve();
    let id = person(&server, "ana").creates("controlled-operation", &payload("low"));
    for _ in 0..7 {
        assert_eq!(person(&server, "eli").acts(&id, &json!({"action": "submit"})).verdict(), "403 role_forbidden");
    }
    for _ in 0..3 {
        assert_eq!(person(&server, "amy").acts(&id, &json!({"action": "submit"})).verdict(), "403 not_owner");
    }
    for _ in 0..2 {
        assert_eq!(person(&server, "ben").get("/v1/actors").verdict(), "403 role_forbidden");
    }
    let before = person(&server, "ada").item(&id);
    // Refused for other reasons, or not known at all: no entry.
    person(&server, "ana").acts(&id, &json!({"action": "dance"}));
    person(&server, "ben").acts(&id, &json!({"action": "approve"}));
    server.get("/v1/items", &[]);
    server.stop().expect(0);
    let server = installation.serve();
    assert_eq!(person(&server, "ada").item(&id), before);
    let events = events(&server, "sol");
    let refused = of_type(&events, "access.refused");
    let count = |actor: &str, action: &str, code: &str| -> u64 {
        let of = |event: &&&Value| {
            event["actor_id"] == actor && event["action"] == action && event["details"]["code"] == code
        };
        refused.iter().filter(of).map(|event| event["details"]["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(count("eli", "submit", "role_forbidden"), 7);
    assert_eq!(count("amy", "submit", "not_owner"), 3);
    assert_eq!(count("ben", "list_actors", "role_forbidden"), 2);
    assert_eq!(refused.len(), 3, "{refused:#?}");
    assert!(refused.iter().all(|event| event["role"].is_string() && event["details"]["since"].is_string()));
}

#[test]
fn a_token_in_a_url_is_an_entry_at_once_and_counted_after() {
    let installation = team();
    let server = installation.serve();
    for _ in 0..5 {
        let answer = server.get(&format!("/v1/items?q={}", token("ben")), &[&bearer(&token("ana"))]);
        assert_eq!(answer.verdict(), "400 token_in_url");
        let found = events(&server, "ada");
        let exposed = of_type(&found, "access.token_exposed");
        assert!((1..=2).contains(&exposed.len()), "{exposed:#?}");
        assert_eq!((&exposed[0]["actor_id"], &exposed[0]["role"]), (&json!("ben"), &json!("approver")));
    }
    server.stop().expect(0);
    let server = installation.serve();
    let found = events(&server, "ada");
    let exposed = of_type(&found, "access.token_exposed");
    let counts: u64 = exposed.iter().map(|event| event["details"]["count"].as_u64().unwrap()).sum();
    assert_eq!(counts, 5);
    let text = json!(found).to_string();
    assert!(!text.contains(&token("ben")) && !text.contains(&digest(token("ben").as_bytes())));
}

#[test]
fn entries_about_access_are_for_security_and_auditors_alone() {
    let installation = team();
    let server = installation.serve();
    person(&server, "ana").creates("controlled-operation", &payload("low"));
    server.get(&format!("/v1/items?q={}", token("ben")), &[]);
    for (name, role) in TEAM {
        let answer = person(&server, name).get("/v1/events").json();
        let kinds: Vec<_> = answer["events"].as_array().unwrap().iter().map(|event| event["type"].clone()).collect();
        let all = ["service.started", "item.created", "access.token_exposed"];
        let expected = if ["security_admin", "auditor"].contains(&role) { &all[..] } else { &all[1..2] };
        assert_eq!(kinds, expected, "{name}");
        assert_eq!(answer["next_after"], 2, "{name} goes on behind what is hidden");
    }
}

#[test]
fn every_start_names_what_changed_among_the_credentials_by_fingerprint() {
    let old: Vec<_> = TEAM.iter().map(|(name, role)| (*name, *role, token(name))).collect();
    let file = |people: &[(&str, &str, String)]| {
        let entries: Vec<_> = people.iter().map(|(name, role, token)| (*name, *role, &**token)).collect();
        credential_file(&entries)
    };
    let installation = team();
    installation.serve().stop().expect(0);
    let mut both = old.clone();
    both.push(("ben", "approver", token("ben-new")));
    installation.write("credentials.json", &file(&both));
    installation.serve().stop().expect(0);
    let after: Vec<_> = both.into_iter().filter(|(_, _, known)| *known != token("ben")).collect();
    installation.write("credentials.json", &file(&after));
    let server = installation.serve();
    let events = events(&server, "ada");
    let starts = of_type(&events, "service.started");
    assert_eq!(starts.len(), 3);
    let changes = |start: &Value, change: &str| -> Vec<String> {
        let changed = start["details"]["credentials"][change].as_array().unwrap();
        changed.iter().map(|one| one["actor_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((changes(starts[0], "added").len(), changes(starts[0], "removed").len()), (TEAM.len(), 0));
    assert_eq!((changes(starts[1], "added"), changes(starts[1], "removed")), (vec!["ben".into()], vec![]));
    assert_eq!((changes(starts[2], "added"), changes(starts[2], "removed")), (vec![], vec!["ben".into()]));
    let new = &starts[1]["details"]["credentials"]["added"][0]["fingerprint"];
    let removed = &starts[2]["details"]["credentials"]["removed"][0]["fingerprint"];
    assert!(new.is_string() && removed.is_string() && new != removed);
    let text = json!(events).to_string();
    for token in after.iter().map(|(_, _, token)| token.clone()).chain([token("ben")]) {
        let digest = digest(token.as_bytes());
        assert!(!text.contains(&token) && !text.contains(&digest) && !text.contains(&digest[..16]));
    }
    assert!(starts[2]["details"]["definitions"].as_array().unwrap().len() >= 2);
}

#[test]
fn however_many_credentials_change_no_entry_outgrows_the_logs_format() {
    let installation = team();
    installation.serve().stop().expect(0);
    let many: Vec<_> = (0..1_000).map(|number| format!("operator-with-a-long-name-{number:04}")).collect();
    let tokens: Vec<_> = many.iter().map(|name| token(name)).collect();
    let team_tokens = TEAM.map(|(name, _)| token(name));
    let of_team = TEAM.iter().zip(&team_tokens).map(|((name, role), token)| (*name, *role, &**token));
    let of_many = many.iter().zip(&tokens).map(|(name, token)| (&**name, "executor", &**token));
    installation.write("credentials.json", &credential_file(&of_team.chain(of_many).collect::<Vec<_>>()));
    let server = installation.serve();
    let events = events(&server, "ada");
    let (changes, starts) = (of_type(&events, "credentials.changed"), of_type(&events, "service.started"));
    assert_eq!((changes.len(), starts.len()), (2, 2));
    let added = |entry: &&Value| entry["details"]["credentials"]["added"].as_array().unwrap().len();
    assert_eq!(changes.iter().map(added).sum::<usize>() + added(&starts[1]), 1_000);
    assert_eq!(starts[1]["details"]["credentials"]["count"], TEAM.len() + 1_000);
    assert_eq!(person(&server, "ada").get(&format!("/v1/log/tile/entries/000.p/{}", events.len())).verdict(), "200");
    server.stop().expect(0);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn every_start_names_the_one_before_and_the_role_map_in_force() {
    let installation = team();
    installation.serve().stop().expect(0);
    let map = role_map(&TEAM);
    installation.write("role-map.json", &map);
    let config = installation.read("pilot.toml") + "[credentials]\nrole_map = \"role-map.json\"\n";
    installation.write("pilot.toml", &config);
    let server = installation.serve();
    let events = events(&server, "ada");
    let starts = of_type(&events, "service.started");
    assert_eq!((starts[0]["details"].get("previous"), starts[0]["details"].get("role_map")), (None, None));
    assert_eq!(starts[1]["details"]["previous"], starts[0]["index"]);
    assert_eq!(starts[1]["details"]["role_map"], json!(ContentDigest::of_bytes(map.as_bytes())));
    server.stop().expect(0);
    installation.pilot(&["log", "fsck", "--config", "pilot.toml"]).expect(0);
}

#[test]
fn who_there_is_is_told_to_security_and_auditors_without_a_digest() {
    let server = team().serve();
    assert_eq!(person(&server, "eli").get("/v1/actors").verdict(), "403 role_forbidden");
    for watcher in ["sol", "ada"] {
        let answer = person(&server, watcher).get("/v1/actors");
        let actors = answer.json()["actors"].as_array().unwrap().clone();
        assert_eq!(actors.len(), TEAM.len());
        for (name, role) in TEAM {
            let actor = actors.iter().find(|actor| actor["actor_id"] == name).unwrap();
            assert_eq!((&actor["role"], &actor["credentials"]), (&json!(role), &json!(1)));
            // A refused attempt was one of a known person all the same.
            let has_been_here = name == "eli" || name == watcher || (name == "sol" && watcher == "ada");
            assert_eq!(actor["last_seen"].is_string(), has_been_here, "{actor}");
            assert!(!answer.text().contains(&digest(token(name).as_bytes())[..16]));
        }
    }
}

#[test]
fn definitions_are_shown_to_everyone_with_a_picture_that_runs_nothing() {
    let server = team().serve();
    for (name, _) in TEAM {
        let list = person(&server, name).get("/v1/workflows").json();
        let names: Vec<_> = list["workflows"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names, ["controlled-operation", "emergency-operation"]);
        let one = person(&server, name).get("/v1/workflows/controlled-operation").json();
        assert_eq!(one["digest"], list["workflows"][0]["digest"]);
        let picture = person(&server, name).get("/v1/workflows/controlled-operation/diagram");
        assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
        assert!(picture.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        assert!(picture.body.starts_with(b"<svg") && !picture.text().contains("<script"));
    }
}
