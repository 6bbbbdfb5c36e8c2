//! Programs that the commands need in addition to cargo: looked for, and installed if missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::apt;
use crate::step::{Failure, output_of, program, root, run_timed, target_dir};

/// A program and the Debian package that contains it.
pub(crate) struct Tool {
    pub program: &'static str,
    pub package: &'static str,
}

/// libFuzzer's runtime is C++.
pub(crate) const CXX: Tool = Tool { program: "g++", package: "g++" };
/// The embedded database is C.
pub(crate) const CC: Tool = Tool { program: "cc", package: "gcc" };
/// The durability tests inject faults into system calls with it.
pub(crate) const STRACE: Tool = Tool { program: "strace", package: "strace" };
/// Other people's clients, which present certificates to the service and read them.
pub(crate) const CURL: Tool = Tool { program: "curl", package: "curl" };
/// Reads the examples of what sudo and ssh are to allow.
pub(crate) const VISUDO: Tool = Tool { program: "visudo", package: "sudo" };
pub(crate) const SSH_KEYGEN: Tool = Tool { program: "ssh-keygen", package: "openssh-client" };
/// The examples write their payloads with it.
pub(crate) const JQ: Tool = Tool { program: "jq", package: "jq" };
pub(crate) const OPENSSL: Tool = Tool { program: "openssl", package: "openssl" };
/// The audit sink sends entries to it.
const RSYSLOG: Tool = Tool { program: "/usr/sbin/rsyslogd", package: "rsyslog" };
/// Not a program, so that it is always asked for; see [`install_missing_syslog`].
const RSYSLOG_TLS: Tool = Tool { program: "lmnsd_gtls.so", package: "rsyslog-gnutls" };
/// A token that keeps keys, and what makes keys in it.
const SOFTHSM: Tool = Tool { program: "softhsm2-util", package: "softhsm2" };
const PKCS11_TOOL: Tool = Tool { program: "pkcs11-tool", package: "opensc" };
/// Not a program, so that it is always asked for; see [`install_missing_token`].
const PYKCS11: Tool =
    Tool { program: "/usr/lib/python3/dist-packages/PyKCS11/__init__.py", package: "python3-pykcs11" };
/// schemathesis is written in it.
pub(crate) const PYTHON: Tool = Tool { program: "python3", package: "python3-venv" };
/// The console is tested in it.
pub(crate) const CHROMIUM: Tool = Tool { program: "chromium", package: "chromium" };
pub(crate) const FIREFOX: Tool = Tool { program: "firefox-esr", package: "firefox-esr" };
/// The static build's C library.
pub(crate) const MUSL: Tool = Tool { program: "musl-gcc", package: "musl-tools" };
/// Builds for arm64, and runs what was built.
pub(crate) const AARCH64_GCC: Tool = Tool { program: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" };
pub(crate) const AARCH64_QEMU: Tool = Tool { program: "qemu-aarch64-static", package: "qemu-user-static" };
pub(crate) const DPKG_DEB: Tool = Tool { program: "dpkg-deb", package: "dpkg" };
/// Checks packages as Debian's own archive would.
pub(crate) const LINTIAN: Tool = Tool { program: "lintian", package: "lintian" };
/// Checks units without running them.
pub(crate) const SYSTEMD_ANALYZE: Tool = Tool { program: "systemd-analyze", package: "systemd" };
/// The documentation's commands are run on machines made of these.
pub(crate) const SYSTEMD: Tool = Tool { program: "systemctl", package: "systemd" };
pub(crate) const UNSHARE: Tool = Tool { program: "unshare", package: "util-linux" };
pub(crate) const IP: Tool = Tool { program: "ip", package: "iproute2" };
pub(crate) const TAR: Tool = Tool { program: "tar", package: "tar" };
pub(crate) const WRK: Tool = Tool { program: "wrk", package: "wrk" };
pub(crate) const TASKSET: Tool = Tool { program: "taskset", package: "util-linux" };
/// A compiler for browsers where the toolchain in use is not one: Debian's own, the sources of its standard library, and
/// a linker.
pub(crate) const DEBIAN_RUSTC: Tool = Tool { program: "/usr/bin/rustc", package: "rustc-web" };
pub(crate) const DEBIAN_CARGO: Tool = Tool { program: "/usr/bin/cargo", package: "cargo-web" };
pub(crate) const DEBIAN_RUST_SOURCE: Tool = Tool { program: "/usr/lib/rustlib/src/rust/x.py", package: "rust-web-src" };
pub(crate) const WASM_LD: Tool = Tool { program: "wasm-ld-22", package: "lld-22" };

/// The identity provider that the tests sign in at.
pub(crate) const PROVIDER: &str = "crates/pilot/tests/oauth/provider";

/// Installs the Debian packages of those tools that are missing on this machine.
pub(crate) fn install_missing(tools: &[Tool]) -> Result<(), Failure> {
    let missing: Vec<_> = tools.iter().filter(|tool| !is_installed(tool.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    let by_hand = || format!("{} missing; install by hand: {}", names(&missing), packages.join(" "));
    if !is_installed("apt-get") {
        return Err(Failure::environment(by_hand()));
    }
    eprintln!("missing on this machine: {}", names(&missing));
    apt::install(&packages).map_err(|_| Failure::environment(by_hand()))
}

/// A hardware security module in software, and the library that the signer in `deploy/signer` uses it with.
pub(crate) fn install_missing_token() -> Result<(), Failure> {
    if Path::new(PYKCS11.program).exists() {
        return install_missing(&[SOFTHSM, PKCS11_TOOL]);
    }
    install_missing(&[SOFTHSM, PKCS11_TOOL, PYKCS11])
}

/// The same for packages that bring services: these are neither started now nor with the machine.
pub(crate) fn install_missing_services(tools: &[Tool], services: &[&str]) -> Result<(), Failure> {
    if tools.iter().all(|tool| is_installed(tool.program)) {
        return Ok(());
    }
    let policy = Policy::forbid_starts();
    let installed = install_missing(tools);
    drop(policy);
    let _ = output_of(program("systemctl", &["disable"]).args(services));
    installed
}

/// The syslog server that the audit sink is tested with, and its TLS, which is a module of its own.
pub(crate) fn install_missing_syslog() -> Result<(), Failure> {
    let has_tls = |architecture: fs::DirEntry| architecture.path().join("rsyslog/lmnsd_gtls.so").exists();
    let has_tls = fs::read_dir("/usr/lib").is_ok_and(|found| found.flatten().any(has_tls));
    if has_tls && is_installed(RSYSLOG.program) {
        return Ok(());
    }
    install_missing_services(&[RSYSLOG, RSYSLOG_TLS], &["rsyslog"])
}

/// Asked by Debian's packages whether they may start their service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// While this exists, packages do not start services.
struct Policy {
    is_ours: bool,
}

impl Policy {
    fn forbid_starts() -> Policy {
        let is_ours = !Path::new(POLICY).exists()
            && fs::write(POLICY, "#!/bin/sh\nexit 101\n").is_ok()
            && fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755)).is_ok();
        Policy { is_ours }
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(POLICY);
        }
    }
}

/// Debian's Python does not include what creates virtual environments, unless it is installed separately.
pub(crate) fn install_missing_venv() -> Result<(), Failure> {
    install_missing(&[PYTHON])?;
    if output_of(&mut program("python3", &["-c", "import venv, ensurepip"])).is_ok() {
        return Ok(());
    }
    install_missing(&[Tool { program: "python3-without-venv", package: PYTHON.package }])
}

/// A directory of Python packages, each file checked by its hash. It is named after a version, so that another version is
/// installed next to it.
pub(crate) fn install_missing_python(installed: &str, requirements: &str) -> Result<PathBuf, Failure> {
    let home = target_dir().join(installed);
    // The last thing that an installation writes.
    if !home.join("whole").exists() {
        install_missing_venv()?;
        run_timed("install", program("python3", &["-m", "venv", "--clear"]).arg(&home))?;
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
        run_timed("install", pip.arg(root().join(requirements)))?;
        let written = fs::write(home.join("whole"), "");
        written.map_err(|error| Failure::environment(format!("{installed}: {error}")))?;
    }
    Ok(home)
}

/// Installs the npm packages of a directory of this repository, if its lock file is newer than what is installed.
pub(crate) fn install_packages(what: &str, directory: &str) -> Result<(), Failure> {
    let directory = root().join(directory);
    if modified(&directory.join("node_modules/.package-lock.json")) >= modified(&directory.join("package-lock.json")) {
        return Ok(());
    }
    // Not `ci`, which insists on packages for other platforms that a registry may not have. The lock file still
    // applies.
    let mut command = program("npm", &["install", "--no-save", "--ignore-scripts"]);
    run_timed(what, command.current_dir(directory)).map_err(|failure| {
        Failure::refuted(format!("{failure}\nNode 20 or newer with npm is needed; see CONTRIBUTING.md."))
    })
}

pub(crate) fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|found| found.modified()).ok()
}

/// Adds parts of the Rust toolchain that a minimal installation lacks.
pub(crate) fn install_missing_components() -> Result<(), Failure> {
    for (probe, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if output_of(&mut program("cargo", &[probe, "--version"])).is_err() {
            run_timed("install", &mut program("rustup", &["component", "add", component]))?;
        }
    }
    Ok(())
}

fn names(tools: &[&Tool]) -> String {
    tools.iter().map(|tool| tool.program).collect::<Vec<_>>().join(", ")
}

pub(crate) fn is_installed(name: &str) -> bool {
    let mut search = program("sh", &["-c", "command -v \"$0\" >/dev/null", name]);
    search.status().is_ok_and(|status| status.success())
}

pub(crate) fn exists(path: &str) -> bool {
    Path::exists(&root().join(path))
}
