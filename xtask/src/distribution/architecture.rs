//! The processors that programs are built for.

use std::path::Path;
use std::process::Command;

use crate::step::program;
use crate::tools::{AARCH64_GCC, AARCH64_QEMU, CC, MUSL, Tool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    /// The one that builds: pages and completions are written by its programs.
    X86,
    Arm,
}

impl Architecture {
    pub(super) const ALL: [Architecture; 2] = [Architecture::X86, Architecture::Arm];

    pub(super) const fn target(self) -> &'static str {
        match self {
            Architecture::X86 => "x86_64-unknown-linux-musl",
            Architecture::Arm => "aarch64-unknown-linux-musl",
        }
    }

    /// In the names of files, as `uname -m` prints it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Architecture::X86 => "x86_64-linux",
            Architecture::Arm => "aarch64-linux",
        }
    }

    /// As Debian and container engines call it.
    pub(super) const fn debian(self) -> &'static str {
        match self {
            Architecture::X86 => "amd64",
            Architecture::Arm => "arm64",
        }
    }

    /// As readelf calls it.
    pub(super) const fn machine(self) -> &'static str {
        match self {
            Architecture::X86 => "Advanced Micro Devices X86-64",
            Architecture::Arm => "AArch64",
        }
    }

    pub(super) const fn strip(self) -> &'static str {
        match self {
            Architecture::X86 => "strip",
            Architecture::Arm => "aarch64-linux-gnu-strip",
        }
    }

    /// What building for it and trying it out needs.
    pub(super) const fn tools(self) -> [Tool; 2] {
        match self {
            Architecture::X86 => [CC, MUSL],
            Architecture::Arm => [AARCH64_GCC, AARCH64_QEMU],
        }
    }

    /// One of its programs, run here: by an emulator if it is another machine's.
    pub(super) fn command(self, path: &Path) -> Command {
        match self {
            Architecture::X86 => program(&path.to_string_lossy(), &[]),
            Architecture::Arm => program(AARCH64_QEMU.program, &[&path.to_string_lossy()]),
        }
    }
}
