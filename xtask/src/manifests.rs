//! `cargo xtask manifests`: checks the Kubernetes manifests against the schemas that Kubernetes publishes, strictly,
//! because otherwise a misspelt field would be silently dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{Failure, program, root, run, run_timed, target_dir};
use crate::tools;

/// The package contains the schemas of many versions. The directory is named after the package's own version.
const INSTALLED: &str = "tools/kubernetes-validate-1.37.0";
/// The oldest version that has every field we use, and the newest the package knows.
const VERSIONS: [&str; 2] = ["1.29", "1.37"];

/// How a cluster enforces permits. Its kind is younger.
const EXAMPLE: &str = "examples/enforce/kubernetes/admission-policy.yaml";
const EXAMPLE_VERSIONS: [&str; 2] = ["1.30", "1.37"];

pub(crate) fn check() -> Result<(), Failure> {
    let validate = install_missing()?;
    let directory = root().join("deploy/kubernetes");
    let entries =
        fs::read_dir(&directory).map_err(|error| Failure::environment(format!("{}: {error}", directory.display())))?;
    let mut manifests: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    manifests.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    if manifests.is_empty() {
        return Err(Failure::refuted("there are no manifests in deploy/kubernetes"));
    }
    validated(&validate, &VERSIONS, &manifests)?;
    validated(&validate, &EXAMPLE_VERSIONS, &[root().join(EXAMPLE)])
}

fn validated(validate: &Path, versions: &[&str], manifests: &[PathBuf]) -> Result<(), Failure> {
    for version in versions {
        run(program(&validate.to_string_lossy(), &["--strict", "--quiet", "--kubernetes-version", version])
            .args(manifests))?;
        println!("{} manifest(s) match the schemas of Kubernetes {version}", manifests.len());
    }
    Ok(())
}

/// Installed from the package index into its own directory, each file checked by its hash.
fn install_missing() -> Result<PathBuf, Failure> {
    let directory = target_dir().join(INSTALLED);
    let executable = directory.join("bin/kubernetes-validate");
    if !executable.exists() {
        tools::install_missing_venv()?;
        run_timed("install", program("python3", &["-m", "venv", "--clear"]).arg(&directory))?;
        let mut pip = Command::new(directory.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
        run_timed("install", pip.arg(root().join("xtask/kubernetes-validate.txt")))?;
    }
    Ok(executable)
}
