//! What the figures were measured on. Neither its name nor any path on it.

use std::fs;

use crate::step::{Failure, output_of, program};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Description {
    pub date: String,
    pub processor: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub kernel: String,
    pub compiler: String,
}

impl Description {
    pub(super) fn read() -> Result<Description, Failure> {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Ok(Description {
            date: output_of(&mut program("date", &["--utc", "+%F"]))?.trim().to_owned(),
            processor: processor(&text("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: memory_gib(&text("/proc/meminfo")),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            compiler: output_of(&mut program("rustc", &["--version"]))?.trim().to_owned(),
        })
    }
}

/// `model name : AMD EPYC 7B13`; other architectures have no such line. Whether it has instructions for SHA-256 doubles
/// some figures.
fn processor(text: &str) -> String {
    let values = |name: &'static str| {
        let lines = text.lines().filter(move |line| line.starts_with(name));
        lines.filter_map(|line| Some(line.split_once(':')?.1.trim()))
    };
    let model = values("model name").next().unwrap_or(std::env::consts::ARCH);
    // As x86 and ARM call them.
    let mut abilities = values("flags").chain(values("Features")).flat_map(str::split_whitespace);
    let with = if abilities.any(|ability| matches!(ability, "sha_ni" | "sha2")) { "with" } else { "without" };
    format!("{model} {with} instructions for SHA-256")
}

/// `MemTotal:       24689284 kB`
fn memory_gib(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_descriptions_are_read() {
        let plain = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu avx2\n";
        assert_eq!(processor(plain), "AMD EPYC 7B13 without instructions for SHA-256");
        let quick = "model name\t: AMD EPYC 7B13\nflags\t\t: fpu sha_ni\n";
        assert_eq!(processor(quick), "AMD EPYC 7B13 with instructions for SHA-256");
        let other = format!("{} with instructions for SHA-256", std::env::consts::ARCH);
        assert_eq!(processor("Features\t: fp asimd sha2\n"), other);
        assert_eq!(memory_gib("MemTotal:       25165824 kB\nMemFree: 1 kB\n").to_string(), "24");
    }
}
