//! Checks what is claimed about the programs before they are packed.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::architecture::Architecture;
use super::place::{Place, at};
use crate::places;
use crate::step::{Failure, output_of, program, run, shown};

/// For this processor, and complete: no interpreter is asked for, and no library.
pub(super) fn is_static(path: &Path, architecture: Architecture) -> Result<(), Failure> {
    let found =
        output_of(program("readelf", &["--file-header", "--program-headers", "--dynamic", "--wide"]).arg(path))?;
    let machine = found.lines().find_map(|line| line.trim().strip_prefix("Machine:")).map(str::trim);
    match machine {
        Some(machine) if machine != architecture.machine() => {
            Err(Failure::refuted(format!("{}: is for {machine}", path.display())))
        }
        Some(_) if !found.contains("INTERP") && !found.contains("(NEEDED)") => Ok(()),
        _ => Err(Failure::refuted(format!("{}: needs system libraries:\n{found}", path.display()))),
    }
}

/// Neither the directory of the sources nor that of other people's crates: paths reveal who built it, and differ.
pub(super) fn names_no_place_of_this_machine(path: &Path) -> Result<(), Failure> {
    for (place, _) in places::renamed()? {
        let mut search = program("grep", &["--text", "--fixed-strings", "--quiet", "--", &place]);
        match search.arg(path).status().map(|status| status.code()) {
            Ok(Some(1)) => {}
            Ok(Some(0)) => return Err(Failure::refuted(format!("{}: contains the path {place}", path.display()))),
            other => return Err(Failure::environment(format!("`{}` failed: {other:?}", shown(&search)))),
        }
    }
    Ok(())
}

/// Starts a demo, asks it by name over the network who its first actor is, and stops it.
pub(super) fn serves(place: &Place, [pilot, verify]: &[PathBuf; 2], architecture: Architecture) -> Result<(), Failure> {
    run(architecture.command(verify).arg("--version"))?;
    let directory = place.stage.join(format!("demo-{}", architecture.debian()));
    let mut demo = Demo::start(architecture.command(pilot), &directory)?;
    let (token, port) = demo.introduction()?;
    let mut session = architecture.command(pilot);
    run(session.args(["session", "--url", &format!("http://localhost:{port}")]).env("PILOT_TOKEN", token))?;
    demo.stop()
}

struct Demo(Child);

impl Demo {
    fn start(mut command: Command, directory: &Path) -> Result<Demo, Failure> {
        // If it is stopped while it creates its samples, it complains; nobody needs to read that.
        let complaints = directory.with_extension("log");
        let complaints = File::create(&complaints).map_err(|error| at(&complaints, &error))?;
        command.args(["demo", "--listen", "127.0.0.1:0", "--dir"]).arg(directory);
        command.stdout(Stdio::piped()).stderr(complaints);
        let line = shown(&command);
        command.spawn().map(Demo).map_err(|error| Failure::environment(format!("`{line}`: {error}")))
    }

    /// The first actor's token and the port, from the demo's output.
    fn introduction(&mut self) -> Result<(String, String), Failure> {
        let mut token = None;
        let output = self.0.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines());
        for line in output.map_while(Result::ok) {
            let words = line.split_whitespace().find(|word| word.starts_with("pilot_"));
            token = token.or(words.map(str::to_owned));
            let port = line.strip_prefix("listening on http://127.0.0.1:").map(str::to_owned);
            if let (Some(token), Some(port)) = (&token, port) {
                return Ok((token.clone(), port));
            }
        }
        Err(Failure::refuted("the demo of the static program ended before it was listening"))
    }

    fn stop(mut self) -> Result<(), Failure> {
        run(&mut program("kill", &["-TERM", &self.0.id().to_string()]))?;
        match self.0.wait() {
            Ok(status) if status.success() => Ok(()),
            ended => Err(Failure::refuted(format!("the static program did not stop cleanly: {ended:?}"))),
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
