//! The archives: for any Linux, for an image, and for Debian.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::architecture::Architecture;
use super::place::{Place, VERSION, copy, make_directory, name_of, versioned, write};
use super::tree;
use crate::step::{Failure, output_of, program, root, run};

/// The service's user inside an image.
const IMAGE_USER: &str = "65532";

/// An archive that is the same whenever and by whomever it is built.
fn tar(place: &Place, directory: &Path, owner: &str) -> Command {
    let mut tar = program("tar", &["--sort=name", "--format=gnu", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", place.epoch)).arg(format!("--owner={owner}")).arg(format!("--group={owner}"));
    tar.arg("--directory").arg(directory);
    tar
}

/// Programs, pages, completions, units and samples, to be installed anywhere.
pub(super) fn tarball(place: &Place, architecture: Architecture) -> Result<(), Failure> {
    let name = versioned("pilot", architecture);
    let (from, to) = (place.installed(architecture), place.stage.join(&name));
    make_directory(&to)?;
    copy_all(&from.join("usr/bin"), &to.join("bin"))?;
    copy_all(&from.join("usr/share"), &to.join("share"))?;
    copy_all(&root().join("deploy"), &to.join("deploy"))?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"] {
        copy(&root().join(file), &to.join(file))?;
    }
    let mut tar = tar(place, &place.stage, "0");
    let archive = place.out.join(format!("{name}.tar.gz"));
    run(tar.arg("--use-compress-program=gzip --no-name --best").arg("--create").arg("--file").arg(archive).arg(&name))
}

fn copy_all(from: &Path, to: &Path) -> Result<(), Failure> {
    run(program("cp", &["--recursive", "--preserve=mode"]).arg(from).arg(to))
}

/// The root of an image. Its recipe takes the one for the processor that is asked for.
pub(super) fn image(place: &Place, architecture: Architecture) -> Result<(), Failure> {
    let name = format!("pilot-image-{}", architecture.debian());
    let tree = place.stage.join(&name);
    copy(&place.installed(architecture).join("usr/bin/pilot"), &tree.join("usr/bin/pilot"))?;
    make_directory(&tree.join("etc/pilot"))?;
    make_directory(&tree.join("var/lib/pilot"))?;
    run(program("chmod", &["0700"]).arg(tree.join("var/lib/pilot")))?;
    let archive = place.stage.join(format!("{name}.tar"));
    run(tar(place, &tree, "0").arg("--create").arg("--file").arg(&archive).args(["etc", "usr"]))?;
    run(tar(place, &tree, IMAGE_USER).arg("--append").arg("--file").arg(&archive).arg("var/lib/pilot"))?;
    run(program("gzip", &["--no-name", "--best"]).arg(&archive))?;
    copy(&archive.with_extension("tar.gz"), &place.out.join(format!("{name}.tar.gz")))?;
    copy(&root().join("deploy/Dockerfile"), &place.out.join("Dockerfile"))
}

/// The Helm chart, as `helm package` would pack it.
pub(super) fn chart(place: &Place) -> Result<(), Failure> {
    let archive = place.out.join(format!("pilot-chart-{VERSION}.tgz"));
    let mut tar = tar(place, &root().join("deploy/helm"), "0");
    // Not by the builder's umask.
    tar.arg("--mode=u=rwX,go=rX").arg("--use-compress-program=gzip --no-name --best");
    run(tar.arg("--create").arg("--file").arg(archive).arg("pilot"))
}

/// Builds the package from the tree with dpkg's own tool.
pub(super) fn debian(place: &Place, architecture: Architecture, compression: &str) -> Result<PathBuf, Failure> {
    let tree = place.installed(architecture);
    let about = tree.join("DEBIAN");
    make_directory(&about)?;
    let kilobytes = output_of(program("du", &["--apparent-size", "--summarize", "--block-size=1024"]).arg(&tree))?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0").to_owned();
    write(&about.join("control"), &control(architecture, &kilobytes))?;
    write(&about.join("conffiles"), "/etc/pilot/pilot.toml\n")?;
    let mut sums = program("sh", &["-c", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"]);
    write(&about.join("md5sums"), &output_of(sums.current_dir(&tree))?)?;
    for script in ["postinst", "prerm", "postrm"] {
        copy(&root().join("deploy/debian").join(script), &about.join(script))?;
    }
    run(program("chmod", &["0755"]).args(["postinst", "prerm", "postrm"].map(|script| about.join(script))))?;
    run(program("chmod", &["0644"]).args(["control", "conffiles", "md5sums"].map(|file| about.join(file))))?;
    let package = place.out.join(format!("pilot_{VERSION}_{}.deb", architecture.debian()));
    let mut build = program("dpkg-deb", &["--root-owner-group", &format!("-Z{compression}"), "--build"]);
    run(build.arg(&tree).arg(&package).env("SOURCE_DATE_EPOCH", &place.epoch))?;
    Ok(package)
}

/// lintian checks it as Debian's archive would.
pub(super) fn inspect(package: &Path) -> Result<(), Failure> {
    run(program("lintian", &["--fail-on", "error,warning", "--allow-root"]).arg(package))?;
    print_contents(package)
}

fn control(architecture: Architecture, kilobytes: &str) -> String {
    format!(
        "Package: pilot\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {}\n\
         Installed-Size: {kilobytes}\nSection: admin\nPriority: optional\nRecommends: ca-certificates\n\
         Description: workflow service for operations nobody should carry out alone\n \
         One person proposes an operation, another approves, a third clears, a fourth\n \
         carries out, and a fifth can check all of it later without trusting the\n \
         others. Every step is an entry in a signed ledger.\n .\n \
         The service, its tools, the operator console and the verifier of evidence.\n \
         Installing the package does not start the service: configure it first.\n",
        architecture.debian(),
        tree::MAINTAINER
    )
}

fn print_contents(package: &Path) -> Result<(), Failure> {
    let listing = output_of(program("dpkg-deb", &["--contents"]).arg(package))?;
    let is_page = |line: &&str| !line.contains("/man1/pilot-");
    println!("{} (manual pages of subcommands left out):", name_of(package));
    for line in listing.lines().filter(is_page) {
        println!("  {line}");
    }
    let samples = tree::samples()?.len();
    println!("  {} files, {samples} of them sample configurations", listing.lines().count());
    Ok(())
}
