//! `pilot log follow`: passes every entry of the ledger on, in order and at least once.

mod continuity;
mod cursor;
mod destination;
mod figures;
mod file;
mod flow;
mod message;
mod options;
mod syslog;

use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_evidence::checkpoint::Checkpoint;
use tokio::runtime::Runtime;

use self::continuity::{Broken, continued, current};
use self::cursor::{Cursor, Reached, State};
use self::destination::Destination;
use self::figures::Figures;
use self::flow::{Ended, Flow, Stop};
use self::options::Begin;
use crate::client::{Client, runtime};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::note;

pub(super) use self::options::Arguments;

const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let state = State::open(&arguments.state)?;
    let client = Client::new(&arguments.client, environment)?;
    let actor: Actor = client.get("/v1/session")?.read()?;
    if !actor.role.sees_every_entry() {
        let (who, role) = (&actor.actor_id, actor.role);
        let why = "does not see every entry, so some would be missing; use the credential of an auditor";
        return Err(Failure::Refused(format!("`{who}` is {role}, who {why}")));
    }
    let mut cursor = match state.read()? {
        Some(cursor) => cursor,
        None => first(&state, &current(&client)?, arguments.from)?,
    };
    let destination = arguments.destination(&cursor.seen.origin)?;
    let mut figures = Figures::new(arguments.metrics.as_deref(), destination.kind());
    figures.begin(&cursor.seen.origin, cursor.reached.next);
    let reads_token_again = arguments.client.token_can_be_read_again(environment);
    let next_client = || reads_token_again.then(|| Client::new(&arguments.client, environment)).transpose();
    let runtime = runtime()?;
    let stop = {
        let _inside = runtime.enter();
        Stop::new(&destination)?
    };
    let mut follow = Follow { runtime, client, state, destination, stop, figures: &mut figures };
    let ended = follow.until_the_end(&mut cursor, next_client);
    if ended.is_err() {
        figures.failed();
    }
    ended
}

/// Where the first run begins. It is saved at once: a restart must not begin later.
fn first(state: &State, log: &Checkpoint, from: Begin) -> Result<Cursor, Failure> {
    let next = match from {
        Begin::Start => 0,
        Begin::Now => log.size,
        Begin::Index(index) if index <= log.size => index,
        Begin::Index(index) => {
            let size = log.size;
            return Err(Failure::Usage(format!("--from {index}: the ledger has only {size} entries so far")));
        }
    };
    let cursor = Cursor { reached: Reached { next, last: None }, seen: log.clone() };
    state.save(&cursor)?;
    Ok(cursor)
}

struct Follow<'f, 'a> {
    runtime: Runtime,
    client: Client,
    state: State,
    destination: Destination,
    stop: Stop,
    figures: &'f mut Figures<'a>,
}

impl Follow<'_, '_> {
    /// Begins again after every interruption. Fails if nothing has worked so far, or nothing ever will.
    fn until_the_end(
        &mut self,
        cursor: &mut Cursor,
        next_client: impl Fn() -> Result<Option<Client>, Failure>,
    ) -> Result<(), Failure> {
        let (mut has_begun, mut pause, mut told) = (false, PAUSE, String::new());
        loop {
            let before = cursor.reached;
            let ended = self.once(cursor, &mut has_begun);
            if cursor.reached != before {
                (pause, told) = (PAUSE, String::new());
            }
            let failure = match ended {
                Ok(Ended::ByFeed) => {
                    pause = PAUSE;
                    None
                }
                Ok(Ended::BySignal) => return Ok(()),
                Err(Broken::ForGood(failure)) => return Err(failure),
                Err(Broken::ForNow(failure)) if !has_begun => return Err(failure),
                Err(Broken::ForNow(failure)) => Some(failure),
            };
            if let Some(failure) = failure {
                self.destination.reset();
                self.figures.failed();
                if told != failure.text() {
                    failure.text().clone_into(&mut told);
                    note(&format!("pilot: {told}; trying again until it works"))?;
                }
            }
            if self.runtime.block_on(self.stop.within(pause)) {
                return Ok(());
            }
            pause = (pause * 2).min(PAUSE_MAX);
            match next_client() {
                Ok(Some(client)) => self.client = client,
                Ok(None) => {}
                Err(failure) => note(&format!("pilot: {}", failure.text()))?,
            }
        }
    }

    /// One life of the feed.
    fn once(&mut self, cursor: &mut Cursor, has_begun: &mut bool) -> Result<Ended, Broken> {
        cursor.seen = continued(&self.client, cursor)?;
        let Follow { runtime, client, state, destination, stop, figures } = self;
        runtime.block_on(Flow { client, state, destination, stop, figures, cursor }.run(has_begun))
    }
}
