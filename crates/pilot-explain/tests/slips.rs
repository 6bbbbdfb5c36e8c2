//! Whatever is written into a definition: an answer, never a panic.

use pilot_core::workflow::builtin::CONTROLLED_OPERATION;
use pilot_core::workflow::report::report;
use pilot_explain::report::to_text;
use proptest::prelude::*;

/// One slip of the pen: cut out a piece, or put something in.
#[derive(Debug, Clone)]
struct Slip {
    at: usize,
    cut: usize,
    put: &'static str,
}

fn slip() -> impl Strategy<Value = Slip> {
    let pieces = [
        "",
        "\"",
        "[",
        "]]",
        "=",
        "\n",
        "ä",
        "0",
        "-1",
        "'''",
        "roles = 7\n",
        "[[state]]\n",
        "{ a = 1979-05-27 }",
        "\\",
        "\u{0}",
        "same",
    ];
    let put = proptest::sample::select(pieces.to_vec());
    (0..CONTROLLED_OPERATION.len(), 0..40_usize, put).prop_map(|(at, cut, put)| Slip { at, cut, put })
}

fn slipped(slips: &[Slip]) -> String {
    let mut text = CONTROLLED_OPERATION.to_owned();
    for Slip { at, cut, put } in slips {
        let at = text.floor_char_boundary((*at).min(text.len()));
        let end = text.ceil_char_boundary((at + cut).min(text.len()));
        text.replace_range(at..end, put);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_definition_with_slips_of_the_pen_gets_an_answer(slips in proptest::collection::vec(slip(), 1..4)) {
        let text = slipped(&slips);
        let report = report(&text, None);
        prop_assert_eq!(report.findings.is_empty(), report.workflow.is_some());
        prop_assert!(!to_text(&report, "slips.toml", true).is_empty());
        prop_assert!(report.flaws().is_none_or(|flaws| !flaws.to_string().is_empty()));
        for placed in &report.findings {
            prop_assert!(placed.line >= 1 && placed.line <= text.lines().count() + 1);
            prop_assert!(!placed.finding.message.is_empty() && !placed.finding.mend.is_empty());
        }
    }
}
