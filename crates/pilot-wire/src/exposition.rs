//! Prometheus's text format, version 0.0.4: what every scraper reads, and `curl` shows.

use std::fmt::{Display, Write as _};

#[derive(Default)]
pub struct Exposition(String);

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

impl Exposition {
    /// A counter without labels. By convention its name ends with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Counter, help);
        self.sample(name, &[], value);
    }

    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.sample(name, &[], value);
    }

    /// What follows are samples of this name.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str());
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, of)) in labels.iter().enumerate() {
            self.0.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            for sign in of.to_string().chars() {
                match sign {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_labels_in_order_and_cannot_break_out_of_them() {
        let mut text = Exposition::default();
        text.counter("a_total", "Some.", 7_u64);
        text.family("b", Kind::Gauge, "Others.");
        text.sample("b", &[("one", &"x\"} 9\n"), ("two", &"y\\")], -1.5);
        let expected = "# HELP a_total Some.\n# TYPE a_total counter\na_total 7\n\
                        # HELP b Others.\n# TYPE b gauge\nb{one=\"x\\\"} 9\\n\",two=\"y\\\\\"} -1.5\n";
        assert_eq!(text.into_text(), expected);
    }
}
