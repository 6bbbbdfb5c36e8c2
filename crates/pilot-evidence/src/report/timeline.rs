//! An item's history as a picture: a lane for each role, a dot for each step, and above them the state it led to.

use std::fmt::Write as _;
use std::time::Duration;

use pilot_core::time::Time;

/// One step, or several equal ones in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub action: String,
    /// Empty if a timer moved the item.
    pub who: String,
    /// A role, or `clock`.
    pub lane: &'static str,
    pub state: String,
    pub at: Time,
    pub count: usize,
}

const PER_ROW: usize = 8;
const LEFT: usize = 118;
const STEP: usize = 106;
const TOP: usize = 50;
const LANE: usize = 38;

/// Merges repeated steps into one, so that an hour of heartbeats does not fill a page.
pub(super) fn gathered(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut gathered: Vec<Step> = Vec::new();
    for step in steps {
        match gathered.last_mut() {
            Some(last) if (&last.action, &last.who, &last.state) == (&step.action, &step.who, &step.state) => {
                last.count += 1;
                last.at = step.at;
            }
            _ => gathered.push(step),
        }
    }
    gathered
}

pub(super) fn svg(steps: &[Step]) -> String {
    let order = ["initiator", "approver", "security_admin", "executor", "auditor", "clock"];
    let lanes: Vec<_> = order.into_iter().filter(|lane| steps.iter().any(|step| step.lane == *lane)).collect();
    let mut text = String::new();
    let mut before = None;
    // Rows of about equal length: a single last step on its own row would look like a separate story.
    let rows = steps.len().div_ceil(PER_ROW).max(1);
    for row in steps.chunks(steps.len().div_ceil(rows).max(1)) {
        text += &row_svg(row, &lanes, before);
        before = row.last().map(|step| step.at);
    }
    text
}

fn row_svg(steps: &[Step], lanes: &[&str], mut before: Option<Time>) -> String {
    let (width, height) = (LEFT + STEP * PER_ROW + 8, TOP + LANE * lanes.len() + 44);
    let mut svg = format!(
        "<svg class=\"line\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Steps in order of time; the table below has the same in words\">\n"
    );
    let lane_y = |lane: &str| TOP + LANE * lanes.iter().position(|known| *known == lane).unwrap_or(0) + LANE / 2;
    let _ = writeln!(svg, "<text class=\"left small\" x=\"0\" y=\"22\">state</text>");
    for lane in lanes {
        let y = lane_y(lane);
        let _ = writeln!(svg, "<text class=\"who left {lane}\" x=\"0\" y=\"{}\">{lane}</text>", y + 4);
        let _ = writeln!(svg, "<line class=\"lane\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{width}\" y2=\"{y}\"/>");
    }
    let x = |number: usize| LEFT + STEP * number + STEP / 2;
    let points: Vec<_> =
        steps.iter().enumerate().map(|(number, step)| format!("{},{}", x(number), lane_y(step.lane))).collect();
    let _ = writeln!(svg, "<polyline class=\"path\" points=\"{}\"/>", points.join(" "));
    bands(&mut svg, steps);
    for (number, step) in steps.iter().enumerate() {
        let (x, y) = (x(number), lane_y(step.lane));
        let times = if step.count > 1 { format!(" ×{}", step.count) } else { String::new() };
        let _ = writeln!(svg, "<circle class=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>", step.lane);
        let _ =
            writeln!(svg, "<text x=\"{x}\" y=\"{}\">{}{times}</text>", y - 10, escaped(&shortened(&step.action, 15)));
        let _ = writeln!(
            svg,
            "<text class=\"small\" x=\"{x}\" y=\"{}\">{}</text>",
            y + 18,
            escaped(&shortened(&step.who, 16))
        );
        let since = before.map_or_else(
            || step.at.to_string().chars().take(10).collect(),
            |before| format!("+{}", span(step.at.since(before))),
        );
        before = Some(step.at);
        let clock: String = step.at.to_string().chars().skip(11).take(8).collect();
        let _ = writeln!(svg, "<text class=\"small\" x=\"{x}\" y=\"{}\">{clock}</text>", height - 20);
        let _ = writeln!(svg, "<text class=\"small\" x=\"{x}\" y=\"{}\">{since}</text>", height - 5);
    }
    svg + "</svg>\n"
}

/// The states above, each as a box as long as it lasted.
fn bands(svg: &mut String, steps: &[Step]) {
    let mut number = 0;
    for run in steps.chunk_by(|one, other| one.state == other.state) {
        let (left, width) = (LEFT + STEP * number + 3, STEP * run.len() - 6);
        let state = run.first().map_or("", |step| step.state.as_str());
        let _ = writeln!(svg, "<rect class=\"band\" x=\"{left}\" y=\"6\" width=\"{width}\" height=\"24\" rx=\"5\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"22\">{}</text>",
            left + width / 2,
            escaped(&shortened(state, 15 * run.len()))
        );
        number += run.len();
    }
}

/// The largest unit that says something.
fn span(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0 if length.as_millis() > 0 => format!("{} ms", length.as_millis()),
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).collect::<String>() + "…"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
