//! `cargo xtask manifests`: checks the Kubernetes manifests, and what the Helm chart makes, against the schemas that
//! Kubernetes publishes, strictly, because otherwise a misspelt field would be silently dropped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::step::{Failure, program, root, run, target_dir};
use crate::tools;

mod chart;

use chart::at;

/// The package contains the schemas of many versions. The directory is named after the package's own version.
const INSTALLED: &str = "tools/kubernetes-validate-1.37.0";
/// The oldest version that has every field we use, and the newest the package knows.
const VERSIONS: [&str; 2] = ["1.29", "1.37"];

/// How a cluster enforces permits. Its kind is younger.
const EXAMPLE: &str = "examples/enforce/kubernetes/admission-policy.yaml";
const EXAMPLE_VERSIONS: [&str; 2] = ["1.30", "1.37"];

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] => check(),
        ["--write"] => chart::write_manifest(),
        _ => Err(Failure::usage("usage: cargo xtask manifests [--write]")),
    }
}

pub(crate) fn check() -> Result<(), Failure> {
    let tools = tools::install_missing_python(INSTALLED, "xtask/kubernetes-validate.txt")?;
    let validate = tools.join("bin/kubernetes-validate");
    let directory = root().join("deploy/kubernetes");
    let entries = fs::read_dir(&directory).map_err(|error| at(&directory, &error))?;
    let mut manifests: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    manifests.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    if manifests.is_empty() {
        return Err(Failure::refuted("there are no manifests in deploy/kubernetes"));
    }
    validated(&validate, &VERSIONS, &manifests)?;
    validated(&validate, &EXAMPLE_VERSIONS, &[root().join(EXAMPLE)])?;
    let rendered = chart::check(&tools.join("bin/python3"), &target_dir().join("chart"))?;
    validated(&validate, &VERSIONS, &rendered)
}

fn validated(validate: &Path, versions: &[&str], manifests: &[PathBuf]) -> Result<(), Failure> {
    for version in versions {
        run(program(&validate.to_string_lossy(), &["--strict", "--quiet", "--kubernetes-version", version])
            .args(manifests))?;
        println!("{} manifest(s) match the schemas of Kubernetes {version}", manifests.len());
    }
    Ok(())
}
