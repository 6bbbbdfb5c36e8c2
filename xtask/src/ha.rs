//! `cargo xtask ha`: the recipe of `deploy/ha` on one machine. Three database machines (etcd, Patroni, PostgreSQL) and
//! three nodes of pilot, each in a network namespace of its own on a bridge that nothing else is connected to.

use std::fs;

use crate::step::{Failure, cargo, run_timed};

pub(crate) mod database;
pub(crate) mod guard;
mod install;
pub(crate) mod network;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod service;

use guard::Guard;
use place::Place;

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        ["up"] => {
            let (place, guard) = up(&[])?;
            guard.keep()?;
            explain(&place);
            Ok(())
        }
        ["down"] => down(),
        _ => Err(Failure::usage("`cargo xtask ha up` or `cargo xtask ha down`")),
    }
}

/// Everything, from the packages to three nodes that are ready. `guests` are initiators in addition to the usual five
/// actors. The guard takes everything down again, unless it is told to keep it.
pub(crate) fn up(guests: &[String]) -> Result<(Place, Guard), Failure> {
    install::needed_rights()?;
    if Place::find().is_some() {
        return Err(Failure::usage("a cluster is up already; end it with `cargo xtask ha down`"));
    }
    if network::exists() {
        return Err(Failure::environment("namespaces named pilot-ha exist, and this checkout did not make them"));
    }
    install::packages()?;
    run_timed("build", &mut cargo(&["build", "--package", "pilot"]))?;
    let place = Place::make()?;
    let guard = Guard::watch()?;
    network::make()?;
    eprintln!("cluster: three members of etcd and Patroni in {}", place.base().display());
    database::start_all(&place)?;
    eprintln!("cluster: three nodes of pilot");
    service::start_all(&place, guests)?;
    Ok((place, guard))
}

/// Ends every process in the namespaces that `up` made, and removes what it left.
fn down() -> Result<(), Failure> {
    install::needed_rights()?;
    let Some(place) = Place::find() else {
        eprintln!("cluster: none is up");
        return Ok(());
    };
    network::end_processes()?;
    network::remove()?;
    let base = place.base();
    fs::remove_dir_all(base).map_err(|error| Failure::environment(format!("{}: {error}", base.display())))?;
    Place::forget();
    eprintln!("cluster: down");
    Ok(())
}

fn explain(place: &Place) {
    let base = place.base().display();
    let enter = format!("ip netns exec {}", network::HUB);
    println!("\nnodes, reachable from the namespace {} only:", network::HUB);
    for node in network::NODES {
        println!("  node{node}  http://{}:{}", network::node_address(node), service::PORT);
    }
    println!("\nthe database's members:\n  {enter} patronictl -c {base}/db1/patroni.yml list");
    println!(
        "\nthe nodes as they see each other:\n  printf 'Authorization: Bearer %s' \"$(cat {base}/tokens/ada)\" | \
         {enter} curl -s -H @- http://{}:{}/v1/nodes",
        network::node_address(1),
        service::PORT
    );
    println!(
        "\ntokens of ana, ben, sol, eli and ada: {base}/tokens\nlogs: {base}/*/*.log\nend it: cargo xtask ha down"
    );
}
