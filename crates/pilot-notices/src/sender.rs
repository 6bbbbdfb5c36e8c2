//! Tells the people of one notice. Time, chance and the network are given to it.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::decide::due_at;
use pilot_core::digest::Digest;
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
use pilot_core::limits::{NOTICE_LINES_MAX, NOTICE_SUMMARY_ITEMS_MAX, NOTICES_TOGETHER, PAGE_ITEMS_MAX};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_ledger::fenced;
use pilot_ledger::webhooks::{Sources, rest_after};
use pilot_setup::config::{Notice, NoticeKind};
use pilot_setup::contacts::Contacts;
use pilot_store::{Duty, Filter, StoreError};
use tokio::task::JoinSet;

use crate::address_book::AddressBook;
use crate::book::{Book, Told};
use crate::desk::{Cause, Desk, Kind, News};
use crate::message::{Line, Message, Occasion};
use crate::reminders;
use crate::story::{Place, Stage, Trigger};
use crate::tally::Tally;
use crate::ways::{Undelivered, Way};

/// How often a sender with nothing to do looks around, and how often it saves.
pub(crate) const ROUND: Duration = Duration::from_secs(1);
/// How often deadlines are looked at.
const LOOK: Duration = Duration::from_mins(1);
/// How much time one look covers, after a long one without any.
const LOOK_SPAN_MAX: Duration = Duration::from_mins(10);
/// How many pages of entries are read before anything is sent.
const PAGES_MAX: usize = 50;
/// How many messages are on their way at a time.
const AT_ONCE_MAX: usize = 8;
/// How many items that are due for a reminder one look finds.
const DUE_MAX: usize = 10_000;
const LAST: Time = Time::from_unix_micros(i64::MAX);

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
    /// The last summary that is on the desks, or was.
    summary_noted: Time,
    desks: BTreeMap<Place, Desk>,
}

/// An item and its definition, as they are now.
type Found = (Arc<Item>, Arc<Definition>);

/// What waits for each role, as read for the summaries of one round.
type FoundBefore = BTreeMap<Role, Vec<Found>>;

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
        let now = self.sources.clock.now();
        let mut work = match self.work.take() {
            Some(work) => work,
            None => match self.begin(now).await {
                Ok(work) => work,
                Err(error) => return self.waits_for_the_ledger(&error),
            },
        };
        let outcome = self.work_on(&mut work, now).await;
        let waiting = work.desks.values().map(Desk::len).sum();
        self.tally.show(waiting, work.desks.values().filter_map(Desk::failing_since).min());
        match outcome {
            Ok(Some(is_more)) => {
                self.work = Some(work);
                is_more
            }
            // Another node has taken over. Whether this one still has the duty is seen in the next round.
            Ok(None) => false,
            // What was told so far is not told again: the marks move last.
            Err(error) => {
                self.work = Some(work);
                self.waits_for_the_ledger(&error)
            }
        }
    }

    fn waits_for_the_ledger(&self, error: &StoreError) -> bool {
        self.tally.trouble(&format!("waits for the ledger: {error}"));
        false
    }

    /// `None` if the book is no longer this sender's.
    async fn work_on(&self, work: &mut Work, now: Time) -> Result<Option<bool>, StoreError> {
        let contacts = self.contacts.current();
        // Everything is read before anything is said, so that what has piled up goes into one message.
        let mut is_more = true;
        for _ in 0..PAGES_MAX {
            is_more = self.read(work, &contacts, now).await?;
            if !is_more {
                break;
            }
        }
        if now.since(work.looked_until) >= LOOK {
            is_more |= self.look(work, &contacts, now).await?;
        }
        self.note_summaries(work, &contacts);
        let are_more_due = self.send(work, &contacts, now).await?;
        let is_ours = self.save(work, now).await?;
        Ok(is_ours.then_some(is_more || are_more_due))
    }

    async fn begin(&self, now: Time) -> Result<Work, StoreError> {
        let decide = move |found, size| Book::taken_over(found, size, now);
        let book = fenced::replace(&*self.sources.store, self.fact(), decide).await?;
        let (read_to, looked_until, summary_noted) = (book.next, book.looked_until, book.summarised_at);
        let work = Work {
            saved: book.clone(),
            book,
            saved_at: now,
            read_to,
            looked_until,
            summary_noted,
            desks: BTreeMap::new(),
        };
        Ok(work)
    }

    fn stage<'s>(&'s self, contacts: &'s Contacts, people: &'s [Actor], now: Time) -> Stage<'s> {
        Stage {
            notice: &self.notice,
            contacts,
            people,
            guard: &self.sources.guard,
            public_url: self.public_url.as_deref(),
            now,
            wall: self.sources.machine.now(),
        }
    }

    async fn found(&self, id: &ItemId) -> Result<Option<Found>, StoreError> {
        let Some(item) = self.sources.store.item(id.clone()).await? else { return Ok(None) };
        match self.sources.workflows.kept_by(&item) {
            Ok(definition) => Ok(Some((item, definition))),
            // Another node offers a definition that is newer than this one's start.
            Err(error) => {
                self.tally.trouble(&error.to_string());
                Ok(None)
            }
        }
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
            if let Some(item) = entry.item.clone().filter(|_| entry.to.is_some()) {
                // A vote does not hide the move before it.
                if is_move(&entry) || !moved.contains_key(&item) {
                    moved.insert(item, entry);
                }
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
            let trigger = if is_move(&entry) { Trigger::Move } else { Trigger::Vote };
            for (place, kind) in stage.places(&definition, &item, entry.actor_id.as_ref(), trigger) {
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

    /// Notes what people have to be reminded of. Says whether there is more, after a long time of not looking.
    async fn look(&self, work: &mut Work, contacts: &Contacts, now: Time) -> Result<bool, StoreError> {
        let after = work.looked_until;
        let until = now.min(after.plus(LOOK_SPAN_MAX));
        let people = (self.people)();
        let stage = self.stage(contacts, &people, now);
        for distance in reminders::distances(self.sources.workflows.all().map(Arc::as_ref)) {
            let due = self.sources.store.due_within(after.plus(distance), until.plus(distance), DUE_MAX).await?;
            for id in &due {
                let Some((item, definition)) = self.found(id).await? else { continue };
                let Some(moment) = reminders::due_within(&definition, &item, after, until) else { continue };
                for (place, kind) in stage.places(&definition, &item, None, Trigger::Reminder) {
                    let is_known = work.book.told.get(place.as_str()).is_some_and(|told| moment <= told.looked);
                    if !is_known {
                        let is_urgent = stage.is_urgent(&item);
                        work.desk(place).put(id.clone(), News { kind, cause: Cause::Clock(moment), is_urgent });
                    }
                }
            }
        }
        work.looked_until = until;
        Ok(until < now)
    }

    /// Once a day everyone is told everything that waits for them.
    fn note_summaries(&self, work: &mut Work, contacts: &Contacts) {
        let wall = self.sources.machine.now();
        let due = self.notice.summary_at.and_then(|at| at.latest(&self.notice.time_zone, wall));
        let Some(due) = due.filter(|due| *due > work.summary_noted.max(work.book.summarised_at)) else { return };
        work.summary_noted = due;
        let of_people = contacts.iter().filter(|(_, contact)| contact.mail.is_some());
        let places: Vec<Place> = match self.notice.kind {
            NoticeKind::Mail => of_people.map(|(actor, _)| Place::Person(actor.clone())).collect(),
            NoticeKind::Slack | NoticeKind::Teams => vec![Place::Chat],
        };
        for place in places {
            if work.book.told.get(place.as_str()).is_none_or(|told| told.summary < due) {
                work.desk(place).put_summary(due);
            }
        }
    }

    /// Sends what is due, a few at a time, those who have waited longest first. Says whether more is due.
    async fn send(&self, work: &mut Work, contacts: &Contacts, now: Time) -> Result<bool, StoreError> {
        work.desks.values_mut().for_each(|desk| desk.forget_old(now));
        let stage = self.stage(contacts, &[], now);
        let is_due = |(place, desk): (&Place, &Desk)| {
            let due = desk.due(stage.quiet_until(place)).filter(|due| *due <= now)?;
            Some((due, desk.last_told(), place.clone()))
        };
        let mut due: Vec<_> = work.desks.iter().filter_map(is_due).collect();
        due.sort_unstable();
        let are_more_due = due.len() > AT_ONCE_MAX;
        if due.is_empty() {
            return Ok(false);
        }
        let people = (self.people)();
        let stage = self.stage(contacts, &people, now);
        // Everything is composed before anything is sent: what has left must be noted, whatever the store says.
        let (mut composed, mut found_before) = (Vec::new(), FoundBefore::new());
        for (_, _, place) in due.into_iter().take(AT_ONCE_MAX) {
            let desk = work.desk(place.clone());
            let edition = desk.edition();
            let message = if desk.has_news() {
                self.compose(desk, &stage, &place).await?
            } else {
                self.summarise(&stage, &place, &mut found_before).await?
            };
            composed.push((place, message, edition));
        }
        let mut sending = JoinSet::new();
        for (place, message, edition) in composed {
            match message {
                Some(message) => self.spawn(&mut sending, &stage, place, message, edition),
                None => work.settled(&place, None),
            }
        }
        self.settle(work, sending).await;
        Ok(are_more_due)
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
        let more = lines.len().saturating_sub(NOTICE_LINES_MAX);
        let lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).take(NOTICE_LINES_MAX).collect();
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
        let id = format!("{} {} {} {edition}", self.tag, self.notice.name, place.as_str());
        let id = Digest::of(id.as_bytes()).to_hex();
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
            let at = self.sources.clock.now();
            match &sent {
                Ok(()) => {
                    self.tally.delivered();
                    work.settled(&place, Some(at));
                }
                Err(Undelivered::Refused(said)) => {
                    self.tally.refused(place.as_str(), said);
                    work.settled(&place, Some(at));
                }
                Err(Undelivered::Failed { said, retry_after }) => {
                    let desk = work.desk(place);
                    let attempts = desk.failed(at);
                    desk.rest(at, rest_after(attempts, *retry_after, (self.sources.dice)()));
                    self.tally.failed(said);
                }
            }
        }
    }

    /// Everything that waits for the place now. What waits for a role is read once for all places of a round.
    async fn summarise(
        &self,
        stage: &Stage<'_>,
        place: &Place,
        found_before: &mut FoundBefore,
    ) -> Result<Option<Message>, StoreError> {
        let own = |actor: &ActorId| stage.people.iter().filter(|person| person.actor_id == *actor).cloned().collect();
        let asked: Vec<Actor> = match place {
            Place::Chat => stage.people.to_vec(),
            Place::Person(actor) => own(actor),
        };
        let of_place = Stage { people: &asked, ..*stage };
        let wanted = &self.notice.waits_for;
        let is_wanted = |role: &Role| {
            (wanted.is_empty() || wanted.contains(role)) && asked.iter().any(|person| person.role == *role)
        };
        let mut waiting: BTreeMap<ItemId, Found> = BTreeMap::new();
        for role in Role::ALL.into_iter().filter(is_wanted) {
            let of_role = match found_before.entry(role) {
                btree_map::Entry::Occupied(known) => known.into_mut(),
                btree_map::Entry::Vacant(unknown) => unknown.insert(self.waiting_for(role).await?),
            };
            let waits = of_role.iter().filter(|(item, definition)| of_place.waits(definition, item, place));
            waiting.extend(waits.map(|found| (found.0.id.clone(), found.clone())));
        }
        let key = |(item, definition): &Found| (!stage.is_urgent(item), due_key(definition, item).unwrap_or(LAST));
        let mut waiting: Vec<Found> = waiting.into_values().collect();
        waiting.sort_by_key(key);
        let more = waiting.len().saturating_sub(NOTICE_LINES_MAX);
        let line = |(item, definition): &Found| {
            Some((due_key(definition, item), stage.line(definition, item, place, Kind::Waits)?))
        };
        let lines = waiting.iter().take(NOTICE_LINES_MAX).filter_map(line).collect();
        Ok(self.message(Occasion::Summary, lines).map(|message| Message { more, ..message }))
    }

    async fn waiting_for(&self, role: Role) -> Result<Vec<Found>, StoreError> {
        let workflow = match self.notice.workflows.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        let mut filter = Filter { waits_for: Some(role), workflow, ..Filter::default() };
        let mut found = Vec::new();
        loop {
            let page = self.sources.store.items_page(filter.clone(), PAGE_ITEMS_MAX).await?;
            for listed in page.items {
                let definition = self.sources.workflows.kept_by(&listed.item).ok();
                found.extend(definition.map(|definition| (Arc::new(listed.item), definition)));
            }
            filter.before = page.next;
            if page.next.is_none() || found.len() >= NOTICE_SUMMARY_ITEMS_MAX {
                return Ok(found);
            }
        }
    }

    /// Whether the book is still this sender's.
    async fn save(&self, work: &mut Work, now: Time) -> Result<bool, StoreError> {
        work.close(now);
        // What was said must not be said again, so that is saved at once.
        let is_due = work.book.told != work.saved.told || now.since(work.saved_at) >= ROUND;
        if work.book == work.saved || !is_due {
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

    /// The place knows everything that was read and looked at so far. Without `told_at`, there was nothing to say.
    fn settled(&mut self, place: &Place, told_at: Option<Time>) {
        let (before, looked) = (self.read_to, self.looked_until);
        let known = self.book.told.get(place.as_str()).copied();
        let (summary, at) = known.map_or((self.book.summarised_at, Time::EPOCH), |told| (told.summary, told.at));
        let desk = self.desk(place.clone());
        let summary = desk.summary().filter(|_| !desk.has_news()).unwrap_or(summary);
        desk.clear(told_at);
        let told = Told { before, looked, summary, at: told_at.unwrap_or(at) };
        self.book.told.insert(place.as_str().to_owned(), told);
    }

    /// Brings the book up to date with what is still to be told.
    fn close(&mut self, now: Time) {
        self.desks.retain(|_, desk| !desk.is_empty() || desk.last_told().is_some_and(|at| is_recent(at, now)));
        let earliest: Vec<_> = self.desks.values().map(Desk::earliest).collect();
        let before = |at: Time| Time::from_unix_micros(at.unix_micros().saturating_sub(1));
        self.book.next = earliest.iter().filter_map(|(entry, _)| *entry).fold(self.read_to, u64::min);
        self.book.looked_until =
            earliest.iter().filter_map(|(_, moment)| moment.map(before)).fold(self.looked_until, Time::min);
        if self.desks.values().all(|desk| desk.summary().is_none()) {
            self.book.summarised_at = self.book.summarised_at.max(self.summary_noted);
        }
        let Book { next, looked_until, summarised_at, .. } = self.book;
        let knows_more = |told: &Told| told.before > next || told.looked > looked_until || told.summary > summarised_at;
        self.book.told.retain(|_, told| knows_more(told) || is_recent(told.at, now));
    }
}

fn is_recent(at: Time, now: Time) -> bool {
    now.since(at) < NOTICES_TOGETHER
}

fn due_key(definition: &Definition, item: &Item) -> Option<Time> {
    due_at(definition, item).map(|deadline| deadline.at)
}

/// Whether the item waits for someone else after it. Votes, edits and heartbeats leave it where it was.
fn is_move(entry: &Entry) -> bool {
    let turns = matches!(entry.action.as_deref(), Some("hold" | "release"));
    entry.to.is_some() && (entry.from != entry.to || turns)
}
