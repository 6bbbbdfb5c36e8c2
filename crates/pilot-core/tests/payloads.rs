//! What is decided on is what is stored: a payload that was accepted is the same payload after it was written and read
//! again, and the rules see the same thing in it before and after.

use pilot_core::json::{self, Bounds};
use pilot_core::limits::{BODY_VALUES_MAX, PAYLOAD_DEPTH_MAX};
use pilot_core::payload::Payload;
use pilot_core::workflow::{Definition, builtin};
use proptest::prelude::*;
use serde_json::{Value, json};

const BOUNDS: Bounds = Bounds { depth: PAYLOAD_DEPTH_MAX + 4, values: BODY_VALUES_MAX };

/// Numbers as people and programs write them, and as nobody does.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter("JSON has no infinities", |number| number.is_finite()).prop_map(|n| format!("{n:e}")),
        (-1_000_i32..1_000, 0_u8..4)
            .prop_map(|(whole, zeros)| format!("{whole}.{}", "0".repeat(1 + usize::from(zeros)))),
        (-30_i32..30, -330_i32..310).prop_map(|(digits, exponent)| format!("{digits}e{exponent}")),
        prop::sample::select(vec![
            "-0",
            "-0.0",
            "0e9",
            "2.0",
            "2e0",
            "20e-1",
            "1e15",
            "9007199254740991.0",
            "9007199254740991",
            "-9007199254740991",
            "9007199254740992",
            "4.9e-324",
            "1.7976931348623157e308",
            "0.1",
            "1e-7",
            "123456789.123456789",
        ])
        .prop_map(str::to_owned),
    ]
}

fn text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap())
}

fn document() -> impl Strategy<Value = String> {
    let leaf =
        prop_oneof![number(), text(), prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned)];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(|elements| format!("[{}]", elements.join(","))),
            prop::collection::vec((text(), inner), 0..8).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn an_accepted_payload_is_the_same_after_it_was_written_in_canonical_form(text in document()) {
        let Ok(accepted) = json::parse(text.as_bytes(), BOUNDS) else { return Ok(()) };
        let kept = Payload::of(&accepted);
        let again = json::parse(kept.as_str().as_bytes(), BOUNDS).unwrap();
        prop_assert_eq!(&again, &accepted);
        // The store reads it with the library's own reader, which must see the same.
        prop_assert_eq!(&kept.value(), &accepted);
        prop_assert_eq!(Payload::of(&kept.value()), kept);
    }

    #[test]
    fn a_pointer_finds_the_same_in_the_kept_text_as_in_the_values(text in document(), name in any::<String>()) {
        let Ok(accepted) = json::parse(text.as_bytes(), BOUNDS) else { return Ok(()) };
        let kept = Payload::of(&accepted);
        let mut pointers = vec![String::new(), json::join("", &name)];
        json::for_each_text(&accepted, &mut |pointer, name| {
            pointers.push(pointer.to_owned());
            pointers.push(json::join(pointer, name));
        });
        for pointer in pointers.iter().take(40) {
            let found = kept.at(pointer);
            prop_assert_eq!(found.as_ref(), accepted.pointer(pointer), "{}", pointer);
        }
    }
}

/// `controlled-operation` with a quorum that depends on a number.
fn with_number(equals: &str) -> Definition {
    let text = builtin::CONTROLLED_OPERATION;
    let start = text.find("quorum_if").unwrap();
    let end = start + text[start..].find('\n').unwrap();
    let changed = format!("quorum_if = {{ pointer = \"/level\", equals = {equals}, quorum = 2 }}");
    let text = format!("{}{changed}{}", &text[..start], &text[end..]);
    let text = text.replacen("required = [\"purpose\"", "required = [\"level\", \"purpose\"", 1);
    Definition::parse(&(text + "\n[payload_schema.properties.level]\ntype = \"number\"\n")).unwrap()
}

#[test]
fn a_quorum_that_depends_on_a_number_does_not_depend_on_how_the_number_is_written() {
    for equals in ["2", "2.0", "2e0"] {
        let definition = with_number(equals);
        let approve = definition.rules().transitions.iter().find(|rule| *rule.action == *"approve").unwrap();
        for (written, votes) in [("2", 2), ("2.0", 2), ("20e-1", 2), ("0.2e1", 2), ("2.5", 1), ("\"2\"", 1), ("-2", 1)]
        {
            let payload = json::parse(format!("{{\"level\":{written}}}").as_bytes(), BOUNDS).unwrap();
            assert_eq!(approve.votes_needed(&Payload::of(&payload)), Some(votes), "{equals} and {written}");
        }
    }
    assert_eq!(with_number("2").digest(), with_number("2.0").digest());
}

#[test]
fn minus_zero_is_zero() {
    let read = |text: &str| json::parse(text.as_bytes(), BOUNDS).unwrap();
    assert_eq!(read("{\"a\":-0.0}"), json!({"a": 0}));
    assert_eq!(Payload::of(&read("{\"a\":-0.0}")).as_str(), "{\"a\":0}");
    assert_eq!(read("[0e5]"), Value::from(vec![0]));
}
