//! The three functions that a browser calls, and the only file of the workspace with an unsafe attribute.
//!
//! A page asks for room, writes the settings and the bundle there, calls `pilot_verify`, and reads the answer:
//!
//! | call | gives |
//! |---|---|
//! | `pilot_room(0, length)` | where the settings go, or 0 if there is not that much memory |
//! | `pilot_room(1, length)` | where the bundle goes, likewise |
//! | `pilot_verify()` | the length of the answer |
//! | `pilot_answer()` | where the answer is |
//!
//! There is no unsafe block. The attributes are there because two functions of the same name in one program would be
//! undefined behaviour; the prefix sees to it that there are none, and the linker would say so. What is written from
//! outside is sound, too:
//!
//! - Nothing here follows a pointer that came from outside. Each buffer is a `Vec` that stays where it is until it is
//!   replaced, all of it initialised, and any bytes are valid in it. The page gets its address and writes into it
//!   between two calls.
//! - There is one thread: WebAssembly without shared memory has no other, and the buffers are thread-local wherever
//!   else this is compiled.
//! - A page that writes somewhere else damages this program's own memory and nothing outside it. It is the page that
//!   asks for the verdict, so it could as well show another one.
#![expect(unsafe_code, reason = "a function can only be called from outside by a name that is not mangled")]

use std::cell::RefCell;
use std::ptr;

thread_local! {
    static SETTINGS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static BUNDLE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes room for the settings (0) or the bundle (1), filled with zeros. What was there before is gone.
#[unsafe(no_mangle)]
pub extern "C" fn pilot_room(which: u32, length: usize) -> *mut u8 {
    let buffer = match which {
        0 => &SETTINGS,
        1 => &BUNDLE,
        _ => return ptr::null_mut(),
    };
    buffer.with_borrow_mut(|buffer| {
        // Given back first: two bundles at a time may be more than there is memory for.
        *buffer = Vec::new();
        if buffer.try_reserve_exact(length).is_err() {
            return ptr::null_mut();
        }
        buffer.resize(length, 0);
        buffer.as_mut_ptr()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pilot_verify() -> usize {
    let answer = SETTINGS.with_borrow(|settings| BUNDLE.with_borrow(|bundle| crate::answer(settings, bundle)));
    ANSWER.with_borrow_mut(|kept| {
        *kept = answer;
        kept.len()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pilot_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}
