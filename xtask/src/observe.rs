//! `cargo xtask observe`: checks what operators watch the service with, by Prometheus's own tool: the alerting rules,
//! their unit tests, the example configuration, and every query of the dashboard; and the dashboard by Grafana's types.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apt;
use crate::step::{Failure, program, root, run, run_timed, target_dir};
use crate::tools::{self, DPKG_DEB};

const DIRECTORY: &str = "deploy/observe";
const TYPES: &str = "xtask/grafana";
const DASHBOARD: &str = "grafana-dashboard.json";

pub(crate) fn check() -> Result<(), Failure> {
    let promtool = install_missing()?;
    let directory = root().join(DIRECTORY);
    for arguments in [
        ["check", "rules", "pilot.rules.yml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "pilot.rules.test.yml"],
    ] {
        run(program(&promtool, &arguments).current_dir(&directory))?;
    }
    check_queries(&promtool, &directory.join(DASHBOARD))?;
    check_types(&directory.join(DASHBOARD))
}

/// With the types that Grafana publishes of its dashboards.
fn check_types(dashboard: &Path) -> Result<(), Failure> {
    tools::install_packages("Grafana's types", TYPES)?;
    let directory = root().join(TYPES);
    let failed = |error: std::io::Error| Failure::environment(format!("{}: {error}", directory.display()));
    let head = fs::read_to_string(directory.join("head.ts")).map_err(failed)?;
    let text = fs::read_to_string(dashboard).map_err(failed)?;
    let checked = format!("{head}\nexport const dashboard: Plain<Checked> = {text}");
    fs::write(directory.join("dashboard.ts"), checked).map_err(failed)?;
    run(program("node_modules/.bin/tsc", &["--project", "."]).current_dir(&directory))
}

/// As rules, because the tool reads nothing else. A string of JSON is one of YAML, too.
fn check_queries(promtool: &str, dashboard: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| Failure::environment(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(dashboard).map_err(|error| failed(dashboard, error))?;
    let queries = queries(&text);
    if queries.is_empty() {
        return Err(Failure::refuted(format!("{} has no queries", dashboard.display())));
    }
    let rule = |(number, query)| format!("      - record: query_{number}\n        expr: {query}\n");
    let rules: Vec<_> = (1..).zip(&queries).map(rule).collect();
    let rules = format!("groups:\n  - name: dashboard\n    rules:\n{}", rules.concat());
    let path = target_dir().join("dashboard.rules.yml");
    fs::write(&path, rules).map_err(|error| failed(&path, error))?;
    run(program(promtool, &["check", "rules"]).arg(&path))
}

/// The strings of all `expr` members, with what Grafana would put in place of its own variables.
fn queries(dashboard: &str) -> Vec<String> {
    let found = dashboard.lines().filter_map(|line| line.trim().strip_prefix("\"expr\": "));
    let query =
        |text: &str| text.trim_end_matches(',').replace("$__rate_interval", "5m").replace("$installation", ".*");
    found.map(query).collect()
}

/// Debian's package starts a server when it is installed, so only the tool is taken out of it.
fn install_missing() -> Result<String, Failure> {
    if tools::is_installed("promtool") {
        return Ok("promtool".to_owned());
    }
    let home: PathBuf = target_dir().join("tools/prometheus");
    let executable = home.join("promtool");
    if !executable.exists() {
        if !tools::is_installed("apt-get") {
            return Err(Failure::environment("promtool is missing; install by hand: prometheus"));
        }
        tools::install_missing(&[DPKG_DEB])?;
        fs::create_dir_all(&home).map_err(|error| Failure::environment(format!("{}: {error}", home.display())))?;
        apt::update()?;
        // The last step gives it its name, so that half of it is never used.
        let take = "rm -rf parts && mkdir parts && apt-get --quiet=2 download prometheus && \
                    dpkg-deb --extract prometheus_*.deb parts && mv parts/usr/bin/promtool . && rm -r parts *.deb";
        run_timed("install", program("sh", &["-c", take]).current_dir(&home))?;
    }
    Ok(executable.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_the_string_it_is() {
        let dashboard =
            "  \"title\": \"expr\",\n  \"expr\": \"rate(a{b=~\\\"$installation\\\"}[$__rate_interval])\",\n";
        assert_eq!(queries(dashboard), [r#""rate(a{b=~\".*\"}[5m])""#]);
    }
}
