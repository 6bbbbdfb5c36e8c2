//! Where long computations run: on threads of their own, with lower priority than those that answer requests.
//!
//! A worker of the runtime serves everyone in turn. Whatever takes longer than a fraction of a millisecond would make
//! all of them wait, so it is handed over to these threads: reading a large body, writing a long list, proofs,
//! evidence.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};

use pilot_core::actor::ActorId;
use pilot_core::limits::{ACTOR_LONG_TASKS_MAX, ACTOR_LONG_TASKS_WAITING_MAX, LONG_TASKS_MAX};
use pilot_wire::peer::{Address, origin};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// How much lower the priority is: enough that answering comes first, and not so much that long tasks starve.
const NICE: i32 = 5;

type Task = Box<dyn FnOnce() + Send>;

/// For whom something is done: an actor or, while the caller is unknown, an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Asker {
    Actor(ActorId),
    Address(Address),
}

impl Asker {
    /// Anyone at this address; with IPv6, everyone in the network that one customer is assigned.
    pub fn at(address: Address) -> Asker {
        Asker::Address(origin(address))
    }
}

impl From<&ActorId> for Asker {
    fn from(actor: &ActorId) -> Asker {
        Asker::Actor(actor.clone())
    }
}

pub struct Workshop {
    tasks: mpsc::Sender<Task>,
    /// Those who have tasks in progress.
    askers: Mutex<HashMap<Asker, Weak<Turns>>>,
}

/// One asker's limits: how many tasks run, and how many there are in total.
struct Turns {
    doing: Arc<Semaphore>,
    there: Arc<Semaphore>,
}

impl Turns {
    fn new() -> Turns {
        let doing = Arc::new(Semaphore::new(ACTOR_LONG_TASKS_MAX));
        let there = Arc::new(Semaphore::new(ACTOR_LONG_TASKS_MAX + ACTOR_LONG_TASKS_WAITING_MAX));
        Turns { doing, there }
    }

    /// Takes a place among those waiting, immediately or not at all: an unbounded queue is unbounded memory.
    fn enter(&self) -> Result<OwnedSemaphorePermit, WorkshopError> {
        Arc::clone(&self.there).try_acquire_owned().map_err(|_| WorkshopError::Crowded)
    }
}

/// Why a task was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkshopError {
    #[error("too many long tasks of one caller are waiting")]
    Crowded,
    #[error("a long computation failed")]
    Failed,
}

impl Workshop {
    pub fn open() -> std::io::Result<Workshop> {
        let (tasks, waiting) = mpsc::channel::<Task>();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..LONG_TASKS_MAX {
            let waiting = Arc::clone(&waiting);
            std::thread::Builder::new().name(format!("long-{number}")).spawn(move || work(&waiting))?;
        }
        Ok(Workshop { tasks, askers: Mutex::new(HashMap::new()) })
    }

    /// Runs `task` here. For each asker only a few run at a time; a few more wait their turn, each where it was
    /// requested, and the rest are refused. A task whose asker is gone before it began is not run.
    pub async fn long<T: Send + 'static>(
        &self,
        asker: impl Into<Asker>,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkshopError> {
        let turns = self.turns_of(asker.into());
        let place = turns.enter()?;
        let turn = Arc::clone(&turns.doing).acquire_owned().await.map_err(|_| WorkshopError::Failed)?;
        let (sender, receiver) = oneshot::channel();
        let task = move || {
            if !sender.is_closed() {
                let _ = sender.send(task());
            }
            drop((turn, place, turns));
        };
        self.tasks.send(Box::new(task)).map_err(|_| WorkshopError::Failed)?;
        receiver.await.map_err(|_| WorkshopError::Failed)
    }

    fn turns_of(&self, asker: Asker) -> Arc<Turns> {
        let mut askers = self.askers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = askers.get(&asker).and_then(Weak::upgrade) {
            return turns;
        }
        askers.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Turns::new());
        askers.insert(asker, Arc::downgrade(&turns));
        turns
    }
}

/// Lowers the priority of the calling thread.
pub fn step_back() {
    // On Linux this affects only the calling thread. If it is not permitted, long tasks have the same priority as the
    // rest.
    let _ = rustix::process::nice(NICE);
}

fn work(waiting: &Mutex<mpsc::Receiver<Task>>) {
    step_back();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = next else { return };
        // The asker notices a panic because its channel is dropped; the thread continues for the others.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use super::*;

    fn actor(name: &str) -> ActorId {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn one_actor_cannot_take_every_thread() {
        let workshop = Workshop::open().unwrap();
        let (go_on, told) = mpsc::channel::<()>();
        let (ana, ben) = (actor("ana"), actor("ben"));
        let mut first = Box::pin(workshop.long(&ana, move || told.recv().is_ok()));
        let mut second = Box::pin(workshop.long(&ana, || true));
        // Both were requested; the second waits for the first, and ben waits for neither.
        tokio::select! {
            biased;
            _ = &mut first => panic!("it is held"),
            _ = &mut second => panic!("it is not its turn"),
            done = workshop.long(&ben, || 7) => assert_eq!(done.unwrap(), 7),
        }
        go_on.send(()).unwrap();
        assert!(first.await.unwrap() && second.await.unwrap());
    }

    #[tokio::test]
    async fn so_many_of_one_asker_wait_and_the_rest_are_refused_at_once() {
        let workshop = Workshop::open().unwrap();
        let (go_on, told) = mpsc::channel::<()>();
        let (ana, ben) = (actor("ana"), actor("ben"));
        let mut first = Box::pin(workshop.long(&ana, move || told.recv().is_ok()));
        let mut waiting: Vec<_> =
            (0..ACTOR_LONG_TASKS_WAITING_MAX).map(|_| Box::pin(workshop.long(&ana, || true))).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(waiting.iter_mut().all(|task| task.as_mut().poll(&mut context).is_pending()));
        let refused = workshop.long(&ana, || true).await.unwrap_err();
        assert_eq!(refused, WorkshopError::Crowded);
        assert_eq!(workshop.long(&ben, || 7).await.unwrap(), 7);
        // An asker who goes away makes room.
        drop(waiting.pop());
        assert!(Box::pin(workshop.long(&ana, || true)).as_mut().poll(&mut context).is_pending());
        go_on.send(()).unwrap();
        assert!(first.await.unwrap());
        for task in waiting {
            assert!(task.await.unwrap());
        }
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_asker() {
        let at = |text: &str| Asker::at(text.parse().unwrap());
        assert_eq!(at("2001:db8:1:2::1"), at("2001:db8:1:2:ffff::9"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
    }

    #[tokio::test]
    async fn a_panic_is_told_to_its_asker_and_the_thread_goes_on() {
        let workshop = Workshop::open().unwrap();
        for _ in 0..2 * LONG_TASKS_MAX {
            assert!(workshop.long(&actor("ana"), || panic!("on purpose")).await.is_err());
        }
        assert_eq!(workshop.long(&actor("ana"), || 1).await.unwrap(), 1);
    }
}
