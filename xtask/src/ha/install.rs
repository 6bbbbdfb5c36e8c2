//! What a cluster needs of the machine: root, iproute2, and Debian's packages of Patroni and etcd.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::postgres;
use crate::step::{Failure, output_of, program};
use crate::tools::{self, CURL, IP, OPENSSL, Tool};

const PATRONI: Tool = Tool { program: "patroni", package: "patroni" };
const ETCD: Tool = Tool { program: "etcd", package: "etcd-server" };
const ETCDCTL: Tool = Tool { program: "etcdctl", package: "etcd-client" };
const SETPRIV: Tool = Tool { program: "setpriv", package: "util-linux" };

/// Asked by Debian's packages whether they may start their service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

pub(super) fn needed_rights() -> Result<(), Failure> {
    let user = output_of(&mut program("id", &["--user"]))?;
    if user.trim() != "0" {
        return Err(Failure::environment(
            "network namespaces and the user postgres need root: run this command as root, best in a container or a virtual machine",
        ));
    }
    if !tools::is_installed(IP.program) && !tools::is_installed("apt-get") {
        return Err(Failure::environment("`ip` is missing; install iproute2"));
    }
    Ok(())
}

pub(super) fn packages() -> Result<(), Failure> {
    tools::install_missing(&[IP, CURL, OPENSSL, SETPRIV])?;
    postgres::install()?;
    let services = [PATRONI, ETCD, ETCDCTL];
    if services.iter().all(|tool| tools::is_installed(tool.program)) {
        return Ok(());
    }
    let policy = Policy::forbid_starts();
    let installed = tools::install_missing(&services);
    drop(policy);
    // Otherwise they would start with the machine.
    let _ = output_of(&mut program("systemctl", &["disable", "etcd", "patroni"]));
    installed
}

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
