//! When people are reminded: halfway through a time limit, near its end, and an hour before a window closes.

use std::collections::BTreeSet;
use std::time::Duration;

use pilot_core::decide::due_at;
use pilot_core::item::Item;
use pilot_core::time::Time;
use pilot_core::workflow::{Definition, Due, Mark};

/// People with less time than this are already at it, or a reminder comes too late for them.
const LIMIT_MIN: Duration = Duration::from_mins(10);
const BEFORE_WINDOW_ENDS: Duration = Duration::from_hours(1);

/// How long before the end of such a time limit people are reminded: half of it, and 15 % of it.
fn before_end(limit: Duration) -> [Duration; 2] {
    [limit / 2, limit * 15 / 100]
}

/// Every distance between a reminder and the deadline it is about, as these definitions have it.
pub(crate) fn distances<'d>(definitions: impl Iterator<Item = &'d Definition>) -> BTreeSet<Duration> {
    let mut distances = BTreeSet::new();
    for timer in definitions.flat_map(|definition| &definition.rules().timers) {
        match &timer.due {
            Due::After(span) if span.length >= LIMIT_MIN => distances.extend(before_end(span.length)),
            Due::At(Mark::WindowEnd) => distances.extend([BEFORE_WINDOW_ENDS]),
            Due::After(_) | Due::At(Mark::LeaseEnd) => {}
        }
    }
    distances
}

/// The last reminder about the item that was due after `after` and not after `until`.
pub(crate) fn due_within(definition: &Definition, item: &Item, after: Time, until: Time) -> Option<Time> {
    let deadline = due_at(definition, item)?.at;
    if deadline <= until {
        return None;
    }
    let window = item.window.as_ref().map(|window| window.not_after);
    let lease = item.lease.as_ref().map(|lease| lease.expires_at);
    let limit = deadline.since(item.entered_at);
    let distances: &[Duration] = match () {
        () if lease == Some(deadline) => &[],
        () if window == Some(deadline) => &[BEFORE_WINDOW_ENDS],
        () if limit < LIMIT_MIN => &[],
        () => &before_end(limit),
    };
    let micros = |distance: &Duration| i64::try_from(distance.as_micros()).unwrap_or(i64::MAX);
    let moments = distances
        .iter()
        .map(|distance| Time::from_unix_micros(deadline.unix_micros().saturating_sub(micros(distance))));
    moments.filter(|moment| *moment > after && *moment <= until && *moment > item.entered_at).max()
}

/// `36 hours`
pub(crate) fn in_words(left: Duration) -> String {
    let minutes = left.as_secs() / 60;
    let (count, unit) = match minutes {
        0..=1 => return "one minute".to_owned(),
        2..=119 => (minutes, "minutes"),
        120..=2879 => (minutes / 60, "hours"),
        _ => (minutes / 1440, "days"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_said_in_the_unit_that_people_would_use() {
        let words = |minutes| in_words(Duration::from_mins(minutes));
        let said = [0, 1, 2, 60, 119, 120, 179, 2160, 2879, 2880, 14_400].map(words);
        let expected = [
            "one minute",
            "one minute",
            "2 minutes",
            "60 minutes",
            "119 minutes",
            "2 hours",
            "2 hours",
            "36 hours",
            "47 hours",
            "2 days",
            "10 days",
        ];
        assert_eq!(said, expected);
    }
}
