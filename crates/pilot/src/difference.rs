//! How one content differs from another, member by member, for people.

use serde_json::Value;

/// `- /payload/risk: "low"` and `+ /payload/risk: "high"` for each value that was removed, added or changed.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", before, after, &mut lines);
    lines
}

fn compare(pointer: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => compare(&below, old, new, lines),
                    (old, new) => {
                        lines.extend(old.map(|old| line('-', &below, old)));
                        lines.extend(new.map(|new| line('+', &below, new)));
                    }
                }
            }
        }
        _ => lines.extend([line('-', pointer, before), line('+', pointer, after)]),
    }
}

fn line(sign: char, pointer: &str, value: &Value) -> String {
    format!("{sign} {pointer}: {value}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_change_is_a_line_and_nothing_else_is() {
        let before = json!({"a": 1, "b": {"c": "x", "d": "same"}, "gone": [1]});
        let after = json!({"a": 2, "b": {"c": {"e": 1}, "d": "same"}, "new/er": "line\nbreak"});
        assert_eq!(
            differences(&before, &after),
            [
                "- /a: 1",
                "+ /a: 2",
                "- /b/c: \"x\"",
                "+ /b/c: {\"e\":1}",
                "- /gone: [1]",
                "+ /new~1er: \"line\\nbreak\""
            ]
        );
        assert!(differences(&after, &after).is_empty());
    }
}
