//! Times of day where people are: when they are not to be disturbed, and when a summary is due.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::civil;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use pilot_core::time::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time of day, such as `07:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(civil::Time);

/// From one time of day to another, such as `20:00-07:00`; past midnight if the second is earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    from: TimeOfDay,
    to: TimeOfDay,
}

/// A time zone by its name in the IANA database, such as `Europe/Berlin`.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

#[derive(Debug, thiserror::Error)]
pub enum NotATime {
    #[error("must be a time of day, such as \"07:30\"")]
    TimeOfDay,
    #[error("must be two different times of day, such as \"20:00-07:00\"")]
    Hours,
    #[error("is not a time zone that is known here; use a name such as \"Europe/Berlin\", or \"UTC\"")]
    Zone,
}

impl FromStr for TimeOfDay {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<TimeOfDay, NotATime> {
        let number = |digits: &str| {
            let is_short = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_short.then(|| digits.parse().ok()).flatten()
        };
        let (hour, minute) = text.split_once(':').ok_or(NotATime::TimeOfDay)?;
        let (hour, minute) = number(hour).zip(number(minute)).ok_or(NotATime::TimeOfDay)?;
        civil::Time::new(hour, minute, 0, 0).map(TimeOfDay).map_err(|_| NotATime::TimeOfDay)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

impl TimeOfDay {
    /// The last such moment that is not after `now`.
    pub fn latest(self, zone: &Zone, now: Time) -> Option<Time> {
        let here = zone.at(now)?;
        let today = self.on(&here, 0)?;
        if today <= now { Some(today) } else { self.on(&here, -1) }
    }

    /// The first such moment after `now`.
    fn next(self, zone: &Zone, now: Time) -> Option<Time> {
        let here = zone.at(now)?;
        let today = self.on(&here, 0)?;
        if today > now { Some(today) } else { self.on(&here, 1) }
    }

    /// On a day that skips this time of day, when clocks are put forward, it is as much later.
    fn on(self, here: &Zoned, days: i64) -> Option<Time> {
        let date = here.date().checked_add(days.days()).ok()?;
        let moment = date.to_datetime(self.0).to_zoned(here.time_zone().clone()).ok()?;
        Some(Time::from_unix_micros(moment.timestamp().as_microsecond()))
    }
}

impl FromStr for Hours {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Hours, NotATime> {
        let (from, to) = text.split_once('-').ok_or(NotATime::Hours)?;
        let (from, to): (TimeOfDay, TimeOfDay) = (from.trim().parse()?, to.trim().parse()?);
        if from == to { Err(NotATime::Hours) } else { Ok(Hours { from, to }) }
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.from, self.to)
    }
}

impl Hours {
    /// If `now` is within these hours: when they end.
    pub fn until(self, zone: &Zone, now: Time) -> Option<Time> {
        let time = zone.at(now)?.time();
        let (from, to) = (self.from.0, self.to.0);
        let is_within = if from < to { from <= time && time < to } else { from <= time || time < to };
        if is_within { self.to.next(zone, now) } else { None }
    }
}

impl FromStr for Zone {
    type Err = NotATime;

    fn from_str(name: &str) -> Result<Zone, NotATime> {
        TimeZone::get(name).map(Zone).map_err(|_| NotATime::Zone)
    }
}

impl Default for Zone {
    fn default() -> Zone {
        Zone(TimeZone::UTC)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Zone {
    fn at(&self, now: Time) -> Option<Zoned> {
        Timestamp::from_microsecond(now.unix_micros()).ok().map(|moment| moment.to_zoned(self.0.clone()))
    }

    /// As people write it: `20 Nov 2026, 10:00 CET`.
    pub fn written(&self, time: Time) -> String {
        self.at(time).map_or_else(|| time.to_string(), |here| here.strftime("%-d %b %Y, %H:%M %Z").to_string())
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    };
}

as_text!(TimeOfDay);
as_text!(Hours);
as_text!(Zone);

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        text.parse().unwrap()
    }

    fn until(hours: &str, zone: &str, now: &str) -> Option<String> {
        let (hours, zone): (Hours, Zone) = (hours.parse().unwrap(), zone.parse().unwrap());
        hours.until(&zone, time(now)).map(|end| end.to_string())
    }

    #[test]
    fn quiet_hours_end_at_their_end_where_the_person_is_also_past_midnight() {
        let end = |now| until("20:00-07:00", "Europe/Berlin", now);
        assert_eq!(end("2026-11-18T18:59:59.000000Z"), None, "a second before eight in the evening");
        assert_eq!(end("2026-11-18T19:00:00.000000Z").as_deref(), Some("2026-11-19T06:00:00.000000Z"));
        assert_eq!(end("2026-11-19T05:59:59.000000Z").as_deref(), Some("2026-11-19T06:00:00.000000Z"));
        assert_eq!(end("2026-11-19T06:00:00.000000Z"), None);
        assert_eq!(end("2026-07-18T18:00:00.000000Z").as_deref(), Some("2026-07-19T05:00:00.000000Z"), "in summer");
        assert_eq!(
            until("12:00-13:30", "UTC", "2026-11-18T12:10:00.000000Z").as_deref(),
            Some("2026-11-18T13:30:00.000000Z")
        );
    }

    #[test]
    fn a_time_that_a_day_skips_is_as_much_later() {
        // Clocks in Berlin go from 02:00 to 03:00 that night.
        let end = until("22:00-02:30", "Europe/Berlin", "2026-03-28T23:00:00.000000Z");
        assert_eq!(end.as_deref(), Some("2026-03-29T01:30:00.000000Z"));
        let (at, zone): (TimeOfDay, Zone) = ("08:00".parse().unwrap(), "Europe/Berlin".parse().unwrap());
        let latest = |now| at.latest(&zone, time(now)).unwrap().to_string();
        assert_eq!(latest("2026-03-29T05:59:00.000000Z"), "2026-03-28T07:00:00.000000Z");
        assert_eq!(latest("2026-03-29T06:00:00.000000Z"), "2026-03-29T06:00:00.000000Z");
        assert_eq!(zone.written(time("2026-03-29T06:00:00.000000Z")), "29 Mar 2026, 08:00 CEST");
    }

    #[test]
    fn what_is_neither_a_time_nor_a_zone_is_refused() {
        for text in ["", "7:30", "24:00", "07:60", "07:3o", "0730", "+7:30"] {
            assert!(text.parse::<TimeOfDay>().is_err(), "{text}");
        }
        for text in ["", "20:00", "20:00-", "20:00-20:00", "20-07"] {
            assert!(text.parse::<Hours>().is_err(), "{text}");
        }
        for text in ["", "Mars/Base", "+01:00", "../etc/passwd"] {
            assert!(text.parse::<Zone>().is_err(), "{text}");
        }
    }
}
