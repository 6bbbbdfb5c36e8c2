//! The namespaces: one with a bridge, and one for each machine that is played, connected to it by a pair of links.

use std::fs;
use std::process::Command;

use super::process::{self, USER};
use crate::step::{Failure, output_of, program, run};

pub(crate) const DATABASES: [usize; 3] = [1, 2, 3];
pub(crate) const NODES: [usize; 3] = [1, 2, 3];

/// The namespace of the bridge. Commands that talk to the cluster run here.
pub(crate) const HUB: &str = "pilot-ha";
/// The bridge of machines that are cut off together.
const ISLAND: &str = "island";
pub(crate) const NETWORK: &str = "10.77.0.0/24";

pub(crate) fn database_address(member: usize) -> String {
    format!("10.77.0.1{member}")
}

pub(crate) fn node_address(node: usize) -> String {
    format!("10.77.0.2{node}")
}

/// `db1` and `node1` are names of machines, of their links on the bridge, and the ends of their namespaces' names.
pub(crate) fn database_name(member: usize) -> String {
    format!("db{member}")
}

pub(crate) fn node_name(node: usize) -> String {
    format!("node{node}")
}

fn namespace(machine: &str) -> String {
    format!("{HUB}-{machine}")
}

fn machines() -> Vec<(String, String)> {
    let databases = DATABASES.iter().map(|&member| (database_name(member), database_address(member)));
    let nodes = NODES.iter().map(|&node| (node_name(node), node_address(node)));
    databases.chain(nodes).collect()
}

fn ip(arguments: &str) -> Result<(), Failure> {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    run(&mut program("ip", &arguments))
}

pub(crate) fn make() -> Result<(), Failure> {
    ip(&format!("netns add {HUB}"))?;
    ip(&format!("-n {HUB} link set lo up"))?;
    ip(&format!("-n {HUB} link add hub type bridge"))?;
    ip(&format!("-n {HUB} address add 10.77.0.254/24 dev hub"))?;
    ip(&format!("-n {HUB} link set hub up"))?;
    for (machine, address) in machines() {
        let namespace = namespace(&machine);
        ip(&format!("netns add {namespace}"))?;
        ip(&format!("-n {namespace} link set lo up"))?;
        ip(&format!("-n {HUB} link add {machine} type veth peer name eth0 netns {namespace}"))?;
        ip(&format!("-n {HUB} link set {machine} master hub up"))?;
        ip(&format!("-n {namespace} address add {address}/24 dev eth0"))?;
        ip(&format!("-n {namespace} link set eth0 up"))?;
    }
    Ok(())
}

/// Disconnects a machine, or connects it again.
pub(crate) fn connect(machine: &str, is_up: bool) -> Result<(), Failure> {
    ip(&format!("-n {HUB} link set {machine} {}", if is_up { "up" } else { "down" }))
}

/// Whether a machine's link carries anything.
pub(crate) fn is_connected(machine: &str) -> bool {
    let mut show = program("ip", &["-n", HUB, "-o", "link", "show", machine]);
    process::output(&mut show).is_some_and(|line| line.contains("LOWER_UP"))
}

/// Puts machines on a bridge of their own: they reach each other and nobody else. Only this namespace reaches both
/// sides, as people might who are near both.
pub(crate) fn isolate(machines: &[(String, String)]) -> Result<(), Failure> {
    ip(&format!("-n {HUB} link add {ISLAND} type bridge"))?;
    ip(&format!("-n {HUB} address add 10.77.0.253/32 dev {ISLAND}"))?;
    ip(&format!("-n {HUB} link set {ISLAND} up"))?;
    for (machine, address) in machines {
        ip(&format!("-n {HUB} link set {machine} master {ISLAND}"))?;
        ip(&format!("-n {HUB} route replace {address}/32 dev {ISLAND} src 10.77.0.253"))?;
    }
    // Addresses that were learnt on the other bridge.
    ip(&format!("-n {HUB} neigh flush all"))
}

/// Everything as it was before [`isolate`].
pub(crate) fn rejoin() -> Result<(), Failure> {
    for (machine, _) in machines() {
        ip(&format!("-n {HUB} link set {machine} master hub"))?;
    }
    let is_there = process::output(&mut program("ip", &["-n", HUB, "link", "show", ISLAND])).is_some();
    if is_there {
        ip(&format!("-n {HUB} link delete {ISLAND}"))?;
        ip(&format!("-n {HUB} neigh flush all"))?;
    }
    Ok(())
}

/// Runs a program on one of the machines; `None` is the bridge's namespace.
pub(crate) fn on(machine: Option<&str>, name: &str, arguments: &[&str]) -> Command {
    let namespace = machine.map_or_else(|| HUB.to_owned(), namespace);
    let mut command = program("ip", &["netns", "exec", &namespace, name]);
    command.args(arguments);
    command
}

/// A program on one of the machines, as the user of the database.
pub(crate) fn as_user(machine: Option<&str>, name: &str, arguments: &[&str]) -> Command {
    let mut command = on(machine, "setpriv", &[]);
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--init-groups", "--inh-caps=-all", name]);
    // What root keeps in its own directory, libpq would find there and be refused.
    command.args(arguments).env("HOME", "/nonexistent");
    command
}

/// The status of a GET from the bridge's namespace; 0 without an answer.
pub(crate) fn status(url: &str) -> u16 {
    let arguments = ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "2", url];
    process::output_anyway(&mut on(None, "curl", &arguments)).trim().parse().unwrap_or(0)
}

/// The processes of a machine.
pub(crate) fn processes(machine: &str) -> Vec<u32> {
    let listed = output_of(&mut program("ip", &["netns", "pids", &namespace(machine)])).unwrap_or_default();
    listed.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn existing() -> Vec<String> {
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name == HUB || name.starts_with(&format!("{HUB}-"))).collect()
}

pub(crate) fn exists() -> bool {
    !existing().is_empty()
}

/// Nothing runs in these namespaces but what this tool started there.
pub(crate) fn end_processes() -> Result<(), Failure> {
    for _ in 0..50 {
        let machines = machines();
        let left: Vec<u32> = machines.iter().flat_map(|(machine, _)| processes(machine)).collect();
        if left.is_empty() || existing().is_empty() {
            return Ok(());
        }
        process::signal("KILL", &left);
        process::pause(100);
    }
    Err(Failure::environment("some processes of the cluster do not end"))
}

pub(crate) fn remove() -> Result<(), Failure> {
    existing().iter().try_for_each(|name| ip(&format!("netns delete {name}")))
}
