//! Changes of a ledger's entries and documents that nobody decided on.

use std::time::Duration;

use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::time::Time;
use serde_json::{Value, json};

use super::{CAST, Choose, Ledger, actor, as_role, emergency_payload, role_map, variants};

type Change = (&'static str, fn(&mut Ledger, Choose<'_>));

const CHANGES: &[Change] = &[
    ("a member changed", member),
    ("a member changed", member),
    ("a member changed", member),
    ("a document changed", document),
    ("a document changed", document),
    ("a document changed", document),
    ("an entry left out", leave_out),
    ("two entries swapped", swap),
    ("an entry twice", double),
    ("times moved", move_times),
    ("a start changed", start),
    ("credentials come and go", credentials),
    ("credentials come and go", credentials),
    ("another role map", other_role_map),
    ("a timer that says something", talking_timer),
    ("a second emergency", second_emergency),
    ("a permit", permit),
    ("another definition", other_definition),
    ("an edit in the wrong place", late_edit),
];

/// Changes something, and says what.
pub(super) fn change(ledger: &mut Ledger, choose: Choose<'_>) -> String {
    let (name, change) = CHANGES[choose(CHANGES.len())];
    change(ledger, choose);
    name.to_owned()
}

fn about_items(ledger: &Ledger) -> Vec<u64> {
    (0..ledger.size()).filter(|index| ledger.read(*index).item.is_some()).collect()
}

fn some_entry(ledger: &Ledger, choose: Choose<'_>) -> u64 {
    let indices = about_items(ledger);
    // Mostly near the end, where nothing after it is spoiled too.
    let back = if choose(2) == 0 { choose(3.min(indices.len())) } else { choose(indices.len()) };
    indices[indices.len() - 1 - back]
}

fn some_item(ledger: &Ledger, choose: Choose<'_>) -> ItemId {
    let ids: Vec<_> = ledger.items.keys().collect();
    ids[choose(ids.len())].clone()
}

fn write(ledger: &mut Ledger, index: u64, entry: &Entry) {
    ledger.entries[index as usize] = entry.to_bytes().unwrap();
}

fn keep(ledger: &mut Ledger, bytes: Vec<u8>) -> ContentDigest {
    let digest = ContentDigest::of_bytes(&bytes);
    ledger.documents.insert(digest.clone(), bytes);
    digest
}

fn minus(time: Time, seconds: i64) -> Time {
    Time::from_unix_micros(time.unix_micros() - seconds * 1_000_000)
}

/// After entries were added or removed.
fn renumber(ledger: &mut Ledger) {
    for index in 0..ledger.size() {
        let entry = Entry { index, ..ledger.read(index) };
        write(ledger, index, &entry);
    }
}

fn member(ledger: &mut Ledger, choose: Choose<'_>) {
    let index = some_entry(ledger, choose);
    let mut entry = ledger.read(index);
    let states = ["draft", "submitted", "approved", "cleared", "executing", "closed", "nowhere"];
    let some_state = states[choose(states.len())];
    let actions = ["submit", "approve", "timer", "create", "edit", "hold", "start", "bless"];
    let types = [
        EntryType::ItemCreated,
        EntryType::ItemEdited,
        EntryType::ItemTransition,
        EntryType::ItemComment,
        EntryType::PermitIssued,
        EntryType::AccessRefused,
    ];
    match choose(26) {
        0 => entry.at = minus(entry.at, [1, 3_600][choose(2)]),
        1 => entry.at = entry.at.plus(Duration::from_secs([1, 400 * 86_400][choose(2)])),
        2 => entry.role = Some(Role::ALL[choose(5)]),
        3 => entry.actor_id = Some(CAST[choose(CAST.len())].0.parse().unwrap()),
        4 => (entry.actor_id, entry.role) = (None, None),
        5 => entry.role = None,
        6 => entry.actor_id = None,
        7 => entry.version = entry.version.map(|version| version + 1),
        8 => entry.version = None,
        9 => entry.content = ledger.documents.keys().nth(choose(ledger.documents.len().max(1))).cloned(),
        10 => entry.content = None,
        11 => entry.definition = Some(format!("sha256:{}", "0".repeat(64)).into()),
        12 => entry.definition = None,
        13 => entry.from = Some(some_state.into()),
        14 => entry.from = None,
        15 => entry.to = Some(some_state.into()),
        16 => entry.to = None,
        17 => entry.action = Some(actions[choose(actions.len())].into()),
        18 => entry.action = None,
        19 => entry.comment = None,
        20 => entry.comment = Some(keep(ledger, Document::comment("A word", &"7".repeat(32)).bytes)),
        21 => entry.inputs = None,
        22 => entry.inputs = Some(keep(ledger, Document::inputs(&json!({"progress": "half"}), &"6".repeat(32)).bytes)),
        23 => entry.details = Some(json!({"a": 1})),
        24 => entry.r#type = types[choose(types.len())],
        _ => entry.item = Some(some_item(ledger, choose)),
    }
    write(ledger, index, &entry);
}

fn leave_out(ledger: &mut Ledger, choose: Choose<'_>) {
    if about_items(ledger).len() == 1 {
        return member(ledger, choose);
    }
    ledger.entries.remove(some_entry(ledger, choose) as usize);
    renumber(ledger);
}

fn swap(ledger: &mut Ledger, choose: Choose<'_>) {
    let (one, other) = (some_entry(ledger, choose), some_entry(ledger, choose));
    ledger.entries.swap(one as usize, other as usize);
    renumber(ledger);
}

fn double(ledger: &mut Ledger, choose: Choose<'_>) {
    let index = some_entry(ledger, choose) as usize;
    let again = ledger.entries[index].clone();
    ledger.entries.insert(index + 1, again);
    renumber(ledger);
}

/// Everything from somewhere on happens later, or earlier.
fn move_times(ledger: &mut Ledger, choose: Choose<'_>) {
    let seconds = [600, 86_400, 73 * 365 * 86_400][choose(3)];
    let is_later = choose(3) > 0;
    for index in choose(ledger.entries.len()) as u64..ledger.size() {
        let mut entry = ledger.read(index);
        entry.at =
            if is_later { entry.at.plus(Duration::from_secs(seconds)) } else { minus(entry.at, seconds.cast_signed()) };
        write(ledger, index, &entry);
    }
    ledger.now = ledger.now.plus(Duration::from_secs(seconds));
}

fn start(ledger: &mut Ledger, choose: Choose<'_>) {
    let starts: Vec<u64> =
        (0..ledger.size()).filter(|index| ledger.read(*index).r#type == EntryType::ServiceStarted).collect();
    let index = starts[choose(starts.len())];
    let mut entry = ledger.read(index);
    let details = entry.details.as_mut().unwrap();
    match choose(8) {
        0 => details["credentials"]["added"] = json!([{"role": "emperor"}]),
        1 => details["previous"] = json!(choose(5)),
        2 => details["definitions"] = json!([]),
        3 => details["role_map"] = json!(format!("sha256:{}", "1".repeat(64))),
        4 => entry.details = None,
        5 => details["definitions"] = json!([{"name": "a", "version": 1}]),
        6 => details["version"] = json!(1),
        _ => {
            ledger.entries.remove(index as usize);
            return renumber(ledger);
        }
    }
    write(ledger, index, &entry);
}

/// Starts, revocations and expiries that say who had a credential, and who did not.
fn credentials(ledger: &mut Ledger, choose: Choose<'_>) {
    let named = |choose: Choose<'_>| {
        let (name, role) = CAST[choose(CAST.len())];
        let role = if choose(4) == 0 { Role::ALL[choose(5)] } else { role };
        let mut named = json!({"actor_id": name, "role": role, "fingerprint": format!("{:016x}", choose(12))});
        if choose(3) == 0 {
            named["credential_id"] = json!(format!("c{}", choose(4)));
        }
        if choose(4) == 0 {
            named["expires_at"] = json!("2026-11-16T00:00:00.000000Z");
        }
        if choose(8) == 0 {
            named.as_object_mut().unwrap().remove("fingerprint");
        }
        named
    };
    for index in 0..ledger.size() {
        let mut entry = ledger.read(index);
        let lists = |choose: Choose<'_>| {
            let all = CAST
                .iter()
                .enumerate()
                .map(|(at, (name, role))| json!({"actor_id": name, "role": role, "fingerprint": format!("{at:016x}")}));
            let mut added: Vec<Value> = if choose(3) > 0 { all.collect() } else { Vec::new() };
            added.extend((0..choose(4)).map(|_| named(choose)));
            let removed: Vec<_> = (0..choose(3)).map(|_| named(choose)).collect();
            json!({"added": added, "removed": removed, "count": 7})
        };
        let is_start = entry.r#type == EntryType::ServiceStarted;
        match choose(6) {
            _ if is_start && (index == 0 || choose(2) == 0) => {
                entry.details.as_mut().unwrap()["credentials"] = lists(choose);
            }
            1 => {
                let (kind, details) = match choose(3) {
                    0 => (EntryType::CredentialRevoked, json!({"cause": "asked", "credential": named(choose)})),
                    1 => (EntryType::CredentialExpired, json!({"credential": named(choose)})),
                    _ => (EntryType::CredentialsChanged, json!({"credentials": lists(choose)})),
                };
                let start = ledger.read(0);
                let told = Entry { r#type: kind, at: entry.at, details: Some(details), ..start };
                ledger.entries.insert(index as usize + 1, told.to_bytes().unwrap());
                renumber(ledger);
                continue;
            }
            _ => {}
        }
        write(ledger, index, &entry);
    }
}

/// Somebody is not on the list any more, or in another role, and everyone goes on as before.
fn other_role_map(ledger: &mut Ledger, choose: Choose<'_>) {
    let mut cast = CAST.to_vec();
    let place = choose(cast.len());
    match choose(3) {
        0 => drop(cast.remove(place)),
        1 => cast[place].1 = Role::ALL[choose(5)],
        _ => return ledger.start(None),
    }
    ledger.start(Some(&role_map(&cast)));
    for _ in 0..40 {
        super::days::attempt(ledger, choose);
    }
}

fn talking_timer(ledger: &mut Ledger, choose: Choose<'_>) {
    ledger.pass(40 * 86_400);
    let ids: Vec<_> = ledger.items.keys().cloned().collect();
    if !ids.iter().any(|id| ledger.expire(id).is_ok()) {
        return member(ledger, choose);
    }
    let index = ledger.size() - 1;
    let mut entry = ledger.read(index);
    if choose(2) == 0 {
        entry.comment = Some(keep(ledger, Document::comment("In time", &"5".repeat(32)).bytes));
    } else {
        entry.inputs = Some(keep(ledger, Document::inputs(&json!({}), &"5".repeat(32)).bytes));
    }
    write(ledger, index, &entry);
}

fn second_emergency(ledger: &mut Ledger, choose: Choose<'_>) {
    for _ in 0..=choose(3) {
        ledger.create("emergency-operation", &actor("ana"), "Another", emergency_payload()).unwrap();
    }
}

fn permit(ledger: &mut Ledger, choose: Choose<'_>) {
    let id = some_item(ledger, choose);
    let who = as_role(CAST[choose(CAST.len())].0, Role::Executor);
    ledger.issue_permit(&id, &who, [60, 3_600, 90_000][choose(3)]);
}

/// An item's whole history under another definition.
fn other_definition(ledger: &mut Ledger, choose: Choose<'_>) {
    variants::define(ledger, choose);
    let digest = ledger.definitions.last().unwrap().0.digest().clone();
    let id = some_item(ledger, choose);
    for index in 0..ledger.size() {
        let entry = ledger.read(index);
        if entry.item.as_ref() == Some(&id) {
            write(ledger, index, &Entry { definition: Some(digest.clone()), ..entry });
        }
    }
}

fn late_edit(ledger: &mut Ledger, choose: Choose<'_>) {
    let id = some_item(ledger, choose);
    let content = Document::content("Something else", &super::payload("low"), &"4".repeat(32));
    let digest = keep(ledger, content.bytes);
    let who = ledger.items[&id].created_by.clone();
    ledger.force(&id, Some(&who), |entry| {
        entry.r#type = EntryType::ItemEdited;
        entry.action = Some("edit".into());
        entry.content = Some(digest);
    });
}

/// Which member of an entry names a document.
#[derive(Clone, Copy, PartialEq)]
enum Named {
    Content,
    Comment,
    Inputs,
}

fn document(ledger: &mut Ledger, choose: Choose<'_>) {
    let mut found = Vec::new();
    for index in about_items(ledger) {
        let entry = ledger.read(index);
        let brings = matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
        found.extend(entry.content.filter(|_| brings).map(|digest| (index, Named::Content, digest)));
        found.extend(entry.comment.map(|digest| (index, Named::Comment, digest)));
        // Few entries have inputs, and most there is to get wrong is in them.
        found.extend(entry.inputs.into_iter().flat_map(|digest| vec![(index, Named::Inputs, digest); 4]));
    }
    if found.is_empty() {
        return;
    }
    let (index, kind, old) = found[choose(found.len())].clone();
    let Some(bytes) = ledger.documents.get(&old) else { return };
    let value: Value = serde_json::from_slice(bytes).unwrap();
    let changed = if choose(3) == 0 { misspelt(&value, choose) } else { otherwise(ledger, value, kind, choose) };
    let new = keep(ledger, changed);
    ledger.documents.remove(&old);
    let item = ledger.read(index).item;
    for later in index..ledger.size() {
        let mut entry = ledger.read(later);
        let named = match kind {
            Named::Content => &mut entry.content,
            Named::Comment => &mut entry.comment,
            Named::Inputs => &mut entry.inputs,
        };
        if entry.item == item && named.as_ref() == Some(&old) {
            *named = Some(new.clone());
            write(ledger, later, &entry);
        }
    }
}

/// A document that is not stored in this form.
fn misspelt(value: &Value, choose: Choose<'_>) -> Vec<u8> {
    let text = value.to_string();
    let mut other = value.clone();
    let members = other.as_object_mut().unwrap();
    match choose(10) {
        0 => return text.replacen('{', "{ ", 1).into_bytes(),
        1 => return text.replacen("\"nonce\"", "\"nonce\":\"0\",\"nonce\"", 1).into_bytes(),
        2 => return text.replacen("\"risk\":\"high\"", "\"risk\":\"high\",\"risk\":\"low\"", 1).into_bytes(),
        3 => return b"no JSON".to_vec(),
        4 => return b"\xff{}".to_vec(),
        5 => return b"[\"a\",\"b\"]".to_vec(),
        6 => drop(members.remove("nonce")),
        7 => drop(members.insert("nonce".into(), json!("A".repeat(32)))),
        8 => drop(members.insert("more".into(), json!(1))),
        _ => return text.replacen('}', "}\n", 1).into_bytes(),
    }
    other.to_string().into_bytes()
}

/// A document that says something else.
fn otherwise(ledger: &Ledger, mut value: Value, kind: Named, choose: Choose<'_>) -> Vec<u8> {
    match kind {
        Named::Content => content(&mut value, choose),
        Named::Comment => {
            let texts = ["", " ", "\u{1c}", "\u{85}\u{2003}", "\u{200b}", &"é".repeat(4_000), &"é".repeat(4_001)];
            value["comment"] = json!(texts[choose(texts.len())]);
        }
        Named::Inputs => value["inputs"] = inputs(ledger, choose),
    }
    let nonce = value["nonce"].as_str().unwrap_or_default();
    match kind {
        Named::Content => Document::content(value["title"].as_str().unwrap(), &value["payload"], nonce).bytes,
        Named::Comment => Document::comment(value["comment"].as_str().unwrap(), nonce).bytes,
        Named::Inputs => Document::inputs(&value["inputs"], nonce).bytes,
    }
}

fn content(value: &mut Value, choose: Choose<'_>) {
    let titles = ["", " ", "\u{1c}", "\u{85}", &"é".repeat(200), &"é".repeat(201), "Two\nlines"];
    let risks = [json!("high"), json!("low"), json!("none"), json!(1), json!(null)];
    let links = [json!(["https://example.org/"]), json!(["no link"]), json!([1]), json!("https://example.org/")];
    let operations = [json!(""), json!({}), json!({"a": 1}), json!(1), json!("run")];
    let payload = &mut value["payload"];
    match choose(10) {
        0 => value["title"] = json!(titles[choose(titles.len())]),
        1 => payload["risk"] = risks[choose(risks.len())].clone(),
        2 => payload["links"] = links[choose(links.len())].clone(),
        3 => payload["operation"] = operations[choose(operations.len())].clone(),
        4 => drop(payload.as_object_mut().unwrap().remove(["purpose", "risk", "targets"][choose(3)])),
        5 => payload["deep"] = (0..[30, 31, 40][choose(3)]).fold(json!(1), |inner, _| json!([inner])),
        6 => payload["long"] = json!("x".repeat([60_000, 66_000][choose(2)])),
        _ => payload["extra"] = variants::extra(choose),
    }
}

fn inputs(ledger: &Ledger, choose: Choose<'_>) -> Value {
    let at = |hours: u64| ledger.now.plus(Duration::from_secs(hours * 3_600)).to_string();
    let artifact = json!({"name": "a", "sha256": "0".repeat(64), "bytes": 1, "uri": "file:a"});
    let with = |name: &str, value: Value| {
        let mut artifact = artifact.clone();
        artifact[name] = value;
        json!({ "artifacts": [artifact] })
    };
    let day = &at(1)[..10];
    match choose(16) {
        0 => json!({}),
        1 => json!([]),
        2 => json!({"not_after": at([1, 10, 1_000][choose(3)])}),
        3 => json!({"not_after": at(2), "not_before": at([0, 1, 3][choose(3)])}),
        4 => json!({"not_after": 1}),
        5 => json!({"not_after": at(2), "not_before": "soon"}),
        6 => json!({"outcome": (["succeeded", "failed", "unknown"][choose(3)])}),
        7 => json!({"result": "é".repeat([4_000, 4_001][choose(2)])}),
        8 => json!({"progress": "é".repeat([500, 501][choose(2)])}),
        9 => json!({"result": 1}),
        10 => json!({"artifacts": vec![artifact.clone(); [1, 100, 101][choose(3)]]}),
        11 => with(
            ["name", "sha256", "bytes", "uri", "more"][choose(5)],
            [json!(""), json!(-1), json!("A"), json!(1.5)][choose(4)].clone(),
        ),
        12 => json!({"artifacts": {}}),
        13 => json!({"anything": 1}),
        _ => {
            let times = [
                "T23:59:59Z",
                "t23:59:59z",
                " 23:59:59Z",
                "T23:59:59+01:00",
                "T23:59:59-00:00",
                "T23:59:59.5Z",
                "T23:59:59.1234567899Z",
                "T23:59:60Z",
                "T24:00:00Z",
                "T23:59:59",
                "T23:59Z",
                "T23:59:59+25:00",
                "T23:59:59Z ",
                "T23:59:59,5Z",
                "T23:59:59Z[UTC]",
                "T23:59:59.Z",
                "T23:59:59+24:00",
                "T23:59:59\u{2212}01:00",
            ];
            json!({"not_after": format!("{day}{}", times[choose(times.len())])})
        }
    }
}
