//! What a cluster needs of the machine: root, iproute2, and Debian's packages of Patroni and etcd.

use crate::postgres;
use crate::step::{Failure, output_of, program};
use crate::tools::{self, CURL, IP, OPENSSL, Tool};

const PATRONI: Tool = Tool { program: "patroni", package: "patroni" };
const ETCD: Tool = Tool { program: "etcd", package: "etcd-server" };
const ETCDCTL: Tool = Tool { program: "etcdctl", package: "etcd-client" };
const SETPRIV: Tool = Tool { program: "setpriv", package: "util-linux" };

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
    tools::install_missing_services(&[PATRONI, ETCD, ETCDCTL], &["etcd", "patroni"])
}
