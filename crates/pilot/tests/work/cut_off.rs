//! An agent that is killed, stopped or cut off at any moment: nothing runs twice, nothing survives, and no item is left
//! in a state that says more than anyone saw.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::Duration;

use pilot_testing::{Dice, asked, fresh_seed};
use rustix::process::Signal;

use crate::support::harness::{Installation, Server};
use crate::work::stage::{Agent, Cable, WORKFLOW, cleared, history, installation, processes_with, state, until, work};

const ROUNDS: usize = 16;

/// Says that it runs, leaves a grandchild in a session of its own, works for a while and says that it is done.
const SCRIPT: &str = r#"
echo "$PILOT_ITEM_ID.$PILOT_ATTEMPT" >> runs
setsid sh -c 'while :; do sleep 0.05; done' &
sleep 0.$(printf %s "$PILOT_ITEM_ID" | tail -c 1 | tr a-f 0-5)
echo "$PILOT_ITEM_ID.$PILOT_ATTEMPT" >> done
"#;

#[derive(Debug, Clone, Copy)]
enum Fault {
    KillAgent,
    StopAgent,
    CutOff,
    KillService,
}

#[test]
fn an_agent_that_is_cut_off_at_any_moment_runs_nothing_twice_and_never_lies() {
    let rounds = asked("PILOT_LONG").map_or(ROUNDS, |rounds| usize::try_from(rounds).unwrap());
    let seed = asked("PILOT_SEED").unwrap_or_else(fresh_seed);
    println!("PILOT_SEED={seed}");
    let mut dice = Dice::new(seed);
    let installation = installation("15m");
    let mut server = installation.serve();
    let cable = Cable::to(&server);
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..rounds {
        let group = if dice.below(2) == 0 { "auto" } else { "off" };
        let fault = [Fault::KillAgent, Fault::StopAgent, Fault::CutOff, Fault::KillService][dice.below(4)];
        let id = cleared(&server);
        let start = || {
            let arguments = ["--workflow", WORKFLOW, "--cgroup", group];
            Agent::start(&installation, work(&installation, &cable.url(), &arguments, SCRIPT))
        };
        let agent = start();
        thread::sleep(Duration::from_millis(dice.below(1200_u64)));
        let agent = match fault {
            Fault::KillAgent => {
                agent.kill();
                start()
            }
            Fault::StopAgent => {
                agent.signal(Signal::STOP);
                thread::sleep(Duration::from_millis(dice.below(500_u64)));
                if dice.below(2) == 0 {
                    agent.signal(Signal::CONT);
                    agent
                } else {
                    agent.kill();
                    start()
                }
            }
            Fault::CutOff => {
                cable.cut();
                thread::sleep(Duration::from_millis(dice.below(500_u64)));
                cable.mend(&server);
                agent
            }
            Fault::KillService => {
                drop(server);
                server = installation.serve();
                cable.mend(&server);
                agent
            }
        };
        until(&format!("round {round}, {fault:?}, {group}: {id} is {}", state(&server, &id)), || {
            !["cleared", "executing"].contains(&&*state(&server, &id))
        });
        judge(&installation, &server, &id, &format!("round {round}, {fault:?}, {group}\n{}", agent.log()));
        *ends.entry(format!("{fault:?} {}", state(&server, &id))).or_default() += 1;
        agent.signal(Signal::TERM);
        // One that has only just started does not listen for the signal yet.
        let status = agent.ends();
        assert!(status.success() || status.signal() == Some(15), "round {round}: {status}");
    }
    println!("{rounds} rounds: {ends:?}");
}

fn judge(installation: &Installation, server: &Server, id: &str, round: &str) {
    let lines = |name: &str| fs::read_to_string(installation.path(name)).unwrap_or_default();
    let count = |name: &str| lines(name).lines().filter(|line| **line == format!("{id}.1")).count();
    assert!(count("runs") <= 1, "ran {} times: {round}", count("runs"));
    match &*state(server, id) {
        "succeeded" => assert_eq!(count("done"), 1, "said to have succeeded, and was not done: {round}"),
        "indeterminate" => {}
        other => panic!("{id} is {other}: {:?} {round}", history(server, id).last()),
    }
    assert_eq!(processes_with(&format!("PILOT_ITEM_ID={id}")), [0; 0], "something survived: {round}");
}
