//! What looking at an input costs: memory, and time of the processor. Both are bounded up to the largest input there is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The most that any input may cost, here as in a released program.
pub const MEMORY_MAX: usize = 20_000_000;
pub const TIME_MAX: Duration = Duration::from_millis(100);

/// Reading the clock costs more than reading a small input.
const MEASURED_FROM: usize = 4 * 1024;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is the system's; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

/// How often work is done again that took too long. The kernel of a virtual machine counts what other machines were given
/// in between as this thread's: only what takes too long every time is expensive.
const ATTEMPTS_MAX: usize = 10;

/// Does `work` and asserts that it cost no more than an input may.
pub fn bounded<T>(bytes: usize, work: impl Fn() -> T) -> T {
    bounded_within(TIME_MAX, bytes, work)
}

/// The same for work that takes much longer here than in a released program: counters and overflow checks make it up to
/// seven times slower.
pub fn bounded_within<T>(time_max: Duration, bytes: usize, work: impl Fn() -> T) -> T {
    let held = HELD.load(Ordering::Relaxed);
    PEAK.store(held, Ordering::Relaxed);
    let (result, took) = timed(bytes, &work);
    let grown = PEAK.load(Ordering::Relaxed).saturating_sub(held);
    assert!(grown <= MEMORY_MAX, "{bytes} bytes of input took {grown} bytes of memory");
    let again = || timed(bytes, &work).1;
    let mut attempts = std::iter::once(took).chain(std::iter::repeat_with(again).take(ATTEMPTS_MAX - 1));
    let is_cheap = attempts.any(|took| took.is_none_or(|took| took <= time_max));
    assert!(is_cheap, "{bytes} bytes of input took {took:?}, and more than {time_max:?} each of {ATTEMPTS_MAX} times");
    result
}

/// The time is that of the processor, if the input is large enough for it to be measured.
fn timed<T>(bytes: usize, work: impl Fn() -> T) -> (T, Option<Duration>) {
    let began = if bytes >= MEASURED_FROM { processor_time() } else { None };
    let result = work();
    let ended = began.and_then(|_| processor_time());
    (result, began.zip(ended).map(|(began, ended)| ended.saturating_sub(began)))
}

/// Of this thread alone.
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Of some inputs, one that is as long as there can be, because the fuzzer takes hours to grow one: `between` the
/// repetitions stands what makes them one text.
pub fn grown(input: &[u8], between: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let [first, piece @ ..] = input else { return None };
    if first % 64 != 0 || piece.is_empty() {
        return None;
    }
    let mut text = Vec::with_capacity(bytes_max);
    while text.len() + piece.len() + between.len() <= bytes_max {
        text.extend_from_slice(piece);
        text.extend_from_slice(between);
    }
    text.truncate(text.len().saturating_sub(between.len()));
    Some(text)
}
