//! `--fields id,state`: chosen members of what would be printed, as lines of tab-separated values.

use serde_json::Value;

use crate::exit::Failure;

/// One line for each row. A member of a member is named with a dot: `created_by.actor_id`.
pub(crate) fn tsv(rows: &[Value], fields: &[String]) -> Result<String, Failure> {
    let mut text = String::new();
    for row in rows {
        let cells = fields.iter().map(|field| cell(row, field)).collect::<Result<Vec<_>, _>>()?;
        text += &(cells.join("\t") + "\n");
    }
    Ok(text)
}

fn cell(row: &Value, field: &str) -> Result<String, Failure> {
    let mut names = field.split('.');
    let first = names.next().unwrap_or_default();
    // Only the first is known to be there; what is in a payload is up to its writer.
    let top = row.get(first).ok_or_else(|| {
        let known: Vec<_> = row.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        Failure::Usage(format!("--fields: there is no {first}; there are {}", known.join(", ")))
    })?;
    let found = names.try_fold(top, |value, name| value.get(name));
    Ok(match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => escaped(text),
        Some(other) => escaped(&other.to_string()),
    })
}

/// A value never ends its cell or its line.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_cannot_pose_as_another_cell_or_line() {
        let row = json!({"id": "a", "title": "x\ty\nz\\", "by": {"actor_id": "ana"}, "window": null, "n": [1, 2]});
        let fields = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let text =
            tsv(std::slice::from_ref(&row), &fields(&["id", "title", "by.actor_id", "by.missing", "window", "n"]))
                .unwrap();
        assert_eq!(text, "a\tx\\ty\\nz\\\\\tana\t\t\t[1,2]\n");
        let Err(Failure::Usage(said)) = tsv(&[row], &fields(&["state"])) else { panic!() };
        assert!(said.contains("there is no state; there are by, id"), "{said}");
    }
}
