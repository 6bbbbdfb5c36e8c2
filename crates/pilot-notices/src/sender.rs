//! Tells the people of one notice. Time, chance and the network are given to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::PAGE_ITEMS_MAX;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_ledger::fenced;
use pilot_ledger::webhooks::{Sources, rest_after};
use pilot_setup::config::Notice;
use pilot_setup::contacts::Contacts;
use pilot_store::{Duty, Filter, StoreError};
use tokio::task::JoinSet;

use crate::address_book::AddressBook;
use crate::book::{Book, Told};
use crate::desk::{Cause, Desk, Kind, News};
use crate::message::{LINES_MAX, Line, Message, Occasion};
use crate::reminders;
use crate::story::{Place, Stage};
use crate::tally::Tally;
use crate::ways::{Undelivered, Way};

/// How often a sender with nothing to do looks around, and how often it saves.
pub(crate) const ROUND: Duration = Duration::from_secs(1);
/// How often deadlines are looked at.
const LOOK: Duration = Duration::from_secs(20);
/// How many messages are on their way at a time.
const AT_ONCE_MAX: usize = 8;
/// How many items that are due for a reminder are read at a time, and how many of each role a summary looks at.
const DUE_MAX: usize = 500;
const SUMMARY_ITEMS_MAX: usize = 1_000;

/// Everyone who may act, as the service knows them now.
pub type People = Arc<dyn Fn() -> Vec<Actor> + Send + Sync>;

pub(crate) struct Sender {
    pub(crate) notice: Notice,
    pub(crate) way: Arc<dyn Way>,
    pub(crate) sources: Sources,
    pub(crate) people: People,
    pub(crate) contacts: Arc<AddressBook>,
    pub(crate) public_url: Option<String>,
    /// Distinguishes the mail of different services.
    pub(crate) tag: String,
    pub(crate) tally: Arc<Tally>,
    pub(crate) work: Option<Work>,
}

/// What a sender knows while it has the duty.
pub(crate) struct Work {
    book: Book,
    saved: Book,
    saved_at: Time,
    /// The next entry to read.
    read_to: u64,
    looked_until: Time,
    desks: BTreeMap<Place, Desk>,
}

/// An item and its definition, as they are now.
type Found = (Arc<Item>, Arc<Definition>);

impl Sender {
    fn fact(&self) -> String {
        format!("notice/{}", self.notice.name)
    }

    /// One round; says whether there is more to do at once.
    pub(crate) async fn round(&mut self) -> bool {
        if !self.sources.store.holds(Duty::Webhooks) {
            self.work = None;
            self.tally.show(0, None);
            return false;
        }
        match self.try_round().await {
            Ok(is_more) => is_more,
            Err(error) => {
                self.tally.trouble(&format!("waits for the ledger: {error}"));
                false
            }
        }
    }

    async fn try_round(&mut self) -> Result<bool, StoreError> {
        let now = self.sources.clock.now();
        if self.work.is_none() {
            self.work = Some(self.begin(now).await?);
        }
        // Taken out while it is worked on: a round that is given up halfway begins again from what was saved.
        let Some(mut work) = self.work.take() else { return Ok(false) };
        let contacts = self.contacts.current();
        let is_more = self.read(&mut work, &contacts, now).await?;
        if now.since(work.looked_until) >= LOOK {
            self.look(&mut work, &contacts, now).await?;
        }
        self.send(&mut work, &contacts, now).await?;
        self.summarise(&mut work, &contacts, now).await?;
        let waiting = work.desks.values().map(Desk::len).sum();
        self.tally.show(waiting, work.desks.values().filter_map(Desk::failing_since).min());
        let stays = self.save(&mut work, now).await?;
        self.work = stays.then_some(work);
        Ok(is_more || !stays)
    }

    async fn begin(&self, now: Time) -> Result<Work, StoreError> {
        let decide = move |found, size| Book::taken_over(found, size, now);
        let book = fenced::replace(&*self.sources.store, self.fact(), decide).await?;
        let (read_to, looked_until) = (book.next, book.looked_until);
        Ok(Work { saved: book.clone(), book, saved_at: now, read_to, looked_until, desks: BTreeMap::new() })
    }

    fn stage<'s>(&'s self, contacts: &'s Contacts, people: &'s [Actor], now: Time) -> Stage<'s> {
        Stage {
            notice: &self.notice,
            contacts,
            people,
            guard: &self.sources.guard,
            public_url: self.public_url.as_deref(),
            now,
        }
    }

    async fn found(&self, id: &ItemId) -> Result<Option<Found>, StoreError> {
        let Some(item) = self.sources.store.item(id.clone()).await? else { return Ok(None) };
        let definition = self.sources.workflows.kept_by(&item);
        let definition = definition.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Some((item, definition)))
    }

    /// Reads entries that are durable, and notes for whom they are news. Says whether there may be more.
    async fn read(&self, work: &mut Work, contacts: &Contacts, now: Time) -> Result<bool, StoreError> {
        let size = self.sources.store.head().borrow().size();
        if work.read_to >= size {
            return Ok(false);
        }
        let stored = self.sources.store.entries(work.read_to, PAGE_ITEMS_MAX).await?;
        let mut moved: BTreeMap<ItemId, Entry> = BTreeMap::new();
        let mut read_to = work.read_to;
        for stored in stored.iter().filter(|stored| stored.index < size) {
            let unreadable = |error| StoreError::Unavailable(format!("entry {}: {error}", stored.index));
            let entry = Entry::parse(&stored.bytes).map_err(unreadable)?;
            read_to = stored.index.saturating_add(1);
            if let Some(item) = entry.item.clone().filter(|_| is_move(&entry)) {
                moved.insert(item, entry);
            }
        }
        let people = if moved.is_empty() { Vec::new() } else { (self.people)() };
        let stage = self.stage(contacts, &people, now);
        for (id, entry) in moved {
            let Some((item, definition)) = self.found(&id).await? else { continue };
            // It has moved on: a later entry says what is waited for.
            if entry.to.as_ref() != Some(&item.state) {
                continue;
            }
            let cause = Cause::Entry { index: entry.index, at: entry.at };
            for (place, kind) in stage.places(&definition, &item, entry.actor_id.as_ref(), false) {
                let is_known = work.book.told.get(place.as_str()).is_some_and(|told| entry.index < told.before);
                if !is_known {
                    let news = News { kind, cause, is_urgent: stage.is_urgent(&item) };
                    work.desk(place).put(id.clone(), news);
                }
            }
        }
        work.read_to = read_to;
        Ok(read_to < size)
    }

    /// Notes what people have to be reminded of.
    async fn look(&self, work: &mut Work, contacts: &Contacts, now: Time) -> Result<(), StoreError> {
        let after = work.looked_until;
        let people = (self.people)();
        let stage = self.stage(contacts, &people, now);
        for distance in reminders::distances(self.sources.workflows.all().map(Arc::as_ref)) {
            let (mut from, until) = (after.plus(distance), now.plus(distance));
            loop {
                let due = self.sources.store.due_within(from, until, DUE_MAX).await?;
                for id in &due {
                    let Some((item, definition)) = self.found(id).await? else { continue };
                    from =
                        pilot_core::decide::due_at(&definition, &item).map_or(until, |deadline| deadline.at).max(from);
                    if let Some(moment) = reminders::due_within(&definition, &item, after, now) {
                        for (place, kind) in stage.places(&definition, &item, None, true) {
                            let is_known = work.book.told.get(place.as_str()).is_some_and(|told| moment <= told.at);
                            if !is_known {
                                let is_urgent = stage.is_urgent(&item);
                                work.desk(place).put(id.clone(), News { kind, cause: Cause::Clock(moment), is_urgent });
                            }
                        }
                    }
                }
                if due.len() < DUE_MAX || from >= until {
                    break;
                }
            }
        }
        work.looked_until = now;
        Ok(())
    }

    /// Sends what is due, a few at a time.
    async fn send(&self, work: &mut Work, contacts: &Contacts, now: Time) -> Result<(), StoreError> {
        work.desks.values_mut().for_each(|desk| desk.forget_old(now));
        let stage = self.stage(contacts, &[], now);
        let is_due = |(place, desk): (&Place, &Desk)| {
            desk.due(stage.quiet_until(place)).filter(|due| *due <= now).map(|_| place.clone())
        };
        let due: Vec<Place> = work.desks.iter().filter_map(is_due).take(AT_ONCE_MAX).collect();
        if due.is_empty() {
            return Ok(());
        }
        let people = (self.people)();
        let stage = self.stage(contacts, &people, now);
        let mut sending = JoinSet::new();
        for place in due {
            let Some(message) = self.compose(work.desk(place.clone()), &stage, &place).await? else {
                work.desk(place).clear(None);
                continue;
            };
            let edition = work.desk(place.clone()).edition();
            self.spawn(&mut sending, &stage, place, message, edition);
        }
        self.settle(work, sending).await;
        Ok(())
    }

    async fn compose(&self, desk: &Desk, stage: &Stage<'_>, place: &Place) -> Result<Option<Message>, StoreError> {
        let mut lines = Vec::new();
        for (id, news) in desk.items() {
            if let Some((item, definition)) = self.found(id).await? {
                let line = stage.line(&definition, &item, place, news.kind);
                lines.extend(line.map(|line| (due_key(&definition, &item), line)));
            }
        }
        Ok(self.message(Occasion::News, lines))
    }

    fn message(&self, occasion: Occasion, mut lines: Vec<(Option<Time>, Line)>) -> Option<Message> {
        lines.sort_by_key(|(due, line)| (!line.is_urgent, due.is_none(), *due, line.item.clone()));
        let more = lines.len().saturating_sub(LINES_MAX);
        let lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).take(LINES_MAX).collect();
        let link = self.public_url.as_ref().map(|url| format!("{url}/console/"));
        (!lines.is_empty()).then_some(Message { occasion, lines, more, link })
    }

    fn spawn(
        &self,
        sending: &mut JoinSet<(Place, Result<(), Undelivered>)>,
        stage: &Stage<'_>,
        place: Place,
        message: Message,
        edition: i64,
    ) {
        let to = match &place {
            Place::Chat => None,
            Place::Person(actor) => stage.contacts.of(actor).and_then(|contact| contact.mail.clone()),
        };
        let way = Arc::clone(&self.way);
        let name = plain(place.as_str());
        let id = format!("{}.{}.{name}.{edition}", self.tag, self.notice.name);
        sending.spawn(async move {
            let sent = match (&place, &to) {
                (Place::Person(_), None) => Err(Undelivered::Refused("has no address any more".to_owned())),
                _ => way.send(to.as_deref(), &message, &id).await,
            };
            (place, sent)
        });
    }

    async fn settle(&self, work: &mut Work, mut sending: JoinSet<(Place, Result<(), Undelivered>)>) {
        while let Some(joined) = sending.join_next().await {
            let Ok((place, sent)) = joined else { continue };
            let (at, before) = (self.sources.clock.now(), work.read_to);
            let is_settled = match &sent {
                Ok(()) => {
                    self.tally.delivered();
                    true
                }
                Err(Undelivered::Refused(said)) => {
                    self.tally.refused(place.as_str(), said);
                    true
                }
                Err(Undelivered::Failed { said, retry_after }) => {
                    let desk = work.desk(place.clone());
                    let attempts = desk.failed(at);
                    desk.rest(at, rest_after(attempts, *retry_after, (self.sources.dice)()));
                    self.tally.failed(said);
                    false
                }
            };
            if is_settled {
                work.desk(place.clone()).clear(Some(at));
                work.book.told.insert(place.as_str().to_owned(), Told { before, at });
            }
        }
    }

    /// Once a day: everything that waits. A summary that fails is not repeated; tomorrow there is another.
    async fn summarise(&self, work: &mut Work, contacts: &Contacts, now: Time) -> Result<(), StoreError> {
        let at = self.notice.summary_at.and_then(|at| at.latest(&self.notice.time_zone, now));
        let Some(at) = at.filter(|at| *at > work.book.summarised_at) else { return Ok(()) };
        let people = (self.people)();
        let stage = self.stage(contacts, &people, now);
        let mut lines: BTreeMap<Place, BTreeMap<ItemId, (Option<Time>, Line)>> = BTreeMap::new();
        let roles = &self.notice.waits_for;
        for role in Role::ALL.into_iter().filter(|role| roles.is_empty() || roles.contains(role)) {
            for id in self.waiting_for(role).await? {
                let Some((item, definition)) = self.found(&id).await? else { continue };
                for (place, _) in stage.places(&definition, &item, None, true) {
                    if let Some(line) = stage.line(&definition, &item, &place, Kind::Waits) {
                        let due = due_key(&definition, &item);
                        lines.entry(place).or_default().insert(id.clone(), (due, line));
                    }
                }
            }
        }
        let mut places = lines.into_iter();
        loop {
            let mut sending = JoinSet::new();
            for (place, lines) in places.by_ref().take(AT_ONCE_MAX) {
                if let Some(message) = self.message(Occasion::Summary, lines.into_values().collect()) {
                    self.spawn(&mut sending, &stage, place, message, at.unix_micros());
                }
            }
            if sending.is_empty() {
                break;
            }
            while let Some(joined) = sending.join_next().await {
                match joined {
                    Ok((_, Ok(()))) => self.tally.delivered(),
                    Ok((place, Err(Undelivered::Refused(said)))) => self.tally.refused(place.as_str(), &said),
                    Ok((_, Err(Undelivered::Failed { said, .. }))) => self.tally.failed(&said),
                    Err(_) => {}
                }
            }
        }
        work.book.summarised_at = at;
        Ok(())
    }

    async fn waiting_for(&self, role: Role) -> Result<Vec<ItemId>, StoreError> {
        let (mut ids, mut filter) = (Vec::new(), Filter { waits_for: Some(role), ..Filter::default() });
        loop {
            let page = self.sources.store.items_page(filter.clone(), PAGE_ITEMS_MAX).await?;
            ids.extend(page.items.into_iter().map(|listed| listed.item.id));
            filter.before = page.next;
            if page.next.is_none() || ids.len() >= SUMMARY_ITEMS_MAX {
                return Ok(ids);
            }
        }
    }

    /// Whether the book is still this sender's.
    async fn save(&self, work: &mut Work, now: Time) -> Result<bool, StoreError> {
        work.close(now);
        if work.book == work.saved || now.since(work.saved_at) < ROUND {
            return Ok(true);
        }
        let is_ours = fenced::save(&*self.sources.store, self.fact(), work.book.clone()).await?;
        (work.saved, work.saved_at) = (work.book.clone(), now);
        Ok(is_ours)
    }

    /// Saves what is not saved yet, when the service stops.
    pub(crate) async fn finish(&mut self) {
        let now = self.sources.clock.now();
        if let Some(mut work) = self.work.take() {
            work.close(now);
            if work.book != work.saved {
                let _ = fenced::save(&*self.sources.store, self.fact(), work.book).await;
            }
        }
    }
}

impl Work {
    fn desk(&mut self, place: Place) -> &mut Desk {
        let told_at = self.book.told.get(place.as_str()).map(|told| told.at);
        self.desks.entry(place).or_insert_with(|| Desk::told_at(told_at))
    }

    /// Brings the book up to date with what is still to be told.
    fn close(&mut self, now: Time) {
        self.desks.retain(|_, desk| !desk.is_empty() || desk.last_told().is_some_and(|at| is_recent(at, now)));
        let earliest: Vec<_> = self.desks.values().map(Desk::earliest).collect();
        let before = |at: Time| Time::from_unix_micros(at.unix_micros().saturating_sub(1));
        self.book.next = earliest.iter().filter_map(|(entry, _)| *entry).fold(self.read_to, u64::min);
        self.book.looked_until =
            earliest.iter().filter_map(|(_, moment)| moment.map(before)).fold(self.looked_until, Time::min);
        let (next, looked_until) = (self.book.next, self.book.looked_until);
        self.book.told.retain(|_, told| told.before > next || told.at > looked_until || is_recent(told.at, now));
    }
}

/// With letters, digits and hyphens only.
pub(crate) fn plain(text: &str) -> String {
    text.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-")
}

fn is_recent(at: Time, now: Time) -> bool {
    now.since(at) < pilot_core::limits::NOTICES_TOGETHER
}

fn due_key(definition: &Definition, item: &Item) -> Option<Time> {
    pilot_core::decide::due_at(definition, item).map(|deadline| deadline.at)
}

/// Whether the item waits for someone else after it. Votes, edits and heartbeats leave it where it was.
fn is_move(entry: &Entry) -> bool {
    let turns = matches!(entry.action.as_deref(), Some("hold" | "release"));
    entry.to.is_some() && (entry.from != entry.to || turns)
}
