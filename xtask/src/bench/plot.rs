//! Plots as SVG: plain shapes and text, no script, readable on light and on dark pages.

use std::fmt::Write as _;

use super::page::number;
use super::report::{Drawing, Plot};

const WIDTH: f64 = 720.0;
const TITLE_HEIGHT: f64 = 44.0;
const BAR_PITCH: f64 = 34.0;
const BAR_HEIGHT: f64 = 20.0;
/// Where bars begin, to the right of their names, and where the longest ends, before its value.
const BARS_FROM: f64 = 210.0;
const BARS_TO: f64 = 610.0;
/// The area of curves; their names are to the right of it.
const CURVES_FROM: (f64, f64) = (70.0, 60.0);
const CURVES_TO: (f64, f64) = (540.0, 300.0);
const CURVES_HEIGHT: f64 = 350.0;
const NAME_PITCH: f64 = 17.0;

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}.axis{stroke:#8c959f}\
.faint{fill:#59636e}.a{fill:#0969da}.b{fill:#8c959f}.c{fill:#bf3989}.d{fill:#1a7f37}.e{fill:#bc4c00}\
path.a,path.b,path.c,path.d,path.e{fill:none;stroke-width:2}path.a{stroke:#0969da}path.b{stroke:#8c959f}\
path.c{stroke:#bf3989}path.d{stroke:#1a7f37}path.e{stroke:#bc4c00}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.faint{fill:#9198a1}.a{fill:#4493f8}.c{fill:#db61a2}\
.d{fill:#3fb950}.e{fill:#db6d28}path.a{stroke:#4493f8}path.c{stroke:#db61a2}path.d{stroke:#3fb950}path.e{stroke:#db6d28}}";
const COLOURS: [&str; 5] = ["a", "c", "d", "e", "b"];

pub(super) fn svg(plot: &Plot) -> String {
    let (height, shapes) = match &plot.drawing {
        Drawing::Bars { unit, bars } => draw_bars(unit, bars),
        Drawing::Curves { unit, along, curves } => draw_curves(unit, along, curves),
    };
    let title = escaped(&plot.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"10\" y=\"24\">{title}</text>\n{shapes}</svg>\n"
    )
}

/// The service's own bars stand out from those it is compared with.
fn draw_bars(unit: &str, bars: &[(String, f64)]) -> (f64, String) {
    let most = greatest(bars.iter().map(|(_, value)| *value));
    let (mut shapes, mut y) = (String::new(), TITLE_HEIGHT);
    for (name, value) in bars {
        let length = (BARS_TO - BARS_FROM) * value / most;
        let colour = if name.starts_with("pilot") { "a" } else { "b" };
        let (middle, beside) = (y + BAR_HEIGHT / 2.0 + 4.5, BARS_FROM + length + 8.0);
        shapes += &text(BARS_FROM - 10.0, middle, "end", name);
        let _ = writeln!(
            shapes,
            "<rect class=\"{colour}\" x=\"{BARS_FROM}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\"/>"
        );
        shapes += &text(beside, middle, "start", &number(*value));
        y += BAR_PITCH;
    }
    let _ = writeln!(shapes, "<text class=\"faint\" x=\"{BARS_FROM}\" y=\"{}\">{}</text>", y + 8.0, escaped(unit));
    (y + 24.0, shapes)
}

type Curve = (String, Vec<(f64, f64)>);

fn draw_curves(unit: &str, along: &str, curves: &[Curve]) -> (f64, String) {
    let axes = Axes::around(curves);
    let mut shapes = axes.draw(unit, along, curves);
    let mut names = Vec::new();
    for ((name, points), colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let mut path = String::new();
        for (index, (size, value)) in points.iter().enumerate() {
            let (x, y) = (axes.x(*size), axes.y(*value));
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { " L" });
            let _ = writeln!(shapes, "<circle class=\"{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        }
        let _ = writeln!(shapes, "<path class=\"{colour}\" d=\"{path}\"/>");
        names.extend(points.last().map(|(_, value)| (axes.y(*value), name.as_str())));
    }
    (CURVES_HEIGHT, shapes + &draw_names(names))
}

/// Next to where the curves end; those that end close together are moved apart.
fn draw_names(mut names: Vec<(f64, &str)>) -> String {
    names.sort_by(|(above, _), (below, _)| above.total_cmp(below));
    let mut free_from = 0.0_f64;
    let mut shapes = String::new();
    for (end, name) in names {
        let at = end.max(free_from);
        shapes += &text(CURVES_TO.0 + 12.0, at + 4.5, "start", name);
        free_from = at + NAME_PITCH;
    }
    shapes
}

/// Logarithmic along the bottom, from zero upwards.
struct Axes {
    /// Logarithms of the smallest and the largest size.
    first: f64,
    last: f64,
    most: f64,
}

impl Axes {
    fn around(curves: &[Curve]) -> Axes {
        let points = || curves.iter().flat_map(|(_, points)| points.iter());
        let logarithms = || points().map(|(size, _)| size.max(1.0).log10());
        Axes {
            first: logarithms().fold(f64::INFINITY, f64::min),
            last: logarithms().fold(0.0, f64::max),
            most: round_up(greatest(points().map(|(_, value)| *value))),
        }
    }

    fn x(&self, size: f64) -> f64 {
        let share = (size.max(1.0).log10() - self.first) / (self.last - self.first).max(f64::EPSILON);
        CURVES_FROM.0 + (CURVES_TO.0 - CURVES_FROM.0) * share
    }

    fn y(&self, value: f64) -> f64 {
        CURVES_TO.1 - (CURVES_TO.1 - CURVES_FROM.1) * value / self.most
    }

    fn draw(&self, unit: &str, along: &str, curves: &[Curve]) -> String {
        let ((left, top), (right, bottom)) = (CURVES_FROM, CURVES_TO);
        let mut shapes = String::new();
        for quarter in 0..=4 {
            let value = self.most * f64::from(quarter) / 4.0;
            shapes += &line(left, self.y(value), right, self.y(value));
            shapes += &text(left - 8.0, self.y(value) + 4.5, "end", &number(value));
        }
        let mut sizes: Vec<f64> = curves.iter().flat_map(|(_, points)| points.iter().map(|(size, _)| *size)).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        for size in sizes {
            shapes += &text(self.x(size), bottom + 20.0, "middle", &number(size));
        }
        shapes += &text(f64::midpoint(left, right), bottom + 40.0, "middle", along);
        shapes + &text(left, top - 12.0, "start", unit)
    }
}

/// The next of 1, 2, 5, 10, 20, 50, … so that the axis has round numbers.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|round| *round >= value).unwrap_or(value)
}

/// Never zero: values are divided by it.
fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    let found = values.fold(0.0, f64::max);
    if found > 0.0 { found } else { 1.0 }
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escaped(text))
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> String {
    format!("<line class=\"axis\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke-width=\"0.5\"/>\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(drawing: Drawing) -> String {
        let svg = svg(&Plot { file: "plot", title: "Reads & writes".into(), drawing });
        assert!(svg.contains("<title>Reads &amp; writes</title>") && svg.contains("prefers-color-scheme:dark"));
        assert!(!svg.contains("script") && !svg.contains("NaN") && !svg.contains("href"));
        svg.lines().skip(4).filter(|line| !line.starts_with("</svg")).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn bars_begin_at_zero_and_the_longest_fills_the_width() {
        let bars = vec![("pilot".to_owned(), 2_000.0), ("nginx <log>".to_owned(), 1_000.0)];
        let expected = "\
<text x=\"200.0\" y=\"58.5\" text-anchor=\"end\">pilot</text>
<rect class=\"a\" x=\"210\" y=\"44\" width=\"400.0\" height=\"20\"/>
<text x=\"618.0\" y=\"58.5\" text-anchor=\"start\">2,000</text>
<text x=\"200.0\" y=\"92.5\" text-anchor=\"end\">nginx &lt;log&gt;</text>
<rect class=\"b\" x=\"210\" y=\"78\" width=\"200.0\" height=\"20\"/>
<text x=\"418.0\" y=\"92.5\" text-anchor=\"start\">1,000</text>
<text class=\"faint\" x=\"210\" y=\"120\">a second</text>
";
        assert_eq!(shapes(Drawing::Bars { unit: "a second", bars }), expected);
    }

    #[test]
    fn curves_go_along_a_logarithmic_axis_from_zero() {
        let curves = vec![("writes".to_owned(), vec![(1e4, 10.0), (1e5, 5.0), (1e6, 10.0)])];
        let drawn = shapes(Drawing::Curves { unit: "ms", along: "entries", curves });
        let path = drawn.lines().find(|line| line.starts_with("<path")).unwrap();
        assert_eq!(path, "<path class=\"a\" d=\"M70.0 60.0 L305.0 180.0 L540.0 60.0\"/>");
        for label in [">10,000<", ">100,000<", ">1,000,000<", ">entries<", ">ms<", ">writes<", ">2.50<"] {
            assert!(drawn.contains(label), "{label} in {drawn}");
        }
    }

    #[test]
    fn nothing_to_draw_is_drawn_as_nothing() {
        assert_eq!(shapes(Drawing::Bars { unit: "s", bars: Vec::new() }).lines().count(), 1);
        shapes(Drawing::Bars { unit: "s", bars: vec![("pilot".into(), 0.0)] });
        shapes(Drawing::Curves { unit: "s", along: "entries", curves: Vec::new() });
    }
}
