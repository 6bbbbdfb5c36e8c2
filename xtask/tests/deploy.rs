//! What is handed to those who run the service keeps what it promises. `cargo xtask dist` asks systemd itself.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn deploy(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    fs::read_to_string(path).unwrap()
}

/// The lines of a unit that mean something.
fn settings(unit: &str) -> Vec<&str> {
    unit.lines().filter(|line| line.contains('=') && !line.starts_with('#')).collect()
}

#[test]
fn the_unit_keeps_its_hardening() {
    let unit = deploy("systemd/pilot.service");
    let settings = settings(&unit);
    let missing: Vec<_> = [
        "Type=notify",
        "NotifyAccess=main",
        "RestartPreventExitStatus=2",
        "LimitCORE=0",
        "User=pilot",
        "Group=pilot",
        "StateDirectoryMode=0700",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged @resources @setuid @keyring @memlock",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "MemoryDenyWriteExecute=yes",
        "LockPersonality=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "ProtectProc=invisible",
        "ProcSubset=pid",
        "ProtectClock=yes",
        "ProtectHostname=yes",
        "ProtectControlGroups=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "PrivateDevices=yes",
        "PrivateMounts=yes",
        "PrivateTmp=yes",
        "PrivateUsers=yes",
    ]
    .into_iter()
    .filter(|line| !settings.contains(line))
    .collect();
    assert!(missing.is_empty(), "deploy/systemd/pilot.service has lost {missing:?}");
}

#[test]
fn the_unit_leaves_enough_time_to_finish_requests_and_to_be_heard() {
    let unit = deploy("systemd/pilot.service");
    let seconds = |name: &str| -> u32 {
        let value = settings(&unit).into_iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap();
        value.parse().unwrap()
    };
    assert!(seconds("TimeoutStopSec") > 30, "requests under way have 30 s");
    assert!(seconds("WatchdogSec") >= 10, "a busy machine is no dead service");
    assert!(seconds("LimitNOFILE") > 10_000, "a file for each connection, and more for the store");
}

#[test]
fn unit_and_sample_agree_on_where_secrets_and_data_are() {
    let unit = deploy("systemd/pilot.service");
    let sample = deploy("production-credential-file.toml");
    assert!(unit.contains("\nStateDirectory=pilot\n") && sample.contains("\ndata_dir = \"/var/lib/pilot\"\n"));
    assert!(unit.contains("\nExecStart=/usr/bin/pilot serve --config /etc/pilot/pilot.toml\n"));
    for name in ["credentials.json", "role-map.json", "tls.pem", "tls.key"] {
        assert!(sample.contains(&format!("= \"/etc/pilot/secrets/{name}\"")), "{name}");
    }
    assert!(deploy("systemd/sysusers.conf").contains("\nu pilot - \"Pilot workflow service\" /var/lib/pilot\n"));
}

/// `cargo xtask manifests` holds the whole of it against the schemas that Kubernetes publishes.
#[test]
fn the_pod_reads_its_secrets_by_the_one_group_it_is_in() {
    let manifest = deploy("kubernetes/pilot.yaml");
    let lines: Vec<_> = manifest.lines().map(str::trim).collect();
    for line in [
        "runAsNonRoot: true",
        "runAsUser: 65532",
        "runAsGroup: 65532",
        "fsGroup: 65532",
        "fsGroupChangePolicy: OnRootMismatch",
        "defaultMode: 0440",
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
        "capabilities: {drop: [ALL]}",
        "replicas: 1",
        "terminationGracePeriodSeconds: 45",
        "automountServiceAccountToken: false",
        "kind: StatefulSet",
        "kind: NetworkPolicy",
    ] {
        assert!(lines.contains(&line), "{line}");
    }
    let version = env!("CARGO_PKG_VERSION");
    assert!(lines.contains(&&*format!("image: pilot:{version}")), "the image is this version's");
}

#[test]
fn the_chart_is_of_this_version() {
    let chart = deploy("helm/pilot/Chart.yaml");
    let version = env!("CARGO_PKG_VERSION");
    assert!(chart.contains(&format!("\nversion: {version}\n")), "{chart}");
    assert!(chart.contains(&format!("\nappVersion: \"{version}\"\n")), "{chart}");
}

/// Helm reads nothing outside of a chart, so it has a copy.
#[test]
fn the_alerts_in_the_chart_are_those_of_deploy_observe() {
    let is_same = deploy("observe/pilot.rules.yml") == deploy("helm/pilot/files/pilot.rules.yml");
    assert!(is_same, "run cp deploy/observe/pilot.rules.yml deploy/helm/pilot/files/");
}

#[test]
fn every_address_of_a_sample_is_one_address() {
    for name in ["production.toml", "production-credential-file.toml", "production-mutual-tls.toml"] {
        let sample = deploy(name);
        let trusted: Vec<_> = sample.lines().filter(|line| line.contains("trusted ")).collect();
        assert_eq!(trusted, ["# trusted          = [\"127.0.0.1\"]"], "{name}");
        assert!(sample.contains("# mesh_secret_file = \""), "{name}: a mesh is known by more than its address");
    }
}

#[test]
fn nothing_is_started_by_an_installation_and_nothing_is_deleted_by_a_removal() {
    for script in ["postinst", "prerm", "postrm"] {
        let text = deploy(&format!("debian/{script}"));
        assert!(text.starts_with("#!/bin/sh\n") && text.contains("\nset -e\n"), "{script}");
        let commands: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for word in ["systemctl --system start", "restart", "enable", "rm -", "deluser", "userdel"] {
            assert!(!commands.iter().any(|line| line.contains(word)), "{script} says {word}");
        }
    }
}

#[test]
fn the_image_holds_no_shell_and_runs_as_nobody_of_the_host() {
    let recipe = deploy("Dockerfile");
    let words: Vec<_> = recipe.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(words.first(), Some(&"FROM scratch"));
    assert!(words.contains(&"USER 65532:65532"));
    assert!(!words.iter().any(|line| line.starts_with("RUN ")), "there is nothing in the image to run");
}

/// The commands under a heading of the installation page that begin with one of these words, as one script.
fn commands(heading: &str, programs: [&str; 2]) -> String {
    let page = deploy("../docs/operate/install.md");
    let section = page.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    let commands = section.filter_map(|line| line.strip_prefix("$ "));
    let chosen: Vec<_> = commands.filter(|command| programs.iter().any(|name| command.starts_with(name))).collect();
    assert_eq!(chosen.len(), programs.len(), "{chosen:?}");
    chosen.join("\n")
}

/// Two files and their checksums in a directory, and the keys of two people next to it.
struct Release(PathBuf);

impl Release {
    fn make(name: &str) -> Release {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace(' ', "-"));
        let _ = fs::remove_dir_all(&directory);
        let release = Release(directory.join("files"));
        fs::create_dir_all(&release.0).unwrap();
        assert!(release.run(
            "printf program > pilot.deb; printf '{}' > provenance.json; sha256sum pilot.deb provenance.json > SHA256SUMS
             for key in ours theirs; do ssh-keygen -q -t ed25519 -N '' -C release@pilot.example -f ../$key; done"
        ));
        release
    }

    /// With the line of those who sign, which comes another way than the files.
    fn signed(name: &str) -> Release {
        let release = Release::make(name);
        let line = commands("## Check what you downloaded", ["echo", "cargo xtask dist --sign-key"]);
        let line = line.lines().next().unwrap().replace("release.key.pub", "../ours.pub");
        assert!(release.run(&format!("xtask dist sign . --sign-key ../ours\n{line}")), "{name}");
        release
    }

    fn run(&self, script: &str) -> bool {
        let program = env!("CARGO_BIN_EXE_xtask");
        let script = format!("set -eu\nxtask() {{ '{program}' \"$@\"; }}\n{script}");
        Command::new("sh").args(["-c", &script]).current_dir(&self.0).output().unwrap().status.success()
    }

    fn is_verified(&self) -> bool {
        self.run(&commands("## Check what you downloaded", ["ssh-keygen -Y verify", "sha256sum"]))
    }
}

#[test]
fn what_was_signed_is_verified_with_the_commands_of_the_page() {
    let release = Release::signed("signed");
    assert!(release.is_verified());
    assert!(release.run("rm pilot.deb") && release.is_verified(), "someone who takes one file can check that one");
}

#[test]
fn what_was_changed_or_signed_by_others_is_refused() {
    for (name, change) in [
        ("a changed file", "printf other > pilot.deb"),
        ("changed checksums", "printf other > pilot.deb; sha256sum pilot.deb provenance.json > SHA256SUMS"),
        ("another key", "mv allowed_signers ..; xtask dist sign . --sign-key ../theirs; mv ../allowed_signers ."),
        ("another purpose", "rm SHA256SUMS.sig; ssh-keygen -q -Y sign -n file -f ../ours SHA256SUMS"),
        ("no signature", "rm SHA256SUMS.sig"),
    ] {
        let release = Release::signed(name);
        assert!(release.is_verified(), "{name}: before");
        assert!(release.run(change), "{name}");
        assert!(!release.is_verified(), "{name}");
    }
}

#[test]
fn checksums_that_are_wrong_or_leave_a_file_out_are_not_signed() {
    for (name, change) in [
        ("a wrong sum", "printf other > pilot.deb"),
        ("a file more", "printf more > more.deb"),
        ("not a key", "printf no > ../ours"),
        ("no key", "rm ../ours"),
    ] {
        let release = Release::make(name);
        assert!(release.run(change) && !release.run("xtask dist sign . --sign-key ../ours"), "{name}");
        assert!(!release.0.join("SHA256SUMS.sig").exists(), "{name}");
    }
}
