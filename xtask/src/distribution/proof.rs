//! Checks what is claimed about the programs before they are packed.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::place::{Place, at};
use crate::places;
use crate::step::{Failure, output_of, program, run, shown};

pub(super) fn is_static(path: &Path) -> Result<(), Failure> {
    let found = output_of(&mut program("ldd", &[&path.to_string_lossy()]))?;
    if found.contains("statically linked") {
        return Ok(());
    }
    Err(Failure::refuted(format!("{}: needs system libraries:\n{found}", path.display())))
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
pub(super) fn serves(place: &Place, [pilot, verify]: &[PathBuf; 2]) -> Result<(), Failure> {
    run(&mut program(&verify.to_string_lossy(), &["--version"]))?;
    let mut demo = Demo::start(pilot, &place.stage.join("demo"))?;
    let (token, port) = demo.introduction()?;
    let mut session = program(&pilot.to_string_lossy(), &["session", "--url", &format!("http://localhost:{port}")]);
    run(session.env("PILOT_TOKEN", token))?;
    demo.stop()
}

struct Demo(Child);

impl Demo {
    fn start(pilot: &Path, directory: &Path) -> Result<Demo, Failure> {
        // If it is stopped while it creates its samples, it complains; nobody needs to read that.
        let complaints = directory.with_extension("log");
        let complaints = File::create(&complaints).map_err(|error| at(&complaints, &error))?;
        let mut command = Command::new(pilot);
        command.args(["demo", "--listen", "127.0.0.1:0", "--dir"]).arg(directory);
        command.stdout(Stdio::piped()).stderr(complaints);
        command.spawn().map(Demo).map_err(|error| at(pilot, &error))
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
