use super::super::report::{Drawing, Plot};
use super::*;

fn machine() -> Description {
    Description {
        date: "2026-05-04".into(),
        processor: "AMD EPYC 7B13".into(),
        cores: 2,
        memory_gib: 23.6,
        kernel: "6.1.0".into(),
        compiler: "rustc 1.95.0".into(),
    }
}

fn section() -> Section {
    let figure = |what: &str, value, unit, target, spread| Figure { what: what.into(), value, unit, target, spread };
    let bars = vec![("pilot".to_owned(), 1.0)];
    Section {
        title: "Session",
        about: "What was run.\n\nAgainst what.".into(),
        figures: vec![
            figure("pilot / nginx", 1.0349, "", Target::AtLeast(1.0), 0.021),
            figure("p99", 12.34, "ms", Target::AtMost(8.0), f64::NAN),
        ],
        tables: vec![Table { columns: vec!["server", "requests"], rows: vec![vec!["pilot".into(), "1,000".into()]] }],
        plots: vec![Plot { file: "session", title: "Requests".into(), drawing: Drawing::Bars { unit: "s", bars } }],
    }
}

const PAGE: &str = "\
Measured on 2026-05-04: 2 cores of AMD EPYC 7B13, 24 GiB of memory, Linux 6.1.0, rustc 1.95.0.

## Targets

| benchmark | figure | value | target | | spread |
|---|---|--:|--:|---|--:|
| Session | pilot / nginx | 1.03 | ≥ 1.00 | met | 2 % |
| Session | p99 | 12.3 ms | ≤ 8.00 ms | **missed** | – |

## Session

What was run.

Against what.

To repeat it: `cargo xtask bench session`.

| server | requests |
|---|--:|
| pilot | 1,000 |

![Requests](performance/session.svg)

`cargo xtask bench growth` could not be measured.

## Conditions
";

#[test]
fn a_page_has_each_figure_with_its_target_and_each_benchmark_with_its_conditions() {
    let conditions =
        Conditions { load_before: "0.1 0.2 0.3".into(), load_after: "1.1 0.4 0.3".into(), others: 0.013, stolen: 0.0 };
    let measured =
        |command: &str, section| Measured { command: command.into(), section, conditions: conditions.clone() };
    let page = markdown(&machine(), &[measured("session", Some(section())), measured("growth", None)]);
    assert!(page.starts_with("# Performance\n\n`cargo xtask bench` measures everything"), "{page}");
    assert!(page.contains(PAGE), "{page}");
    assert!(page.ends_with(
        "| `session` | 0.1 0.2 0.3 | 1.1 0.4 0.3 | 1 % | 0 % |\n| `growth` | 0.1 0.2 0.3 | 1.1 0.4 0.3 | 1 % | 0 % |\n"
    ));
    assert!(page.lines().filter(|line| !line.starts_with('|')).all(|line| line.chars().count() <= COLUMNS));
}

#[test]
fn numbers_have_three_or_four_digits_that_mean_something() {
    for (value, expected) in [
        (0.0, "0.00"),
        (0.987, "0.99"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (1234.5, "1,234"),
        (36_700.0, "36,700"),
        (5e6, "5,000,000"),
        (-1234.6, "-1,235"),
        (f64::NAN, "–"),
    ] {
        assert_eq!(number(value), expected, "{value}");
    }
}

#[test]
fn long_paragraphs_are_wrapped_between_words() {
    let text = "word ".repeat(50);
    let lengths: Vec<_> = wrapped(&text).lines().map(str::len).collect();
    assert_eq!(lengths, [119, 119, 9]);
}
