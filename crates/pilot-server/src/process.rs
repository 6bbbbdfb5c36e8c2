//! What the process itself uses, under the names that every dashboard knows.

use std::fs;

use pilot_core::time::Time;
use pilot_wire::exposition::Exposition;

/// What the kernel says; a figure that it does not give is left out.
pub(crate) fn metrics(started: Time, text: &mut Exposition) {
    if let Some(seconds) = cpu_seconds() {
        text.counter("process_cpu_seconds_total", "Processor time used, in seconds.", format!("{seconds:.2}"));
    }
    if let Some(bytes) = resident_bytes() {
        text.gauge("process_resident_memory_bytes", "Memory in use.", bytes);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory that is being read.
        text.gauge("process_open_fds", "Open files and connections.", files.count().saturating_sub(1));
    }
    if let Some(most) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        text.gauge("process_max_fds", "How many files and connections may be open.", most);
    }
    let help = "When the process started, in seconds since 1970.";
    text.gauge("process_start_time_seconds", help, started.unix_micros() / 1_000_000);
}

fn cpu_seconds() -> Option<f64> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u32::try_from(used.tv_sec).ok()?;
    let nanos = u32::try_from(used.tv_nsec).ok()?;
    Some(f64::from(seconds) + f64::from(nanos) / 1e9)
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
