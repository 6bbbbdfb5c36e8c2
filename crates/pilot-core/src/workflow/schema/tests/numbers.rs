//! Numbers that can come through the door, compared and divided.

use serde_json::{Value, json};

use super::Both;
use super::dice::Dice;
use crate::json::{Bounds, parse};

/// As people write them: few digits, and a point somewhere.
fn number(dice: &mut Dice) -> Value {
    let digits = match dice.below(4) {
        0 => dice.below(12),
        1 => dice.below(1_000),
        2 => dice.below(100_000_000),
        _ => dice.pick(&[1, 5, 10, 25, 100, 9_007_199_254_740_991]),
    };
    let sign = dice.pick(&["", "", "-"]);
    let text = match dice.below(3) {
        0 => format!("{sign}{digits}"),
        1 => format!("{sign}{digits}.{}", dice.pick(&["0", "5", "1", "01", "125", "333", "9999"])),
        _ => format!("{sign}{digits}e-{}", dice.below(9)),
    };
    parse(text.as_bytes(), Bounds { depth: 1, values: 1 }).unwrap_or(Value::from(0))
}

#[test]
fn numbers_are_compared_and_divided_as_the_oracle_does_it() {
    let mut dice = Dice::new(20_261_116);
    let mut valid = 0;
    for _ in 0..4_000 {
        let (limit, other) = (number(&mut dice), number(&mut dice));
        let keyword = dice.pick(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const"]);
        let is_step = limit.as_f64().is_some_and(|step| step > 0.0);
        let schema = match keyword {
            "multipleOf" if !is_step => json!({"enum": [limit, other]}),
            _ => json!({ keyword: limit }),
        };
        let both = Both::of(schema);
        for payload in [&limit, &other, &number(&mut dice), &json!([limit])] {
            valid += usize::from(both.agree(payload));
        }
    }
    assert!((4_000..14_000).contains(&valid), "{valid} were valid");
}
