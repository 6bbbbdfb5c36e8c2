//! `cargo xtask proxies`: the proxies that the tests start in front of the service, from `deploy/proxy`.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::step::Failure;
use crate::tools::{self, Tool};

/// In Debian's directories for administrators, which are not in everybody's PATH.
const PACKAGED: [Tool; 3] = [
    Tool { program: "/usr/sbin/haproxy", package: "haproxy" },
    Tool { program: "/usr/sbin/nginx", package: "nginx" },
    Tool { program: "/usr/bin/caddy", package: "caddy" },
];
const INSTALLED: &str = "tools/proxies-1";
/// Asked by Debian's packages whether their service may be started.
const POLICY: &str = "/usr/sbin/policy-rc.d";

pub(crate) fn install_missing() -> Result<(), Failure> {
    if PACKAGED.iter().any(|tool| !tools::is_installed(tool.program)) {
        let quiet = Quiet::begin();
        tools::install_missing(&PACKAGED)?;
        drop(quiet);
    }
    tools::install_missing_python(INSTALLED, "xtask/proxies.txt").map(|_| ())
}

/// While it lasts, packages that are installed start no service: a proxy of ours must not take a developer's port 80. A
/// policy that exists already stays as it is.
struct Quiet {
    is_ours: bool,
}

impl Quiet {
    fn begin() -> Quiet {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o755).open(POLICY);
        let is_ours = file.is_ok_and(|mut file| std::io::Write::write_all(&mut file, b"#!/bin/sh\nexit 101\n").is_ok());
        if !is_ours && !Path::new(POLICY).exists() {
            eprintln!("{POLICY} cannot be written: the proxies' packages may start their services");
        }
        Quiet { is_ours }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.is_ours && fs::remove_file(POLICY).is_err() {
            eprintln!("remove {POLICY}: it keeps packages from starting their services");
        }
    }
}
