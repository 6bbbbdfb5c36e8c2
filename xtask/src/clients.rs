//! `cargo xtask clients`: the Python client and the TypeScript types are what the API's document says, hold their rules
//! against a real service, and can be packaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs;
use crate::step::{Failure, output_of, program, quiet_output_of, root, run_timed, target_dir};
use crate::tools;

/// Another number when `xtask/clients.txt` changes, so that it is installed next to the last one.
const INSTALLED: &str = "tools/clients-1";
const PYTHON: &str = "clients/python";
const TYPESCRIPT: &str = "clients/typescript";
/// What the compiler must say about a use that is wrong.
const CANARY: &str = "Type '\"superuser\"' is not assignable to type";

pub(crate) fn run() -> Result<(), Failure> {
    let tools = Tools(tools::install_missing_python(INSTALLED, "xtask/clients.txt")?);
    check_copies()?;
    run_timed("generated", tools.python(&["generate.py", "--check"]).current_dir(root().join(PYTHON)))?;
    tools.check_style()?;
    tools.test("unit tests", "tests/client")?;
    programs::build()?;
    tools.test("tests with the service", "tests/service")?;
    tools.build_packages()?;
    check_typescript()
}

/// What the client's own tests need. Among it is a library that verifies webhooks.
pub(crate) fn install_missing() -> Result<(), Failure> {
    tools::install_missing_python(INSTALLED, "xtask/clients.txt").map(|_| ())
}

/// A package contains its own licence and version, which must be those of the workspace.
fn check_copies() -> Result<(), Failure> {
    let licence = read("LICENSE")?;
    let manifest = read("Cargo.toml")?;
    let version = workspace_version(&manifest).ok_or_else(|| Failure::refuted("Cargo.toml has no version"))?;
    for (path, expected) in [
        ("clients/python/LICENSE", licence.clone()),
        ("clients/typescript/LICENSE", licence),
        ("clients/python/pyproject.toml", format!("\nversion = \"{version}\"\n")),
        ("clients/python/pilot_client/__init__.py", format!("\n__version__ = \"{version}\"\n")),
        ("clients/typescript/package.json", format!("\n  \"version\": \"{version}\",\n")),
    ] {
        if !read(path)?.contains(&expected) {
            return Err(Failure::refuted(format!(
                "{path} does not have the licence or the version {version} of this workspace"
            )));
        }
    }
    Ok(())
}

fn workspace_version(manifest: &str) -> Option<&str> {
    let package = manifest.split("[workspace.package]").nth(1)?;
    package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(root().join(path)).map_err(|error| Failure::environment(format!("{path}: {error}")))
}

/// The directory with Python and what was installed for it.
struct Tools(PathBuf);

impl Tools {
    /// Leaves nothing in the source tree.
    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.0.join("bin").join(name));
        command.args(arguments).current_dir(root().join(PYTHON));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("RUFF_CACHE_DIR", target_dir().join("clients/ruff"));
        command.env("MYPY_CACHE_DIR", target_dir().join("clients/mypy"));
        command
    }

    fn python(&self, arguments: &[&str]) -> Command {
        self.command("python3", arguments)
    }

    fn check_style(&self) -> Result<(), Failure> {
        run_timed("style", &mut self.command("ruff", &["check", "--quiet"]))?;
        run_timed("format", &mut self.command("ruff", &["format", "--check", "--quiet"]))?;
        run_timed("types", &mut self.command("mypy", &["--strict", "--package", "pilot_client"]))?;
        run_timed("types", &mut self.command("mypy", &["--strict", "generate.py"]))
    }

    fn test(&self, what: &str, directory: &str) -> Result<(), Failure> {
        let mut tests = self.python(&["-m", "unittest", "discover", "--quiet", "--start-directory", directory]);
        run_timed(what, tests.env("PILOT_PROGRAM", target_dir().join("debug/pilot")))
    }

    /// Not in an environment of its own, which would install packages that nobody has checked.
    fn build_packages(&self) -> Result<(), Failure> {
        let directory = target_dir().join("clients/packages");
        let _ = fs::remove_dir_all(&directory);
        let mut build = self.python(&["-m", "build", "--no-isolation", "--outdir"]);
        quiet_output(build.arg(&directory))?;
        let wheel = only(&directory, "whl")?;
        only(&directory, "gz")?;
        let listed = output_of(self.python(&["-m", "zipfile", "--list"]).arg(&wheel))?;
        if !listed.contains("pilot_client/py.typed") || listed.contains("pilot_verify") || listed.contains("tests/") {
            return Err(Failure::refuted(format!("the wheel does not contain what it should:\n{listed}")));
        }
        let import = "import sys; sys.path.insert(0, sys.argv[1]); import pilot_client; print(pilot_client.__file__)";
        let mut command = self.python(&["-I", "-c", import]);
        let imported = output_of(command.arg(&wheel).current_dir(&directory))?;
        if imported.contains(".whl/") { Ok(()) } else { Err(Failure::refuted(format!("imported {imported}"))) }
    }
}

fn quiet_output(command: &mut Command) -> Result<String, Failure> {
    quiet_output_of(command).map_err(|failure| Failure::refuted(failure.to_string()))
}

/// The one file with this ending.
fn only(directory: &Path, ending: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let found: Vec<_> = entries.filter(|path| path.extension().is_some_and(|extension| extension == ending)).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        other => Err(Failure::refuted(format!("{} files end with .{ending}, not one", other.len()))),
    }
}

/// With the console's compiler: both are checked by the same one.
fn check_typescript() -> Result<(), Failure> {
    tools::install_packages("console packages", "console")?;
    let mut fresh = program("npm", &["run", "--silent", "api:check"]);
    run_timed("generated", fresh.current_dir(root().join("console")))?;
    let compile = |project: &str| program("console/node_modules/.bin/tsc", &["--project", project]);
    run_timed("types", &mut compile(&format!("{TYPESCRIPT}/tests")))?;
    let canary = compile(&format!("{TYPESCRIPT}/tests/canary")).output();
    let canary = canary.map_err(|error| Failure::environment(format!("tsc cannot be started: {error}")))?;
    let said = String::from_utf8_lossy(&canary.stdout);
    if canary.status.success() || !said.contains(CANARY) {
        return Err(Failure::refuted(format!("the compiler no longer finds a wrong use of the types:\n{said}")));
    }
    let packed = quiet_output(program("npm", &["pack", "--dry-run", "--json"]).current_dir(root().join(TYPESCRIPT)))?;
    for name in ["index.d.ts", "openapi.d.ts", "LICENSE", "README.md"] {
        if !packed.contains(&format!("\"path\": \"{name}\"")) {
            return Err(Failure::refuted(format!("the npm package does not contain {name}:\n{packed}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_workspace() {
        let manifest = "[package]\nversion = \"9.9.9\"\n[workspace.package]\nedition = \"2024\"\nversion = \"1.2.3\"\n";
        assert_eq!(workspace_version(manifest), Some("1.2.3"));
        assert_eq!(workspace_version("[package]\nversion = \"9.9.9\"\n"), None);
    }
}
