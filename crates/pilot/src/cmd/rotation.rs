//! `pilot rotation`: the specification's rotation procedure, one command per step, each step recorded.
//!
//! `begin` adds a new credential next to the old one; `verify` proves that it works; `finish` removes the old one;
//! `verify`, with the old token, proves that it is refused.

use std::path::PathBuf;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::credentials::Credential;
use pilot_core::digest::Fingerprint;
use pilot_core::token::Token;
use pilot_ledger::clock::Clock;
use pilot_setup::random;

use crate::client::{Client, ClientArguments};
use crate::cmd::credential::{LifeArguments, NewToken};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::{FileArguments, Files, lock, read_credentials, write_credentials};
use crate::output::{Output, OutputArguments, note, print, print_json, table};

mod evidence;
mod record;

use evidence::EvidenceArguments;
use record::{Record, Rotation, Step, Verdict};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Steps 1 and 2: create a new token and add its digest next to the old one
    Begin(BeginArguments),
    /// Step 3, and the proof of step 4: present the new token, or after finish the old one, to the running service
    Verify(VerifyArguments),
    /// Step 4: remove the old digest, once the new token was verified
    Finish(FinishArguments),
    /// Cancel an unfinished rotation: remove the new digest again
    Abandon(FinishArguments),
    /// Step 5: show the record of every step; or, with --from and --to, what the ledger proves about credentials
    Report(ReportArguments),
}

#[derive(clap::Args)]
struct Who {
    /// The actor whose token is replaced
    #[arg(long, value_name = "ACTOR_ID")]
    actor: ActorId,
    /// Who carries out this step [default: PILOT_OPERATOR, else the user's name]
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct BeginArguments {
    #[command(flatten)]
    who: Who,
    /// Write the token to this new file (mode 0600) instead of showing it
    #[arg(long, value_name = "FILE")]
    token_out: Option<PathBuf>,
    #[command(flatten)]
    life: LifeArguments,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    who: Who,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct FinishArguments {
    #[command(flatten)]
    who: Who,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct ReportArguments {
    /// Only about this actor
    #[arg(long, value_name = "ACTOR_ID")]
    actor: Option<ActorId>,
    #[command(flatten)]
    evidence: EvidenceArguments,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Begin(arguments) => begin(&arguments, environment),
        Command::Verify(arguments) => verify(&arguments, environment),
        Command::Finish(arguments) => finish(&arguments, environment),
        Command::Abandon(arguments) => abandon(&arguments, environment),
        Command::Report(arguments) => report(&arguments, environment),
    }
}

impl Who {
    fn operator(&self, environment: &Environment) -> Result<String, Failure> {
        let operator = self.operator.as_deref().or(environment.operator());
        operator
            .map(str::to_owned)
            .ok_or_else(|| Failure::Usage("the record must name the operator: give --operator NAME".into()))
    }
}

/// The newest rotation of an actor, which must be in a state that a step can follow.
fn open_rotation(files: &Files, actor: &ActorId) -> Result<Rotation, Failure> {
    let rotations = Record::open(&files.rotation_record).read()?;
    let newest = rotations.into_iter().rfind(|rotation| rotation.actor.actor_id == *actor);
    newest.ok_or_else(|| {
        Failure::Refused(format!("no rotation has begun for {actor}; start with `pilot rotation begin`"))
    })
}

fn begin(arguments: &BeginArguments, environment: &Environment) -> Result<(), Failure> {
    let operator = arguments.who.operator(environment)?;
    let files = arguments.files.find(environment)?;
    let path = files.editable()?;
    let _lock = lock(path)?;
    let record = Record::open(&files.rotation_record);
    let actor_id = &arguments.who.actor;
    if record.read()?.iter().any(|rotation| rotation.actor.actor_id == *actor_id && !rotation.is_over()) {
        return Err(Failure::Refused(format!(
            "a rotation of {actor_id} is in progress; continue with `verify` and `finish`, or cancel it with `abandon`"
        )));
    }
    let before = read_credentials(path)?;
    let mut entries = before.entries().to_vec();
    let of_actor = |credential: &&Credential| credential.actor.actor_id == *actor_id;
    let Some(actor) = entries.iter().find(of_actor).map(|credential| credential.actor.clone()) else {
        return Err(Failure::Refused(format!("{actor_id} has no credential to replace; use `pilot credential new`")));
    };
    let old = entries.iter().filter(of_actor).map(|credential| credential.digest.fingerprint()).collect();
    let token = Token::generate(&random::bytes()?);
    let now = Clock::System.now();
    let credential = arguments.life.credential(before.schema(), actor.clone(), &token, now)?;
    entries.push(credential.clone());
    let new = NewToken::keep(token, credential.clone(), arguments.token_out.clone())?;
    write_credentials(path, before.schema(), entries)?;
    let rotation = Rotation::begin(actor, old, credential.digest.fingerprint(), u64::from_ne_bytes(random::bytes()?));
    record.append(&rotation, Step::Begin, &operator, Verdict::Done, now)?;
    new.hand_over(arguments.output.output)?;
    note("Now restart the service, then run `pilot rotation verify` with the new token. The old one still works.")
}

fn verify(arguments: &VerifyArguments, environment: &Environment) -> Result<(), Failure> {
    let operator = arguments.who.operator(environment)?;
    let files = arguments.files.find(environment)?;
    let rotation = open_rotation(&files, &arguments.who.actor)?;
    let client = Client::new(&arguments.client, environment)?;
    let no_token = || Failure::Usage("a rotation is verified with a token, not with a certificate".to_owned());
    let presented = client.token().ok_or_else(no_token)?.digest().fingerprint();
    let step = rotation
        .step_for(presented)
        .ok_or_else(|| Failure::Refused("this is neither the new nor an old token of the rotation".to_owned()))?;
    let reply = client.get("/v1/session")?;
    let verdict = match (step, reply.status()) {
        (Step::VerifyOld, 401) => Verdict::Refused,
        (Step::VerifyOld, _) => Verdict::StillAccepted,
        (_, 401) => Verdict::NotAccepted,
        _ if reply.read::<Actor>()? == rotation.actor => Verdict::Matches,
        _ => Verdict::Differs,
    };
    Record::open(&files.rotation_record).append(&rotation, step, &operator, verdict, Clock::System.now())?;
    if verdict.is_good() {
        say(&rotation, step, verdict, arguments.output.output)
    } else {
        Err(Failure::Refused(format!("{}: {}; {}", step.as_str(), verdict.as_str(), verdict.remedy())))
    }
}

fn finish(arguments: &FinishArguments, environment: &Environment) -> Result<(), Failure> {
    let operator = arguments.who.operator(environment)?;
    let files = arguments.files.find(environment)?;
    let path = files.editable()?;
    let _lock = lock(path)?;
    let rotation = open_rotation(&files, &arguments.who.actor)?;
    if rotation.is_over() {
        return Err(Failure::Refused("this rotation has already ended".into()));
    }
    if !rotation.new_was_verified() {
        return Err(Failure::Refused(
            "the new token has not been verified yet: restart the service and run `pilot rotation verify` with it"
                .into(),
        ));
    }
    let is_old = |credential: &Credential| {
        let fingerprint: Fingerprint = credential.digest.fingerprint();
        credential.actor.actor_id == rotation.actor.actor_id && rotation.old.contains(&fingerprint)
    };
    let before = read_credentials(path)?;
    let entries = before.entries().to_vec();
    if !entries.iter().any(|entry| entry.digest.fingerprint() == rotation.new) {
        return Err(Failure::Refused(format!(
            "the new credential is no longer in {}: without it, {} could not sign in; put it back, or use `abandon`",
            path.display(),
            rotation.actor.actor_id
        )));
    }
    let kept = entries.into_iter().filter(|entry| !is_old(entry)).collect();
    write_credentials(path, before.schema(), kept)?;
    Record::open(&files.rotation_record).append(
        &rotation,
        Step::Finish,
        &operator,
        Verdict::Done,
        Clock::System.now(),
    )?;
    say(&rotation, Step::Finish, Verdict::Done, arguments.output.output)?;
    note("Now restart the service, then run `pilot rotation verify` with the old token: it must be refused.")
}

/// The new token was lost, or never reached its actor, so its digest is removed again.
fn abandon(arguments: &FinishArguments, environment: &Environment) -> Result<(), Failure> {
    let operator = arguments.who.operator(environment)?;
    let files = arguments.files.find(environment)?;
    let path = files.editable()?;
    let _lock = lock(path)?;
    let rotation = open_rotation(&files, &arguments.who.actor)?;
    if rotation.is_over() {
        return Err(Failure::Refused("this rotation has already ended".into()));
    }
    let before = read_credentials(path)?;
    let kept = before.entries().iter().filter(|entry| entry.digest.fingerprint() != rotation.new).cloned();
    write_credentials(path, before.schema(), kept.collect())?;
    Record::open(&files.rotation_record).append(
        &rotation,
        Step::Abandon,
        &operator,
        Verdict::Done,
        Clock::System.now(),
    )?;
    say(&rotation, Step::Abandon, Verdict::Done, arguments.output.output)?;
    note("The new token is refused after the next restart. The old one keeps working.")
}

fn say(rotation: &Rotation, step: Step, result: Verdict, output: Output) -> Result<(), Failure> {
    match output {
        Output::Json => {
            print_json(&serde_json::json!({ "actor_id": rotation.actor.actor_id, "step": step, "result": result }))
        }
        Output::Table => print(&format!("{}: {}\n", step.as_str(), result.as_str())),
    }
}

fn report(arguments: &ReportArguments, environment: &Environment) -> Result<(), Failure> {
    if arguments.evidence.is_asked_for() {
        let (actor, config) = (arguments.actor.as_ref(), arguments.files.config.as_deref());
        return evidence::report(&arguments.evidence, actor, config, arguments.output.output, environment);
    }
    arguments.evidence.check_alone()?;
    let files = arguments.files.find(environment)?;
    let mut lines = Record::open(&files.rotation_record).lines()?;
    lines.retain(|line| arguments.actor.as_ref().is_none_or(|actor| line.actor.actor_id == *actor));
    if arguments.output.output == Output::Json {
        return print_json(&serde_json::json!({ "steps": lines }));
    }
    if lines.is_empty() {
        return print("no rotation is recorded\n");
    }
    let rows = lines.iter().map(|line| {
        let (step, verdict) = (line.step.as_str().to_owned(), line.result.as_str().to_owned());
        vec![
            line.at.to_string(),
            line.actor.actor_id.to_string(),
            line.actor.role.to_string(),
            step,
            line.operator.clone(),
            verdict,
        ]
    });
    print(&table(&["time", "actor", "role", "step", "operator", "result"], rows))
}
