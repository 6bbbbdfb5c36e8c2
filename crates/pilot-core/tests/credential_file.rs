//! The credential file and the role map: every fault is found, placed and explained, and no value is repeated.

use expect_test::{Expect, expect};
use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::fault::Fault;
use pilot_core::role_map::RoleMap;
use pilot_core::token::Token;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn verdict<T>(read: Result<T, Vec<Fault>>) -> String {
    match read {
        Ok(_) => "accepted".to_owned(),
        Err(faults) => faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "expect![] reads best as the last argument")]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&verdict(Credentials::parse(text.as_bytes())));
}

#[expect(clippy::needless_pass_by_value, reason = "expect![] reads best as the last argument")]
fn check_map(text: &str, expected: Expect) {
    expected.assert_eq(&verdict(RoleMap::parse(text.as_bytes())));
}

fn entry(actor: &str, role: &str, digest: &str) -> String {
    format!(r#"{{"actor_id":"{actor}","roles":["{role}"],"token_sha3_256":"{digest}"}}"#)
}

fn file(entries: &[String]) -> String {
    format!(r#"{{"schema_version":1,"credentials":[{}]}}"#, entries.join(","))
}

#[test]
fn a_file_of_the_specification_is_accepted_and_written_back_unchanged() {
    let text = file(&[entry("ana", "initiator", A), entry("ben", "approver", B)]);
    let credentials = Credentials::parse(text.as_bytes()).unwrap();
    assert_eq!(credentials.entries().len(), 2);
    let again = Credentials::parse(credentials.to_json().as_bytes()).unwrap();
    assert_eq!(again.to_json(), credentials.to_json());
    let (index, found) = credentials.find(&Digest::from_hex(B).unwrap()).unwrap();
    assert_eq!((index, found.actor.actor_id.as_str()), (1, "ben"));
    assert!(credentials.find(&Digest::of(b"another")).is_none());
}

#[test]
fn several_entries_for_one_actor_and_role_are_legal_because_that_is_rotation() {
    check(&file(&[entry("ana", "initiator", A), entry("ana", "initiator", B)]), expect!["accepted"]);
}

#[test]
fn digests_that_share_their_leading_bytes_are_told_apart() {
    let twin = format!("{}{}", &A[..32], &B[..32]);
    let credentials =
        Credentials::parse(file(&[entry("ana", "initiator", A), entry("ben", "auditor", &twin)]).as_bytes()).unwrap();
    assert_eq!(credentials.find(&Digest::from_hex(&twin).unwrap()).unwrap().0, 1);
    assert_eq!(credentials.find(&Digest::from_hex(A).unwrap()).unwrap().0, 0);
}

#[test]
fn what_is_no_json_object_is_refused() {
    check("", expect!["(whole document): is not valid JSON at line 1, column 0: EOF while parsing a value"]);
    check("[]", expect!["(whole document): must be an object with schema_version, credentials"]);
    check("\u{feff}{}", expect!["(whole document): is not valid JSON at line 1, column 1: expected value"]);
    check(
        "{}",
        expect![[r#"
        /schema_version: is missing
        /credentials: is missing"#]],
    );
}

#[test]
fn every_fault_is_listed_at_once_with_its_place() {
    check(
        r#"{"schema_version":2,"extra":1,"credentials":[
            {"actor_id":"ana","roles":[],"token_sha3_256":"ABC"},
            {"actor_id":"","roles":["approver","auditor"],"token_sha3_256":7},
            {"actor_id":"x y","roles":["boss"]},
            {"actor_id":9,"roles":"auditor","token_sha3_256":null,"note":"hi"},
            "text"]}"#,
        expect![[r#"
            /schema_version: must be the integer 1; version 2 is for the production profile
            /extra: is not a known member; known members are schema_version, credentials
            /credentials/0/roles: must be an array of exactly one role: a credential cannot combine roles
            /credentials/0/token_sha3_256: must be a SHA3-256 digest: 64 lowercase hexadecimal characters (never the token itself)
            /credentials/1/actor_id: an actor_id has 1 to 128 characters
            /credentials/1/roles: must be an array of exactly one role: a credential cannot combine roles
            /credentials/1/token_sha3_256: must be a SHA3-256 digest: 64 lowercase hexadecimal characters (never the token itself)
            /credentials/2/token_sha3_256: is missing
            /credentials/2/actor_id: an actor_id consists of A-Z a-z 0-9 . _ @ : / + -
            /credentials/2/roles/0: must be one of initiator, approver, security_admin, executor, auditor
            /credentials/3/note: is not a known member; known members are actor_id, roles, token_sha3_256
            /credentials/3/actor_id: must be a string
            /credentials/3/roles: must be an array of exactly one role: a credential cannot combine roles
            /credentials/3/token_sha3_256: must be a SHA3-256 digest: 64 lowercase hexadecimal characters (never the token itself)
            /credentials/4: must be an object with actor_id, roles, token_sha3_256"#]],
    );
}

#[test]
fn an_empty_list_is_refused() {
    check(
        &file(&[]),
        expect!["/credentials: is empty, so nobody could sign in; add a credential with `pilot credential new`"],
    );
}

#[test]
fn contradictions_between_entries_are_refused() {
    check(
        &file(&[
            entry("ana", "initiator", A),
            entry("ben", "approver", A),
            entry("ana", "approver", B),
            entry("ANA", "initiator", &B.replace('b', "c")),
        ]),
        expect![[r#"
            /credentials/1/token_sha3_256: repeats the digest at /credentials/0/token_sha3_256
            /credentials/2/roles: gives this actor a second role; an actor has exactly one
            /credentials/3/actor_id: differs from another entry's actor_id only in letter case"#]],
    );
}

#[test]
fn duplicate_json_keys_are_refused() {
    check(
        &format!(r#"{{"schema_version":1,"schema_version":1,"credentials":[{}]}}"#, entry("ana", "auditor", A)),
        expect!["/schema_version: is given more than once"],
    );
}

#[test]
fn a_schema_version_that_is_not_the_integer_1_is_refused() {
    for wrong in ["0", "2", "\"1\"", "1.5", "null", "true", "[1]"] {
        let text = file(&[entry("ana", "auditor", A)]).replace(":1,", &format!(":{wrong},"));
        assert_eq!(
            verdict(Credentials::parse(text.as_bytes())),
            "/schema_version: must be the integer 1; version 2 is for the production profile",
            "{wrong}"
        );
    }
}

#[test]
fn a_token_pasted_anywhere_into_the_file_is_never_repeated() {
    let token = "a-clear-token-somebody-pasted-here-by-mistake-0123";
    for text in [
        file(&[entry("ana", "auditor", token)]),
        file(&[entry(&format!("{token} "), "auditor", A)]),
        file(&[entry("ana", token, A)]),
        file(&[format!(r#"{{"{token}":1}}"#)]),
        format!(r#"{{"{token}":1,"{token}":2}}"#),
        format!(r#"{{"schema_version":"{token}","credentials":"{token}"}}"#),
        token.to_owned(),
        format!("{{\"{token}"),
    ] {
        let verdict = verdict(Credentials::parse(text.as_bytes()));
        assert_ne!(verdict, "accepted");
        assert!(!verdict.contains("clear-token"), "{verdict}");
    }
}

#[test]
fn a_role_map_lists_each_actor_once_and_kind_is_optional() {
    check_map(
        r#"{"schema_version":1,"approved_by":["Ina","Jo"],"actors":[
            {"actor_id":"ana","role":"initiator"},{"actor_id":"bot","role":"executor","kind":"machine"}]}"#,
        expect!["accepted"],
    );
    check_map(&RoleMap::empty().to_json(), expect!["accepted"]);
    check_map(
        r#"{"schema_version":1,"approved_by":["Ina","ina",3],"actors":[
            {"actor_id":"ana","role":"initiator"},{"actor_id":"Ana","role":"approver","kind":"robot"},{"role":"x","extra":1}]}"#,
        expect![[r#"
            /approved_by/1: repeats a name; each person approves once
            /approved_by/2: must be the name of a person
            /actors/1/kind: must be human or machine
            /actors/1/actor_id: repeats the actor at /actors/0 (letter case is ignored)
            /actors/2/extra: is not a known member; known members are actor_id, role, kind, operated_by, max_open_items, subject, issuer
            /actors/2/actor_id: is missing
            /actors/2/role: must be one of initiator, approver, security_admin, executor, auditor"#]],
    );
}

#[test]
fn a_credential_outside_of_the_role_map_or_with_another_role_is_found() {
    let map = br#"{"schema_version":1,"approved_by":["Ina","Jo"],"actors":[{"actor_id":"ana","role":"auditor"}]}"#;
    let map = RoleMap::parse(map).unwrap();
    let credentials =
        Credentials::parse(file(&[entry("ana", "initiator", A), entry("ben", "approver", B)]).as_bytes()).unwrap();
    let faults: Vec<_> = credentials.check_against(&map).iter().map(Fault::to_string).collect();
    assert_eq!(
        faults,
        [
            "/credentials/0/roles: differs from the role the role map approves for this actor",
            "/credentials/1/actor_id: is not in the role map; have it approved there, or remove the credential"
        ]
    );
}

fn expiring(id: &str, actor: &str, role: &str, digest: &str, times: &str) -> String {
    format!(r#"{{"credential_id":"{id}","actor_id":"{actor}","roles":["{role}"],"token_sha3_256":"{digest}"{times}}}"#)
}

fn expiring_file(entries: &[String]) -> String {
    format!(r#"{{"schema_version":2,"credentials":[{}]}}"#, entries.join(","))
}

const TIMES: &str = r#","not_before":"2026-11-01T00:00:00Z","expires_at":"2027-02-01T00:00:00Z""#;

#[test]
fn version_2_has_a_name_and_a_span_of_time_and_is_written_as_it_was_read() {
    let text = expiring_file(&[
        expiring("ana-1", "ana", "initiator", A, TIMES),
        expiring("ana-2", "ana", "initiator", B, r#","expires_at":"2027-05-01T00:00:00+02:00""#),
    ]);
    let credentials = Credentials::parse_expiring(text.as_bytes()).unwrap();
    let shown: Vec<_> = credentials
        .entries()
        .iter()
        .map(|credential| format!("{} {:?} {:?}", credential.id, credential.not_before, credential.expires_at))
        .collect();
    expect![[r#"
        ana-1 Some(Time(1793491200000000)) Some(Time(1801440000000000))
        ana-2 None Some(Time(1809122400000000))"#]]
    .assert_eq(&shown.join("\n"));
    let again = Credentials::parse_either(credentials.to_json().as_bytes()).unwrap();
    assert_eq!(again.to_json(), credentials.to_json());
    assert!(Credentials::parse(text.as_bytes()).is_err(), "the pilot reads version 1 alone");
    let plain = file(&[entry("ana", "initiator", A)]);
    assert!(Credentials::parse_expiring(plain.as_bytes()).is_err(), "production reads version 2 alone");
    assert!(Credentials::parse_either(plain.as_bytes()).is_ok());
}

#[test]
fn faults_of_version_2_are_listed_with_their_place_and_no_value() {
    let token = Token::generate(&[7; 32]);
    let pasted = expiring("x", "eve", "auditor", &token.digest().to_hex(), TIMES);
    let text = expiring_file(&[
        expiring(
            "ana-1",
            "ana",
            "initiator",
            A,
            r#","not_before":"2027-02-01T00:00:00Z","expires_at":"2027-02-01T00:00:00Z""#,
        ),
        expiring("ANA-1", "ben", "approver", B, r#","expires_at":1801440000"#),
        expiring("a b", "cat", "executor", &A.replace('a', "c"), ""),
        pasted.replace("\"x\"", &format!("\"{}\"", *token.hand_over())),
        entry("dan", "auditor", &A.replace('a', "d")),
    ]);
    expect![[r#"
        /credentials/0/expires_at: must be later than not_before
        /credentials/1/credential_id: repeats the name at /credentials/0 (letter case is ignored)
        /credentials/1/expires_at: must be an RFC 3339 time such as 2027-01-31T00:00:00Z
        /credentials/2/expires_at: is missing
        /credentials/2/credential_id: must have 1 to 128 characters of A-Z a-z 0-9 . _ : - and begin with a letter or a digit
        /credentials/4/credential_id: is missing
        /credentials/4/expires_at: is missing
        /credentials/3/credential_id: is a token; give the credential another name, and replace the token"#]].assert_eq(&verdict(Credentials::parse_expiring(text.as_bytes())));
}
