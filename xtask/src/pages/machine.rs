//! A disposable machine with systemd as process 1, and its own processes, network and names: over this machine's files, or
//! over a Debian that was just installed. What it writes is in memory, and disappears with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::step::{Failure, Stopwatch, program, target_dir};

const BOOT: &str = include_str!("boot.sh");
/// Far more than it needs, even on a busy machine.
const BOOT_PATIENCE: Duration = Duration::from_mins(2);
const CANNOT: &str = "this machine cannot run the pages (root, unshare, overlayfs and cgroup2 are needed)";
const BROUGHT: &str = "mkdir -p /srv/pages; cp -r /srv/brought/. /srv/pages\n\
    echo '127.0.0.1 localhost pilot.example' > /etc/hosts";

/// What is on the machine before the first command.
pub(super) enum Base {
    /// What is on this machine.
    Here,
    /// Debian's smallest system, in this directory.
    Debian(PathBuf),
}

pub(super) struct Machine {
    name: &'static str,
    container: Child,
    /// Its process 1, as this machine numbers it.
    init: u32,
    group: String,
}

impl Machine {
    /// Starts the machine with the files of `brought` in `/srv/pages`.
    pub(super) fn boot(name: &'static str, base: &Base, brought: &Path) -> Result<Machine, Failure> {
        let group = format!("pilot-pages-{}-{name}", std::process::id());
        // If this program is killed, the machine ends with it.
        let mut command = program("setpriv", &["--pdeathsig", "KILL"]);
        match base {
            Base::Here => {
                let directory = target_dir().join("pages/machines").join(name);
                fs::create_dir_all(&directory)
                    .map_err(|error| Failure::environment(format!("{}: {error}", directory.display())))?;
                command.args(["unshare", "--kill-child", "--fork", "--mount", "--pid", "--uts", "--ipc", "--net"]);
                command.args(["sh", "-c", BOOT, "boot"]).arg(&directory).arg(brought).env("PILOT_PAGES_GROUP", &group);
            }
            Base::Debian(root) => {
                command.args(["systemd-nspawn", "--quiet", "--boot", "--volatile=overlay", "--private-network"]);
                command.args(["--register=no", "--keep-unit", "--console=passive"]).arg(format!("--machine={group}"));
                command.arg(format!("--directory={}", root.display()));
                command.arg(format!("--bind-ro={}:/srv/brought", brought.display())).stdout(Stdio::null());
            }
        }
        let container = command.stdin(Stdio::null()).spawn();
        let container = container.map_err(|error| Failure::environment(format!("{CANNOT}: {error}")))?;
        let mut machine = Machine { name, container, init: 0, group };
        machine.wait_until_it_runs()?;
        if let Base::Debian(_) = base {
            machine.run("what was brought", BROUGHT)?;
        }
        Ok(machine)
    }

    fn wait_until_it_runs(&mut self) -> Result<(), Failure> {
        let watch = Stopwatch::start();
        let (mut last, id) = (String::new(), self.container.id());
        while watch.elapsed() < BOOT_PATIENCE {
            if let Ok(Some(status)) = self.container.try_wait() {
                return Err(Failure::environment(format!("{CANNOT}: {} ended with {status}", self.name)));
            }
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
            self.init = children.trim().parse().unwrap_or(0);
            let is_systemd =
                fs::read_to_string(format!("/proc/{}/comm", self.init)).is_ok_and(|name| name == "systemd\n");
            if is_systemd {
                last = self.ask("systemctl is-system-running --wait").0;
                if matches!(last.trim(), "running" | "degraded") {
                    return Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(Failure::environment(format!("{CANNOT}: {} did not start: {last:?}", self.name)))
    }

    /// Runs a script that must succeed; its output is shown only if it fails.
    pub(super) fn run(&self, what: &str, script: &str) -> Result<String, Failure> {
        let watch = Stopwatch::start();
        // Each command is shown before it runs: the last of them is the one that failed.
        let (output, succeeded) = self.ask(&format!("set -x\n{script}"));
        if succeeded {
            println!("  {}: {what}: {:.1} s", self.name, watch.elapsed().as_secs_f64());
            return Ok(output);
        }
        let log = self.ask("systemctl status pilot --no-pager --full; journalctl -u pilot --no-pager -n 40").0;
        Err(Failure::refuted(format!("{}: {what} failed.\n{script}\n\n{output}\n{log}", self.name)))
    }

    /// Standard output and error together, and whether it succeeded.
    fn ask(&self, script: &str) -> (String, bool) {
        let init = self.init.to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &init, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]);
        command.args(["env", "--ignore-environment", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]);
        command.args(["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "bash", "-c"]);
        command.arg(format!("cd /srv/pages 2>/dev/null || cd /; exec 2>&1; set -euo pipefail; umask 022\n{script}"));
        match command.stdin(Stdio::null()).output() {
            Ok(output) => (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()),
            Err(error) => (format!("nsenter cannot be started: {error}"), false),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Kills its process 1, and with it all its other processes; none of ours. systemd-nspawn leaves it to us.
        if self.init > 1 {
            let _ = program("kill", &["-KILL", &self.init.to_string()]).stderr(Stdio::null()).status();
        }
        let _ = self.container.kill();
        let _ = self.container.wait();
        let script = "mount -t cgroup2 none /mnt && find \"/mnt/$0\" -depth -type d -exec rmdir {} +";
        // The kernel takes a moment to release processes that were killed.
        for _ in 0..20 {
            let mut remove = program("unshare", &["--mount", "sh", "-c", script, &self.group]);
            if remove.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
