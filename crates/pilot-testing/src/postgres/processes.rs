//! The processes of a server: started so that they end with the test program, found and signalled.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{LazyLock, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

type Request = (Command, mpsc::Sender<Child>);

/// The kernel ends a server when the thread that started it ends (`setpriv --pdeathsig`). A test's thread ends with the
/// test; this one ends with the program.
static STARTER: LazyLock<Mutex<mpsc::Sender<Request>>> = LazyLock::new(|| {
    let (sender, requests) = mpsc::channel::<Request>();
    let serve = move || requests.iter().for_each(|(mut command, reply)| reply.send(command.spawn().unwrap()).unwrap());
    thread::Builder::new().name("postgres starter".to_owned()).spawn(serve).unwrap();
    Mutex::new(sender)
});

pub(super) fn start(command: Command) -> Child {
    let (reply, started) = mpsc::channel();
    STARTER.lock().unwrap().send((command, reply)).unwrap();
    started.recv().unwrap()
}

/// Every process with this working directory: postmaster and children, also those whose postmaster is gone.
pub(super) fn working_in(directory: &Path) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let works_there = |entry: &fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory);
    let id = |entry: fs::DirEntry| entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
    entries.filter(works_there).filter_map(id).collect()
}

/// Ends all of them at once, as a power failure would.
pub(super) fn kill(postmaster: &mut Child, directory: &Path) {
    // First, so that it starts no others.
    let _ = postmaster.kill();
    postmaster.wait().unwrap();
    until("all processes to end", || {
        let left = working_in(directory);
        for process in &left {
            signal(*process, Signal::KILL);
        }
        left.is_empty().then_some(())
    });
}

/// The quickest shutdown in which the postmaster still waits for its children.
pub(super) fn stop(postmaster: &mut Child, directory: &Path) {
    if postmaster.try_wait().unwrap().is_none() {
        signal(Pid::from_child(postmaster), Signal::QUIT);
        resume(directory);
        postmaster.wait().unwrap();
    }
}

pub(super) fn pause(postmaster: &Child, directory: &Path) {
    // First, so that it starts no others.
    pause_one(Pid::from_child(postmaster));
    for process in working_in(directory) {
        pause_one(process);
    }
}

fn pause_one(process: Pid) {
    signal(process, Signal::STOP);
    until("a process to stop", || is_stopped_or_gone(process).then_some(()));
}

pub(super) fn resume(directory: &Path) {
    for process in working_in(directory) {
        signal(process, Signal::CONT);
    }
}

/// One that has ended in the meantime needs no signal.
fn signal(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal);
}

fn is_stopped_or_gone(process: Pid) -> bool {
    let Ok(line) = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())) else { return true };
    // `1234 (the name) T …`
    line.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 'Z']))
}

/// Tries every 20 ms for about a minute, then panics.
pub fn until<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    poll(attempt).unwrap_or_else(|| panic!("waited a minute for {what}"))
}

pub(super) fn poll<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..3000 {
        let found = attempt();
        if found.is_some() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    None
}
