//! The files as a package installs them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::architecture::Architecture;
use super::materials;
use super::place::{Place, VERSION, at, copy, make_directory, name_of, write};
use crate::step::{Failure, output_of, program, root, run};

pub(super) const MAINTAINER: &str = "The Pilot project <pilot@localhost>";
pub(super) const UNIT: &str = "usr/lib/systemd/system/pilot.service";

/// Files taken unchanged from the repository, and where they go.
const FILES: &[(&str, &str)] = &[
    ("deploy/systemd/pilot.service", UNIT),
    ("deploy/systemd/pilot-work@.service", "usr/lib/systemd/system/pilot-work@.service"),
    ("deploy/systemd/pilot-follow.service", "usr/lib/systemd/system/pilot-follow.service"),
    ("deploy/production-credential-file.toml", "etc/pilot/pilot.toml"),
    ("deploy/debian/copyright", "usr/share/doc/pilot/copyright"),
    ("deploy/debian/lintian-overrides", "usr/share/lintian/overrides/pilot"),
    ("deploy/systemd/sysusers.conf", "usr/lib/sysusers.d/pilot.conf"),
    ("deploy/systemd/port-443.conf", "usr/share/doc/pilot/examples/port-443.conf"),
    ("deploy/systemd/unix-socket.conf", "usr/share/doc/pilot/examples/unix-socket.conf"),
    ("deploy/systemd/load-credential.conf", "usr/share/doc/pilot/examples/load-credential.conf"),
    ("CHANGELOG.md", "usr/share/doc/pilot/CHANGELOG.md"),
    ("docs/reference/configuration.md", "usr/share/doc/pilot/configuration.md"),
    ("docs/reference/metrics.md", "usr/share/doc/pilot/metrics.md"),
    ("deploy/proxy/haproxy.cfg", "usr/share/doc/pilot/examples/proxy/haproxy.cfg"),
    ("deploy/proxy/nginx.conf", "usr/share/doc/pilot/examples/proxy/nginx.conf"),
    ("deploy/proxy/Caddyfile", "usr/share/doc/pilot/examples/proxy/Caddyfile"),
    ("deploy/proxy/envoy.yaml", "usr/share/doc/pilot/examples/proxy/envoy.yaml"),
    ("deploy/proxy/envoy-mesh-secret.yaml", "usr/share/doc/pilot/examples/proxy/envoy-mesh-secret.yaml"),
    ("deploy/signer/pilot-signer-pkcs11", "usr/share/doc/pilot/examples/pilot-signer-pkcs11"),
    ("deploy/observe/prometheus.yml", "usr/share/doc/pilot/examples/prometheus.yml"),
    ("deploy/observe/pilot.rules.yml", "usr/share/doc/pilot/examples/pilot.rules.yml"),
    ("deploy/observe/grafana-dashboard.json", "usr/share/doc/pilot/examples/grafana-dashboard.json"),
];

/// `native` are the same programs for this machine, which write their own pages.
pub(super) fn make(
    place: &Place,
    architecture: Architecture,
    programs: &[PathBuf; 2],
    native: &[PathBuf; 2],
) -> Result<(), Failure> {
    let installed = place.installed(architecture);
    for path in programs {
        copy(path, &installed.join("usr/bin").join(name_of(path)))?;
    }
    for (from, to) in FILES {
        copy(&root().join(from), &installed.join(to))?;
    }
    let operate = root().join("docs/operate");
    for path in pages(&operate)?.into_iter().chain(pages(&operate.join("identity"))?) {
        let to = path.strip_prefix(&operate).unwrap_or(&path);
        copy(&path, &installed.join("usr/share/doc/pilot").join(to))?;
    }
    for path in samples()? {
        copy(&path, &installed.join("usr/share/doc/pilot/examples").join(name_of(&path)))?;
    }
    write(&installed.join("usr/share/doc/pilot/changelog"), &debian_changelog(&place.epoch)?)?;
    make_directory(&installed.join("etc/pilot/secrets"))?;
    let [pilot, verify] = native;
    run(program(&pilot.to_string_lossy(), &["help-pages"]).arg(installed.join("usr/share")))?;
    write(&installed.join("usr/share/man/man1/pilot-verify.1"), &manual_of_verifier(verify)?)?;
    pack_texts(&installed)?;
    set_modes(&installed)
}

/// Adds the lists of what the programs contain, for those who install them.
pub(super) fn add_bills(place: &Place, architecture: Architecture) -> Result<(), Failure> {
    for name in super::build::PROGRAMS {
        let to = place.installed(architecture).join("usr/share/doc/pilot").join(format!("{name}.cdx.json"));
        copy(&place.out.join(materials::file_of(name, architecture)), &to)?;
    }
    Ok(())
}

/// The sample configurations for production, one for each way to identify callers.
pub(super) fn samples() -> Result<Vec<PathBuf>, Failure> {
    files_with(&root().join("deploy"), "toml")
}

/// What operators read: all of it, so that nobody needs this repository at night.
fn pages(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    files_with(directory, "md")
}

fn files_with(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).map_err(|error| at(directory, &error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    paths.sort();
    Ok(paths)
}

/// Debian requires a changelog in its own format; ours is next to it.
fn debian_changelog(epoch: &str) -> Result<String, Failure> {
    let date = output_of(program("date", &["--utc", "--rfc-email"]).arg(format!("--date=@{epoch}")))?;
    Ok(format!(
        "pilot ({VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {}\n",
        date.trim_end()
    ))
}

/// The program's help, word for word: it has one page of options and no commands.
fn manual_of_verifier(verify: &Path) -> Result<String, Failure> {
    let help = output_of(&mut program(&verify.to_string_lossy(), &["--help"]))?;
    let escaped = help.replace('\\', "\\e").replace('-', "\\-");
    // A line that begins with a dot or a quote would be a command.
    let lines: Vec<_> = escaped.lines().map(|line| format!("\\&{line}")).collect();
    Ok(format!(
        ".TH pilot-verify 1 \"\" \"pilot {VERSION}\" Pilot\n.SH NAME\npilot\\-verify \\- checks an evidence bundle of \
         Pilot\n.SH DESCRIPTION\n.nf\n{}\n.fi\n.SH SEE ALSO\n.BR pilot\\-evidence\\-verify (1)\n",
        lines.join("\n")
    ))
}

/// Compresses manual pages and changelogs, without name and time, as Debian requires.
fn pack_texts(installed: &Path) -> Result<(), Failure> {
    let pages = installed.join("usr/share/man/man1");
    let entries = fs::read_dir(&pages).map_err(|error| at(&pages, &error))?;
    let mut gzip = program("gzip", &["--no-name", "--best"]);
    gzip.args(entries.filter_map(|entry| Some(entry.ok()?.path())))
        .arg(installed.join("usr/share/doc/pilot/changelog"));
    run(&mut gzip)
}

/// By kind, not by anyone's umask: programs and directories 0755, the directory for secrets 0700, the rest 0644.
fn set_modes(path: &Path) -> Result<(), Failure> {
    let is_directory = path.is_dir();
    let mode = match () {
        () if path.ends_with("etc/pilot/secrets") => 0o700,
        () if is_directory || path.parent().is_some_and(|parent| parent.ends_with("usr/bin")) => 0o755,
        () => 0o644,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| at(path, &error))?;
    if is_directory {
        for entry in fs::read_dir(path).map_err(|error| at(path, &error))? {
            set_modes(&entry.map_err(|error| at(path, &error))?.path())?;
        }
    }
    Ok(())
}
