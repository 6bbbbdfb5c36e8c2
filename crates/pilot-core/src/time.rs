//! Points in time as Pilot writes them: RFC 3339, UTC, always six decimals, so that text order is time order.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::certain::Certain as _;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// The range in which every time is written with a four-digit year.
const EARLIEST: i64 = -62_167_219_200_000_000;
const LATEST: i64 = 253_402_207_200_000_000 - 1;

impl Time {
    pub const EPOCH: Time = Time(0);

    /// Clamped to years 0000 to 9999: a clock outside that range is broken, and must not be able to stop the service.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Time(if micros < EARLIEST {
            EARLIEST
        } else if micros > LATEST {
            LATEST
        } else {
            micros
        })
    }

    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Time::from_unix_micros(self.0.saturating_add(micros))
    }

    /// How long after `earlier` this is; zero when it is before.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// The number of characters in a written time.
const WIDTH: usize = 27;

impl Time {
    /// By hand: every log line and every entry has a time, and a fixed format needs no general formatter.
    fn write(self) -> [u8; WIDTH] {
        const SECOND: i64 = 1_000_000;
        const DAY: i64 = 86_400 * SECOND;
        let (days, of_day) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = civil(days);
        let (seconds, micros) = (of_day / SECOND, of_day % SECOND);
        let [y1, y2] = two_digits(year / 100);
        let [y3, y4] = two_digits(year % 100);
        let ([o1, o2], [d1, d2]) = (two_digits(month), two_digits(day));
        let ([h1, h2], [m1, m2]) = (two_digits(seconds / 3600), two_digits(seconds / 60 % 60));
        let ([s1, s2], [f1, f2]) = (two_digits(seconds % 60), two_digits(micros / 10_000));
        let ([f3, f4], [f5, f6]) = (two_digits(micros / 100 % 100), two_digits(micros % 100));
        [
            y1, y2, y3, y4, b'-', o1, o2, b'-', d1, d2, b'T', h1, h2, b':', m1, m2, b':', s1, s2, b'.', f1, f2, f3, f4,
            f5, f6, b'Z',
        ]
    }
}

impl Time {
    /// The time that is written exactly like this. By hand, because every entry that is verified has one.
    pub fn of_written(text: &[u8; WIDTH]) -> Option<Time> {
        let [
            y1,
            y2,
            y3,
            y4,
            b'-',
            o1,
            o2,
            b'-',
            d1,
            d2,
            b'T',
            h1,
            h2,
            b':',
            m1,
            m2,
            b':',
            s1,
            s2,
            b'.',
            f1,
            f2,
            f3,
            f4,
            f5,
            f6,
            b'Z',
        ] = *text
        else {
            return None;
        };
        let year = number([y1, y2])? * 100 + number([y3, y4])?;
        let days = days(year, number([o1, o2])?, number([d1, d2])?);
        let (hour, minute, second) = (number([h1, h2])?, number([m1, m2])?, number([s1, s2])?);
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
        let micros = number([f1, f2])? * 10_000 + number([f3, f4])? * 100 + number([f5, f6])?;
        let time = Time::from_unix_micros(seconds * 1_000_000 + micros);
        // A day or an hour that does not exist is written in another way, and so is a time out of range.
        (time.write() == *text).then_some(time)
    }

    /// The same text as `Display` gives, without its machinery.
    pub fn push_to(self, text: &mut String) {
        text.push_str(std::str::from_utf8(&self.write()).certain("digits are text"));
    }
}

/// For numbers below 100.
fn two_digits(number: i64) -> [u8; 2] {
    let number = u8::try_from(number).certain("parts of a time are below 100");
    [b'0' + number / 10, b'0' + number % 10]
}

/// Of two digits.
fn number(digits: [u8; 2]) -> Option<i64> {
    let [tens, ones] = digits.map(|digit| digit.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.write()).certain("digits are text"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.write()).certain("digits are text"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time as text")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Year, month and day of a number of days since 1970-01-01, counted in eras of 400 years that begin on 1 March 0000,
/// so that the leap day is the last of a year.
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}

/// The opposite of [`civil`].
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a time is written as RFC 3339, for example 2026-11-15T09:30:00Z")]
pub struct MalformedTime;

impl FromStr for Time {
    type Err = MalformedTime;

    fn from_str(text: &str) -> Result<Self, MalformedTime> {
        // RFC 3339 and nothing else of ISO 8601: an offset is required, and nothing may follow it.
        let rfc3339 = text.len() >= 20
            && text.is_ascii()
            && matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' '))
            && !text.contains('[');
        let stamp: Timestamp = text.parse().ok().filter(|_| rfc3339).ok_or(MalformedTime)?;
        Ok(Time::from_unix_micros(stamp.as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc_with_six_decimals() {
        for (read, written) in [
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00.000000Z"),
            ("2026-11-15T10:30:00.123456789+01:00", "2026-11-15T09:30:00.123456Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"),
        ] {
            assert_eq!(read.parse::<Time>().unwrap().to_string(), written);
        }
        for time in [Time::from_unix_micros(i64::MIN), Time::from_unix_micros(i64::MAX), Time::EPOCH] {
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
            assert_eq!(time.to_string().len(), 27);
        }
        for wrong in ["", "2026-11-15", "2026-11-15T09:30:00", "now", "2026-11-15T09:30:00+01:00[Europe/Rome]"] {
            assert_eq!(wrong.parse::<Time>(), Err(MalformedTime), "{wrong}");
        }
    }

    #[test]
    fn times_of_ten_thousand_years_are_written_as_the_calendar_library_writes_them() {
        const STEP: usize = 13 * 86_400_000_000 + 1_234_567;
        for micros in (EARLIEST..=LATEST).step_by(STEP) {
            let stamp = Timestamp::from_microsecond(micros).unwrap();
            assert_eq!(Time(micros).to_string(), format!("{stamp:.6}"));
            assert_eq!(Time::of_written(&Time(micros).write()), Some(Time(micros)));
        }
    }

    #[test]
    fn a_time_is_read_by_hand_only_as_it_is_written() {
        let read = |text: &str| Time::of_written(text.as_bytes().first_chunk().unwrap());
        assert_eq!(read("2026-11-15T09:30:00.000001Z"), "2026-11-15T09:30:00.000001Z".parse().ok());
        assert_eq!(read("2024-02-29T00:00:00.000000Z"), "2024-02-29T00:00:00.000000Z".parse().ok());
        for wrong in [
            "2023-02-29T00:00:00.000000Z",
            "2023-00-10T00:00:00.000000Z",
            "2023-13-10T00:00:00.000000Z",
            "2023-01-00T00:00:00.000000Z",
            "2023-01-10T24:00:00.000000Z",
            "2023-01-10T00:60:00.000000Z",
            "2023-01-10T00:00:60.000000Z",
            "2023-01-10T00:00:0/.000000Z",
            "2023-01-10 00:00:00.000000Z",
            "2023-01-10T00:00:00.000000z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn time_arithmetic_saturates_instead_of_overflowing() {
        let last = Time::from_unix_micros(i64::MAX);
        assert_eq!(last.plus(Duration::MAX), last);
        assert_eq!(Time::EPOCH.since(last), Duration::ZERO);
        assert_eq!(Time::EPOCH.plus(Duration::from_secs(2)).since(Time::EPOCH), Duration::from_secs(2));
    }
}
