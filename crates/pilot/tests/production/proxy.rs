//! A real proxy in front of the service, started from its file in `deploy/proxy` with other paths and ports.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::production::mutual_tls::House;
use crate::support::harness::{PATIENCE, Port, now};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    HaProxy,
    Nginx,
    Caddy,
    Envoy,
}

impl Kind {
    /// What Pilot has to be told about it.
    pub const fn client_certificate(self) -> &'static str {
        match self {
            Kind::HaProxy | Kind::Caddy => "rfc9440",
            Kind::Nginx => "nginx",
            Kind::Envoy => "xfcc",
        }
    }

    /// Where its recipe expects its files.
    const fn directory(self) -> &'static str {
        match self {
            Kind::HaProxy => "/etc/haproxy/pilot",
            Kind::Nginx => "/etc/nginx/pilot",
            Kind::Caddy => "/etc/caddy/pilot",
            Kind::Envoy => "/etc/envoy/pilot",
        }
    }

    const fn recipe(self) -> &'static str {
        match self {
            Kind::HaProxy => "haproxy.cfg",
            Kind::Nginx => "nginx.conf",
            Kind::Caddy => "Caddyfile",
            Kind::Envoy => "envoy.yaml",
        }
    }

    /// Who connects to the service. A proxy that is started as root goes on as another user if its file says so.
    pub fn user(self) -> String {
        match self {
            Kind::HaProxy if getuid().is_root() => "haproxy".to_owned(),
            Kind::Nginx if getuid().is_root() => "www-data".to_owned(),
            _ => getuid().to_string(),
        }
    }

    /// The line of its recipe for a Unix socket, and the one it stands for.
    const fn lines(self) -> [(&'static str, &'static str); 2] {
        match self {
            Kind::HaProxy => [
                ("    server pilot 127.0.0.1:7450\n", ""),
                ("    #server pilot unix@/run/pilot/pilot.sock", "    server pilot unix@/run/pilot/pilot.sock"),
            ],
            Kind::Nginx => [
                ("    server 127.0.0.1:7450;\n", ""),
                ("    #server unix:/run/pilot/pilot.sock;", "    server unix:/run/pilot/pilot.sock;"),
            ],
            Kind::Caddy => [
                ("reverse_proxy @certificate 127.0.0.1:7450", "reverse_proxy @certificate unix//run/pilot/pilot.sock"),
                ("reverse_proxy 127.0.0.1:7450", "reverse_proxy unix//run/pilot/pilot.sock"),
            ],
            Kind::Envoy => [
                (
                    "      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 7450 } } } }] }]\n",
                    "",
                ),
                ("      #endpoints:", "      endpoints:"),
            ],
        }
    }

    fn program(self) -> PathBuf {
        let program = match self {
            Kind::HaProxy => PathBuf::from("/usr/sbin/haproxy"),
            Kind::Nginx => PathBuf::from("/usr/sbin/nginx"),
            Kind::Caddy => PathBuf::from("/usr/bin/caddy"),
            Kind::Envoy => envoy(),
        };
        assert!(program.exists(), "{} is missing: run `cargo xtask proxies`, which installs it", program.display());
        program
    }
}

/// Where `cargo xtask proxies` puts it; the directory in between has the version of Python in its name.
fn envoy() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_pilot"));
    let libraries = built.parent().unwrap().parent().unwrap().join("tools/proxies-1/lib");
    let versions = fs::read_dir(&libraries).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut programs = versions.map(|python| python.join("site-packages/envoy/_bin/envoy"));
    programs.find(|program| program.exists()).unwrap_or(libraries)
}

/// Where the service is.
pub enum Service {
    Address(SocketAddr),
    Socket(PathBuf),
}

pub struct Proxy {
    child: Child,
    kind: Kind,
    directory: PathBuf,
    pub port: u16,
}

impl Proxy {
    /// In front of a service at this address, with this secret.
    pub fn start(kind: Kind, house: &House, service: &Service, secret: &str) -> Proxy {
        let port = Port::reserve();
        let directory = house.installation.path(&format!("proxy-{}", port.address().port()));
        fs::create_dir(&directory).unwrap();
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
        let pair = house.services.issue(&["pilot.example"], 9);
        let whole = if kind == Kind::HaProxy { format!("{}{}", pair.certificate, pair.key) } else { pair.certificate };
        write("server.pem", &whole);
        write("server.key", &pair.key);
        write("clients.pem", &house.clients.pem);
        write("mesh-secret", &format!("{secret}\n"));
        write("mesh-secret.conf", &format!("proxy_set_header Pilot-Mesh-Secret \"{secret}\";\n"));
        let substitute = |name: &str| adapt(kind, &recipe(name), &directory, port.address().port(), service);
        write("mesh-secret.yaml", &substitute("envoy-mesh-secret.yaml"));
        write("config", &substitute(kind.recipe()));
        write("nginx-main", &nginx_main(&directory, service));
        let child = command(kind, &directory, secret).spawn().unwrap();
        let mut proxy = Proxy { child, kind, directory, port: port.address().port() };
        proxy.wait(port.address());
        proxy
    }

    fn wait(&mut self, address: SocketAddr) {
        let end = now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && now() < end, "{:?} does not listen: {}", self.kind, self.said());
            thread::yield_now();
        }
    }

    /// What it said about itself, for a test that fails.
    pub fn said(&self) -> String {
        fs::read_to_string(self.directory.join("said")).unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Not SIGKILL, after which nginx's and HAProxy's workers would live on.
        let id = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = kill_process(id, Signal::TERM);
        let end = now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if now() > end {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::yield_now();
        }
    }
}

fn recipe(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/proxy").join(name);
    fs::read_to_string(path).unwrap()
}

/// The recipe with this directory, and listening on this port. What only root can do is left out.
fn adapt(kind: Kind, recipe: &str, directory: &Path, port: u16, service: &Service) -> String {
    let text = recipe.replace(kind.directory(), directory.to_str().unwrap());
    if !recipe.contains("7450") {
        return text;
    }
    let listens = match kind {
        Kind::HaProxy => ("bind :443 ", format!("bind 127.0.0.1:{port} ")),
        Kind::Nginx => ("listen 443 ", format!("listen 127.0.0.1:{port} ")),
        Kind::Caddy => ("https://pilot.example {\n", format!("https://pilot.example:{port} {{\n\tbind 127.0.0.1\n")),
        Kind::Envoy => ("address: 0.0.0.0, port_value: 443 ", format!("address: 127.0.0.1, port_value: {port} ")),
    };
    let mut changes = vec![listens];
    match service {
        Service::Address(address) => {
            let port = |address: &SocketAddr| format!("port_value: {} ", address.port());
            changes.push(match kind {
                Kind::Envoy => ("port_value: 7450 ", port(address)),
                _ => ("127.0.0.1:7450", address.to_string()),
            });
        }
        Service::Socket(path) => {
            changes.extend(kind.lines().map(|(from, to)| (from, to.to_owned())));
            changes.push(("/run/pilot/pilot.sock", path.to_str().unwrap().to_owned()));
        }
    }
    if kind == Kind::HaProxy {
        changes.push(("    chroot /var/lib/haproxy\n", String::new()));
        if !getuid().is_root() {
            changes.push(("    user haproxy\n    group haproxy\n", String::new()));
        }
    }
    changes.into_iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{kind:?}: the recipe no longer has {from:?}");
        text.replace(from, &to)
    })
}

/// Around nginx's recipe, which is one of several files that its main one includes.
fn nginx_main(directory: &Path, service: &Service) -> String {
    let user = match service {
        Service::Socket(_) if getuid().is_root() => format!("user {};\n", Kind::Nginx.user()),
        _ => String::new(),
    };
    let place = directory.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {place}/{name};\n"))
        .concat();
    format!(
        "{user}daemon off;\npid {place}/pid;\nerror_log stderr info;\nevents {{}}\nhttp {{\n    access_log off;\n{temporary}    include {place}/config;\n}}\n"
    )
}

fn command(kind: Kind, directory: &Path, secret: &str) -> Command {
    let mut command = Command::new(kind.program());
    let config = directory.join("config");
    match kind {
        Kind::HaProxy => command.arg("-db").arg("-f").arg(config),
        Kind::Nginx => command.arg("-e").arg("stderr").arg("-c").arg(directory.join("nginx-main")),
        Kind::Caddy => command.args(["run", "--adapter", "caddyfile", "--config"]).arg(config),
        Kind::Envoy => {
            // Envoy tells the format by the name.
            fs::rename(config, directory.join("config.yaml")).unwrap();
            command.args(["--concurrency", "1", "--use-dynamic-base-id", "-l", "warning", "-c"]);
            command.arg(directory.join("config.yaml"))
        }
    };
    command.env_clear().current_dir(directory).env("HOME", directory);
    command.env("XDG_DATA_HOME", directory.join("data")).env("XDG_CONFIG_HOME", directory.join("settings"));
    if matches!(kind, Kind::HaProxy | Kind::Caddy) {
        command.env("PILOT_MESH_SECRET", secret);
    }
    let said = fs::File::create(directory.join("said")).unwrap();
    command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
    command
}
