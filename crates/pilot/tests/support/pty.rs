//! A terminal for the program: it prints there, and a test types.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::harness::{PATIENCE, now};

pub struct Terminal {
    keyboard: File,
    screen: Arc<Screen>,
    /// How much of the screen was already looked at.
    seen: usize,
    child: Child,
}

#[derive(Default)]
struct Screen {
    text: Mutex<(String, bool)>,
    grown: Condvar,
}

impl Terminal {
    /// Runs the command at a terminal of 80 columns.
    pub fn run(mut command: Command) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 25, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let end = || Stdio::from(OwnedFd::from(slave.try_clone().unwrap()));
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        // Its own ends must close with the child, or the end would never be heard.
        drop(command);
        drop(slave);
        let keyboard = File::from(master);
        let screen = Arc::new(Screen::default());
        follow(keyboard.try_clone().unwrap(), Arc::clone(&screen));
        Terminal { keyboard, screen, seen: 0, child }
    }

    /// Waits until this is on the screen, after what was waited for before; gives everything in between.
    #[track_caller]
    pub fn shows(&mut self, words: &str) -> String {
        let mut screen = self.screen.text.lock().unwrap();
        loop {
            let fresh = screen.0.get(self.seen..).unwrap();
            if let Some(at) = fresh.find(words) {
                let shown = fresh[..at + words.len()].to_owned();
                self.seen += shown.len();
                return shown;
            }
            assert!(!screen.1, "{words:?} was never shown: {fresh}");
            let (grown, timeout) = self.screen.grown.wait_timeout(screen, PATIENCE).unwrap();
            screen = grown;
            assert!(!timeout.timed_out(), "{words:?} is not shown: {}", screen.0);
        }
    }

    pub fn types(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// A password: not before the program has switched the echo off, which it does after it has asked.
    pub fn types_in_secret(&mut self, line: &str) {
        let began = now();
        while tcgetattr(&self.keyboard).unwrap().local_modes.contains(LocalModes::ECHO) {
            assert!(began.elapsed() < PATIENCE, "the program never switched the echo off");
            thread::sleep(Duration::from_millis(5));
        }
        self.types(line);
    }

    /// The end of the input, as by Ctrl-D.
    pub fn types_the_end(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    /// The exit code, and everything that was on the screen.
    #[track_caller]
    pub fn ends(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap();
        let mut screen = self.screen.text.lock().unwrap();
        while !screen.1 {
            screen = self.screen.grown.wait_timeout(screen, PATIENCE).unwrap().0;
        }
        (code, screen.0.clone())
    }
}

/// A program that nobody waits for any more, such as a service, ends with its terminal.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(mut master: File, screen: Arc<Screen>) {
    thread::spawn(move || {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            // An error is how a terminal says that nobody has its other end any more.
            let length = master.read(&mut buffer).unwrap_or(0);
            bytes.extend_from_slice(&buffer[..length]);
            let whole = match std::str::from_utf8(&bytes) {
                Ok(_) => bytes.len(),
                Err(error) => error.valid_up_to(),
            };
            let text: Vec<u8> = bytes.drain(..whole).collect();
            let mut shown = screen.text.lock().unwrap();
            shown.0.push_str(&String::from_utf8(text).unwrap().replace("\r\n", "\n"));
            shown.1 = length == 0;
            screen.grown.notify_all();
            if length == 0 {
                return;
            }
        }
    });
}
