//! Times and lengths of time as people write them: `2026-11-15T09:30:00Z`, `2h`, `1d12h`.

use std::str::FromStr;
use std::time::Duration;

use pilot_core::time::Time;

/// A point in time, or a length of time from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    At(Time),
    In(Duration),
}

impl Moment {
    pub(crate) fn from(self, now: Time) -> Time {
        match self {
            Moment::At(time) => time,
            Moment::In(span) => now.plus(span),
        }
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Moment, Self::Err> {
        let span = || span(text).map(Moment::In);
        text.parse().map(Moment::At).or_else(|_| span()).map_err(|_| "write a time such as 2026-11-15T09:30:00Z, or 2h")
    }
}

/// `90s`, `30m`, `2h`, `1d`, or several of them in this order from long to short: `1d12h`.
pub(crate) fn span(text: &str) -> Result<Duration, &'static str> {
    let wrong = "write a length of time such as 90s, 30m, 2h or 1d12h";
    let (mut seconds, mut rest, mut smallest) = (0_u64, text, u64::MAX);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or(wrong)?;
        let (digits, after) = rest.split_at_checked(end).ok_or(wrong)?;
        let unit = match after.bytes().next() {
            Some(b'd') => 86_400,
            Some(b'h') => 3_600,
            Some(b'm') => 60,
            Some(b's') => 1,
            _ => return Err(wrong),
        };
        let number: u64 = digits.parse().map_err(|_| wrong)?;
        if unit >= smallest {
            return Err(wrong);
        }
        let more = number.checked_mul(unit).and_then(|more| seconds.checked_add(more));
        (seconds, smallest, rest) = (more.ok_or(wrong)?, unit, after.get(1..).unwrap_or(""));
    }
    if text.is_empty() { Err(wrong) } else { Ok(Duration::from_secs(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_written_with_its_units() {
        for (text, seconds) in [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d12h", 129_600), ("0s", 0)] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "2", "h", "2x", "2h2h", "1m1h", "-2h", "2 h", "99999999999999999999d", "99999999999999999d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_a_length_from_now() {
        let now = Time::from_unix_micros(0);
        assert_eq!("1970-01-01T00:00:05Z".parse::<Moment>().unwrap().from(now), now.plus(Duration::from_secs(5)));
        assert_eq!("5s".parse::<Moment>().unwrap().from(now), now.plus(Duration::from_secs(5)));
        assert!("tomorrow".parse::<Moment>().is_err());
    }
}
