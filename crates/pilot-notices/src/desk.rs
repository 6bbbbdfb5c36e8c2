//! What one chat or one person is to be told next, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use pilot_core::item::ItemId;
use pilot_core::limits::{NOTICE_AGE_MAX, NOTICE_ITEMS_MAX, NOTICES_TOGETHER};
use pilot_core::time::Time;

/// Urgent messages that come faster than this go together.
const URGENT_TOGETHER: Duration = Duration::from_mins(1);

/// Why someone is to be told about an item. What is said about it is read when the message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) kind: Kind,
    /// The entry that made it news, or when a reminder was due.
    pub(crate) cause: Cause,
    pub(crate) is_urgent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Waits,
    Reminder,
    Escalated,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Entry { index: u64, at: Time },
    Clock(Time),
}

impl Cause {
    fn at(self) -> Time {
        match self {
            Cause::Entry { at, .. } | Cause::Clock(at) => at,
        }
    }
}

/// What waits for one place.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    items: BTreeMap<ItemId, News>,
    /// A daily summary that was due then.
    summary: Option<Time>,
    told_at: Option<Time>,
    attempts: u32,
    rest_until: Option<Time>,
    failing_since: Option<Time>,
}

impl Desk {
    pub(crate) fn told_at(at: Option<Time>) -> Desk {
        Desk { told_at: at, ..Desk::default() }
    }

    /// What comes later about an item replaces what came before, but for its urgency.
    pub(crate) fn put(&mut self, item: ItemId, news: News) {
        let is_urgent = news.is_urgent || self.items.get(&item).is_some_and(|before| before.is_urgent);
        self.items.insert(item, News { is_urgent, ..news });
        while self.items.len() > NOTICE_ITEMS_MAX {
            // The oldest is the least of a surprise. It is in the next summary, and in the inbox.
            let oldest = self.items.iter().min_by_key(|(_, news)| (news.is_urgent, news.cause.at()));
            let Some(oldest) = oldest.map(|(item, _)| item.clone()) else { return };
            self.items.remove(&oldest);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.summary.is_none()
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.items.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = (&ItemId, &News)> {
        self.items.iter()
    }

    pub(crate) fn failing_since(&self) -> Option<Time> {
        self.failing_since
    }

    pub(crate) fn last_told(&self) -> Option<Time> {
        self.told_at
    }

    pub(crate) fn put_summary(&mut self, due: Time) {
        self.summary = Some(due);
    }

    /// The summary that is to be told, if there is nothing else: news comes first.
    pub(crate) fn summary(&self) -> Option<Time> {
        self.summary
    }

    /// When the next message is due: the first at once, those that follow it within five minutes together, none in quiet
    /// hours. What is urgent disregards quiet hours, and waits no longer than a minute. `None` if there is nothing to say.
    pub(crate) fn due(&self, quiet_until: Option<Time>) -> Option<Time> {
        let (rest, quiet_until) = (self.rest_until.unwrap_or(Time::EPOCH), quiet_until.unwrap_or(Time::EPOCH));
        let after = |span: Duration| self.told_at.map_or(Time::EPOCH, |at| at.plus(span));
        if self.items.is_empty() {
            return self.summary.map(|due| rest.max(due).max(quiet_until));
        }
        // Those who propose something say how dangerous it is: urgent does not mean without limit.
        if self.items.values().any(|news| news.is_urgent) {
            return Some(rest.max(after(URGENT_TOGETHER)));
        }
        Some(rest.max(after(NOTICES_TOGETHER)).max(quiet_until))
    }

    /// The news has been told, or the summary if there was no news; or it need not be any more.
    pub(crate) fn clear(&mut self, told_at: Option<Time>) {
        let summary = self.summary.filter(|_| !self.items.is_empty());
        *self = Desk { summary, told_at: told_at.or(self.told_at), ..Desk::default() };
    }

    /// How often it has failed now.
    pub(crate) fn failed(&mut self, now: Time) -> u32 {
        self.attempts = self.attempts.saturating_add(1);
        self.failing_since = self.failing_since.or(Some(now));
        self.attempts
    }

    pub(crate) fn rest(&mut self, now: Time, rest: Duration) {
        self.rest_until = Some(now.plus(rest));
    }

    /// What could not be told for five days is not news any more.
    pub(crate) fn forget_old(&mut self, now: Time) {
        self.items.retain(|_, news| now.since(news.cause.at()) < NOTICE_AGE_MAX);
    }

    /// Changes when there is something new here, and only then.
    pub(crate) fn edition(&self) -> i64 {
        let newest = self.items.values().map(|news| news.cause.at()).max().or(self.summary);
        newest.map_or(0, Time::unix_micros)
    }

    /// The first entry, and the first reminder, that is still to be told.
    pub(crate) fn earliest(&self) -> (Option<u64>, Option<Time>) {
        let entry = |news: &News| match news.cause {
            Cause::Entry { index, .. } => Some(index),
            Cause::Clock(_) => None,
        };
        let clock = |news: &News| match news.cause {
            Cause::Entry { .. } => None,
            Cause::Clock(at) => Some(at),
        };
        (self.items.values().filter_map(entry).min(), self.items.values().filter_map(clock).min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_unix_micros(1_800_000_000_000_000);

    fn item(number: usize) -> ItemId {
        format!("01a1de8a-ca3b-7000-8000-{number:012x}").parse().unwrap()
    }

    fn news(index: u64, is_urgent: bool) -> News {
        let at = START.plus(Duration::from_secs(index));
        News { kind: Kind::Waits, cause: Cause::Entry { index, at }, is_urgent }
    }

    fn minutes(minutes: u64) -> Time {
        START.plus(Duration::from_mins(minutes))
    }

    #[test]
    fn the_first_message_goes_at_once_and_those_of_the_next_five_minutes_go_together() {
        let mut desk = Desk::default();
        assert_eq!(desk.due(None), None);
        desk.put(item(1), news(1, false));
        assert!(desk.due(None).unwrap() <= START);
        desk.clear(Some(START));
        desk.put(item(2), news(2, false));
        desk.put(item(3), news(3, false));
        assert_eq!((desk.due(None), desk.len()), (Some(minutes(5)), 2));
    }

    #[test]
    fn quiet_hours_hold_everything_but_what_is_urgent() {
        let mut desk = Desk::told_at(Some(START));
        desk.put(item(1), news(1, false));
        assert_eq!(desk.due(Some(minutes(600))), Some(minutes(600)));
        desk.put(item(2), news(2, true));
        assert_eq!(desk.due(Some(minutes(600))), Some(minutes(1)), "and urgent messages are a minute apart");
    }

    #[test]
    fn a_summary_comes_after_the_news_and_not_in_quiet_hours() {
        let mut desk = Desk::default();
        desk.put_summary(START);
        assert_eq!((desk.due(None), desk.due(Some(minutes(60)))), (Some(START), Some(minutes(60))));
        desk.put(item(1), news(1, false));
        desk.clear(Some(START));
        assert_eq!((desk.summary(), desk.is_empty()), (Some(START), false));
        desk.clear(Some(START));
        assert!(desk.is_empty());
    }

    #[test]
    fn after_a_failure_even_urgent_news_waits_for_the_next_attempt() {
        let mut desk = Desk::default();
        desk.put(item(1), news(1, true));
        assert_eq!(desk.failed(START), 1);
        desk.rest(START, Duration::from_mins(2));
        assert_eq!(desk.due(None), Some(minutes(2)));
        assert_eq!(desk.failed(minutes(2)), 2);
        assert_eq!(desk.failing_since(), Some(START));
    }

    #[test]
    fn what_comes_later_about_an_item_replaces_what_came_before_and_stays_urgent() {
        let mut desk = Desk::default();
        desk.put(item(1), news(1, true));
        desk.put(item(1), News { kind: Kind::Ended, ..news(9, false) });
        let only: Vec<_> = desk.items().map(|(_, news)| (news.kind, news.is_urgent)).collect();
        assert_eq!((only, desk.earliest()), (vec![(Kind::Ended, true)], (Some(9), None)));
    }

    #[test]
    fn of_very_many_items_the_newest_and_the_urgent_are_kept_and_old_ones_are_forgotten() {
        let mut desk = Desk::default();
        desk.put(item(0), news(0, true));
        for number in 1..=NOTICE_ITEMS_MAX + 50 {
            desk.put(item(number), news(number as u64, false));
        }
        assert_eq!(desk.len(), NOTICE_ITEMS_MAX);
        assert_eq!(desk.items().filter(|(_, news)| news.is_urgent).count(), 1);
        desk.forget_old(START.plus(NOTICE_AGE_MAX).plus(Duration::from_secs(100)));
        assert_eq!(desk.earliest().0, Some(101));
    }
}
