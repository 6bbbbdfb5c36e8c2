//! `cargo xtask pages`: runs what the documentation tells an operator to type, word for word, on machines made for it:
//! systemd as process 1, and the package as `cargo xtask dist` packs it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::distribution;
use crate::programs;
use crate::step::{Failure, root, target_dir};
use crate::tools::{self, CURL, DPKG_DEB, IP, OPENSSL, SYSTEMD, TAR, UNSHARE};

mod blocks;
mod debian;
mod machine;

use machine::{Base, Machine};

const INSTALL: &str = "docs/operate/install.md";
const PRODUCTION: &str = "docs/operate/production.md";
const BACKUP: &str = "docs/operate/backup.md";
const ROTATION: &str = "docs/operate/rotation.md";
const AGENT: &str = "docs/operate/agent.md";
const FROM_PILOT: &str = "docs/operate/from-pilot.md";
const SIGNER: &str = "docs/operate/signer.md";
const PROXIES: &str = "docs/operate/proxies.md";
const PAGES: [&str; 8] = [INSTALL, PRODUCTION, BACKUP, ROTATION, AGENT, FROM_PILOT, SIGNER, PROXIES];

const ROLE_MAP: &str = r#"{"schema_version":1,"approved_by":["Ina","Jo"],"actors":[
{"actor_id":"ana","role":"initiator"},{"actor_id":"ben","role":"approver"},{"actor_id":"sam","role":"security_admin"},
{"actor_id":"eli","role":"executor"}]}"#;
/// How earlier packages ran the service.
const FORMER_UNIT: &str = "[Service]\nType=notify\nExecStart=/usr/bin/pilot serve --config /etc/pilot/pilot.toml\n\
    LoadCredential=secret:/etc/pilot/secrets\nDynamicUser=yes\nUser=pilot\nStateDirectory=pilot\n\
    StateDirectoryMode=0700\nUMask=0077\nPrivateUsers=yes\n[Install]\nWantedBy=multi-user.target\n";
const SESSION: &str = "pilot session --url https://pilot.example:7450 --ca-file tls.pem --token-file ana.token";

/// Over this machine's files, which takes seconds.
pub(crate) fn run_all() -> Result<(), Failure> {
    run_on(&Base::Here)
}

/// Over a Debian that was just installed, which has nothing of this machine.
pub(crate) fn run_fresh() -> Result<(), Failure> {
    run_on(&Base::Debian(debian::root()?))
}

fn run_on(base: &Base) -> Result<(), Failure> {
    tools::install_missing(&[CURL, OPENSSL, DPKG_DEB, SYSTEMD, UNSHARE, IP, TAR])?;
    tools::install_missing_token()?;
    programs::build()?;
    let package = distribution::quick_package(&target_dir().join("debug"))?;
    let brought = Brought::make("new", &package)?;
    let carried = first_machine(base, &brought)?;
    second_machine(base, &Brought::make("carried", &package)?, &carried)?;
    converted_machine(base, &brought)?;
    signer_machine(base, &brought)?;
    upgraded_machine("upgraded-running", base, &brought, "true")?;
    upgraded_machine("upgraded-stopped", base, &brought, "systemctl stop pilot")?;
    older_machine(base, &brought)?;
    machine_with_socket(base, &brought)?;
    every_block_was_run()?;
    print_newcomers_times()
}

/// What an operator has before the first command.
struct Brought(PathBuf);

impl Brought {
    fn make(name: &str, package: &Path) -> Result<Brought, Failure> {
        let directory = target_dir().join("pages/brought").join(name);
        let failed = |error: std::io::Error| Failure::environment(format!("{}: {error}", directory.display()));
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(failed)?;
        }
        fs::create_dir_all(&directory).map_err(failed)?;
        fs::write(directory.join("role-map.json"), ROLE_MAP).map_err(failed)?;
        copy_older(&directory.join("older")).map_err(failed)?;
        let name = package.file_name().unwrap_or_default();
        fs::hard_link(package, directory.join(name)).map_err(failed)?;
        Ok(Brought(directory))
    }
}

/// An installation of an earlier version.
fn copy_older(to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for file in fs::read_dir(root().join("crates/pilot/tests/fixtures/ledger-of-schema-2"))? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

fn page(machine: &Machine, page: &str, name: &str) -> Result<(), Failure> {
    page_with(machine, page, name, "")
}

/// Runs a block after setting what the page leaves to the reader.
fn page_with(machine: &Machine, page: &str, name: &str, before: &str) -> Result<(), Failure> {
    let script = blocks::script(page, name)?;
    // A person types more slowly than systemd's limit of five starts in ten seconds.
    let pause = "systemctl reset-failed";
    machine.run(&format!("{page}, {name}"), &format!("{pause}\n{before}\n{script}")).map(drop)
}

/// Install, back up, restore, erase and rotate on one machine. Returns what an operator keeps elsewhere.
fn first_machine(base: &Base, brought: &Brought) -> Result<PathBuf, Failure> {
    let machine = Machine::boot("first", base, &brought.0)?;
    page(&machine, PRODUCTION, "certificate")?;
    page(&machine, INSTALL, "package")?;
    page(&machine, INSTALL, "first look")?;
    let name =
        "test \"$(runuser -u pilot -- pilot log key --config /etc/pilot/pilot.toml | cut -d+ -f1)\" = log.example.org";
    machine.run("the log has the name that was chosen", name)?;
    page(&machine, INSTALL, "logging")?;
    machine.run("another certificate", NEW_CERTIFICATE)?;
    page(&machine, PRODUCTION, "renewal")?;
    machine.run("the new certificate is used, without a restart", RENEWED)?;
    let item = machine.run("an item that has ended", ENDED)?;
    let item = item.lines().rev().find_map(|line| line.strip_prefix("item=")).unwrap_or_default().to_owned();
    page(&machine, BACKUP, "backup")?;
    machine.run("what is kept elsewhere", KEEP)?;
    let carried = brought.0.with_file_name("carried.tar.b64");
    let packed = machine.run("carrying it away", "set +x; tar -cC / srv/pages/kept var/backups/pilot | base64 -w0")?;
    fs::write(&carried, packed.lines().last().unwrap_or_default())
        .map_err(|error| Failure::environment(format!("{}: {error}", carried.display())))?;
    page(&machine, BACKUP, "restore")?;
    machine.run("who am I after the restore", SESSION)?;
    page_with(&machine, BACKUP, "erase", &format!("ITEM={item}"))?;
    machine.run("who am I after the erasure", SESSION)?;
    page_with(&machine, ROTATION, "rotation", "export PILOT_URL=https://pilot.example:7450 PILOT_CA_FILE=tls.pem")?;
    machine.run("the record lies with the data", "test -s /var/lib/pilot/rotation-record.jsonl")?;
    machine.run("everything belongs to whom it should", OWNERS)?;
    machine.run("people and a command for the agent", PEOPLE)?;
    page(&machine, AGENT, "agent")?;
    machine.run("an item that the agent executes", EXECUTED)?;
    Ok(carried)
}

/// One that expires later, so that the two can be told apart; the old file is what the clients trust.
const NEW_CERTIFICATE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 60 -subj /CN=pilot \
    -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:pilot.example -keyout new.key -out new.pem";
const RENEWED: &str = "want=$(openssl x509 -in new.pem -noout -fingerprint)\n\
    for try in $(seq 100); do\n\
    shown=$(openssl s_client -connect pilot.example:7450 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint)\n\
    test \"$shown\" = \"$want\" && break; sleep 0.1; done\n\
    test \"$shown\" = \"$want\"; cp new.pem tls.pem; cp new.key tls.key\n\
    test \"$(systemctl show -P NRestarts pilot)\" = 0";

const ENDED: &str = "export PILOT_URL=https://pilot.example:7450 PILOT_CA_FILE=tls.pem; echo '{\"purpose\":\"p\"}' > draft.json\n\
    id=$(pilot item new --token-file ana.token --title t --payload draft.json --fields id)\n\
    pilot item act $id withdraw --token-file ana.token; echo \"item=$id\"";

/// Nothing may happen after it, or the backup would be out of date.
const KEEP: &str = "systemctl stop pilot; mkdir -m 700 kept\n\
    cp -p /etc/pilot/secrets/*.json tls.pem tls.key ana.token /var/lib/pilot/log.key /var/lib/pilot/log.checkpoint kept";

const PEOPLE: &str = "printf '#!/bin/sh\\ncat /proc/self/cgroup\\n' > /usr/local/bin/deploy; chmod 755 /usr/local/bin/deploy\n\
    for who in ben:approver sam:security_admin; do\n\
    pilot credential new --config /etc/pilot/pilot.toml --actor ${who%:*} --role ${who#*:} --token-out ${who%:*}.new; done";

/// The agent's command prints its control group, which must be its own.
const EXECUTED: &str = "export PILOT_URL=https://pilot.example:7450 PILOT_CA_FILE=tls.pem\n\
    printf '{\"purpose\":\"p\",\"operation\":\"deploy\",\"risk\":\"low\",\"rollback_plan\":\"r\"}' > payload.json\n\
    item=$(pilot item new --token-file ana.new --title t --payload payload.json --submit --fields id)\n\
    digest=$(pilot item show $item --token-file ana.new --fields content_digest)\n\
    pilot item act $item approve --digest $digest --token-file ben.new\n\
    pilot item act $item clear --digest $digest --not-after 1h --token-file sam.new\n\
    for try in $(seq 300); do\n\
    state=$(pilot item show $item --token-file ana.new --fields state); test $state = succeeded && break; sleep 0.1; done\n\
    test $state = succeeded || { systemctl status pilot-work@deploy; exit 1; }\n\
    grep pilot-work@deploy.service/pilot-$item.1 /var/lib/pilot-work/deploy/$item.1/output.txt\n\
    systemctl stop pilot-work@deploy";

/// No file of root's among the service's data, and none of the service's among root's secrets.
const OWNERS: &str = "test -z \"$(find /var/lib/pilot ! -user pilot)\"\n\
    test -z \"$(find /etc/pilot -type f ! -user root)\"\n\
    test \"$(stat -c '%U:%G %a' /etc/pilot/secrets/credentials.json)\" = 'root:pilot 640'";

/// A fresh machine with only the package and what was kept.
fn second_machine(base: &Base, brought: &Brought, carried: &Path) -> Result<(), Failure> {
    fs::copy(carried, brought.0.join("carried.tar.b64"))
        .map_err(|error| Failure::environment(format!("{}: {error}", carried.display())))?;
    let machine = Machine::boot("second", base, &brought.0)?;
    let unpack = "base64 -d carried.tar.b64 | tar -xC / && mkdir carried && mv /var/backups/pilot/* carried/";
    machine.run("what was carried here", unpack)?;
    page(&machine, BACKUP, "new machine")?;
    machine.run(
        "the token of the first machine",
        &SESSION.replace(" tls.pem", " kept/tls.pem").replace("ana", "kept/ana"),
    )?;
    machine.run("everything belongs to whom it should", OWNERS)?;
    page(&machine, BACKUP, "loss")?;
    machine.run(
        "the log goes on under a new name, and says why",
        "runuser -u pilot -- pilot log key --config /etc/pilot/pilot.toml | grep '^log.example.org.r2+'\n\
         runuser -u pilot -- pilot log fsck --config /etc/pilot/pilot.toml",
    )?;
    let purged = "dpkg --purge pilot; test ! -e /etc/pilot/pilot.toml\n\
        test -s /var/lib/pilot/pilot.db; test -s /etc/pilot/secrets/credentials.json; grep '^pilot:' /etc/passwd";
    machine.run("purging keeps the ledger, the secrets and the user", purged).map(drop)
}

/// A pilot that was installed by hand becomes production, and back, and production again. Each back-out is run, and its
/// step once more.
fn converted_machine(base: &Base, brought: &Brought) -> Result<(), Failure> {
    let machine = Machine::boot("converted", base, &brought.0)?;
    page(&machine, PRODUCTION, "certificate")?;
    machine.run("a pilot, installed by hand", PILOT)?;
    page(&machine, FROM_PILOT, "keep")?;
    for step in ["step 1", "step 2", "step 3"] {
        page(&machine, FROM_PILOT, step)?;
        page(&machine, FROM_PILOT, &format!("back out of {step}"))?;
        machine.run("step by step", SAME)?;
        match step {
            // The steps add to files, so those that were changed come back as they were.
            "step 1" => machine.run(
                "once more",
                "cd /var/lib/pilot/house; cp -p pilot.toml.step1 pilot.toml; systemctl restart pilot",
            )?,
            "step 2" => machine.run(
                "once more",
                "cd /var/lib/pilot/house; cp -p pilot.toml.step2 pilot.toml\n\
                 cp -p credentials.json.step2 credentials.json; systemctl restart pilot",
            )?,
            _ => String::new(),
        };
    }
    page(&machine, FROM_PILOT, "step 3")?;
    machine.run("the same log, token and entries as before", SAME).map(drop)
}

const PILOT: &str = "dpkg-deb --extract pilot_*_amd64.deb former; install former/usr/bin/pilot /usr/local/bin/pilot\n\
    useradd --system --home-dir /var/lib/pilot --create-home --shell /usr/sbin/nologin pilot\n\
    runuser -u pilot -- pilot init /var/lib/pilot/house --log-name log.example.org\n\
    install -o pilot -g pilot -m 600 role-map.json /var/lib/pilot/house/role-map.json\n\
    install -d -o pilot -m 700 /var/lib/pilot/tokens\n\
    for who in ana:initiator sam:security_admin; do runuser -u pilot -- pilot credential new \
    --config /var/lib/pilot/house/pilot.toml --actor ${who%:*} --role ${who#*:} --token-out /var/lib/pilot/tokens/${who%:*}; done\n\
    cp /var/lib/pilot/tokens/ana ana.token\n\
    printf '[Service]\\nType=notify\\nUser=pilot\\nExecStart=/usr/local/bin/pilot serve --config /var/lib/pilot/house/pilot.toml\\n' \
    > /etc/systemd/system/pilot.service\n\
    systemctl daemon-reload; systemctl start pilot\n\
    echo '{\"purpose\":\"p\"}' > draft.json\n\
    pilot item new --url http://127.0.0.1:7450 --token-file ana.token --title kept --payload draft.json --fields id > kept.id\n\
    cp /var/lib/pilot/house/data/log.key former.key";

/// The item of the pilot is there, under the same key, for the same token.
const SAME: &str = "cmp former.key /var/lib/pilot/house/data/log.key\n\
    if grep -q '^\\[tls\\]' /var/lib/pilot/house/pilot.toml; then export PILOT_URL=https://pilot.example:7450 PILOT_CA_FILE=tls.pem\n\
    else export PILOT_URL=http://127.0.0.1:7450; fi\n\
    test \"$(pilot item show $(cat kept.id) --token-file ana.token --fields title)\" = kept\n\
    runuser -u pilot -- pilot log fsck --config /var/lib/pilot/house/pilot.toml";

/// The log's key moves into a token, and its file goes.
fn signer_machine(base: &Base, brought: &Brought) -> Result<(), Failure> {
    let machine = Machine::boot("signer", base, &brought.0)?;
    page(&machine, PRODUCTION, "certificate")?;
    page(&machine, INSTALL, "package")?;
    machine.run(
        "the key before",
        "runuser -u pilot -- pilot log key --config /etc/pilot/pilot.toml > before.key; cat before.key",
    )?;
    for block in ["token", "section", "remove"] {
        page(&machine, SIGNER, block)?;
        machine.run("an entry under the same key", SIGNED)?;
    }
    Ok(())
}

const SIGNED: &str = "export PILOT_URL=https://pilot.example:7450 PILOT_CA_FILE=tls.pem; echo '{\"purpose\":\"p\"}' > draft.json\n\
    pilot item new --token-file ana.token --title t --payload draft.json --fields id\n\
    runuser -u pilot -- pilot log key --config /etc/pilot/pilot.toml | cmp - before.key\n\
    pilot log checkpoint --token-file ana.token --key \"$(cat before.key)\"\n\
    runuser -u pilot -- pilot log fsck --config /etc/pilot/pilot.toml";

/// A service as earlier packages ran it, upgraded while it runs or after it was stopped. Ledger, key and tokens stay.
fn upgraded_machine(name: &'static str, base: &Base, brought: &Brought, before: &str) -> Result<(), Failure> {
    let machine = Machine::boot(name, base, &brought.0)?;
    page(&machine, PRODUCTION, "certificate")?;
    let former = format!(
        "dpkg-deb --extract pilot_*_amd64.deb former; install former/usr/bin/pilot /usr/bin/pilot\n\
         install -d -m 700 /etc/pilot/secrets\n\
         install -m 600 role-map.json tls.pem tls.key /etc/pilot/secrets/\n\
         sed 's,/etc/pilot/secrets/,/run/credentials/pilot.service/secret_,' former/etc/pilot/pilot.toml > /etc/pilot/pilot.toml\n\
         pilot credential new --file /etc/pilot/secrets/credentials.json --schema-version 2 --actor ana --role initiator \
         --token-out ana.token\n\
         printf '{FORMER_UNIT}' > /lib/systemd/system/pilot.service\n\
         systemctl daemon-reload; systemctl start pilot; {SESSION}\n\
         test -L /var/lib/pilot; cp /var/lib/private/pilot/log.key former.key; ! grep '^pilot:' /etc/passwd"
    );
    machine.run("a service of a former package", &former)?;
    machine.run("before the upgrade", before)?;
    machine.run("dpkg --install", "dpkg --install --force-confold pilot_*_amd64.deb")?;
    machine.run("the restart", &format!("systemctl restart pilot; {SESSION}"))?;
    machine.run(
        "ledger and key are where they were",
        "test ! -L /var/lib/pilot; test ! -e /var/lib/private/pilot; cmp former.key /var/lib/pilot/log.key\n\
         test -z \"$(find /var/lib/pilot ! -user pilot)\"; grep '^pilot:' /etc/passwd\n\
         runuser -u pilot -- pilot log fsck --config /etc/pilot/pilot.toml",
    )?;
    Ok(())
}

/// The ledger that an earlier version wrote, under this one: its key, items and revocations stay.
fn older_machine(base: &Base, brought: &Brought) -> Result<(), Failure> {
    let machine = Machine::boot("older", base, &brought.0)?;
    page(&machine, PRODUCTION, "certificate")?;
    machine.run("a ledger of an earlier version", OLDER)?;
    machine.run("the start that converts it", "systemctl start pilot")?;
    machine.run("everything is there", CONVERTED).map(drop)
}

/// The fixture was written once, and the machine's clock has gone on.
const OLDER: &str = "dpkg --install pilot_*_amd64.deb; cd older\n\
    install -m 600 -o pilot -g pilot pilot.db log.key log.checkpoint log.checkpoint.revocations /var/lib/pilot/\n\
    install -m 640 -g pilot credentials.json ../tls.pem ../tls.key /etc/pilot/secrets/\n\
    install -m 640 -g pilot role_map.json /etc/pilot/secrets/role-map.json\n\
    printf '\\n[clock]\\noutage_days = 60000\\n' >> /etc/pilot/pilot.toml\n\
    runuser -u pilot -- pilot log fsck --config /etc/pilot/pilot.toml";

const CONVERTED: &str = "export PILOT_URL=https://pilot.example:7450 PILOT_CA_FILE=tls.pem; umask 077\n\
    for who in ana ada old; do printf 'fixture-%s-fixture-%s-fixture-%s-1' $who $who $who > $who.token; done\n\
    pilot session --token-file ana.token; ! pilot session --token-file old.token\n\
    pilot item list --token-file ada.token | grep 'Rotate the signing key'\n\
    runuser -u pilot -- pilot log key --config /etc/pilot/pilot.toml | cmp - older/key.txt\n\
    runuser -u pilot -- pilot log fsck --config /etc/pilot/pilot.toml";

/// The service on a Unix socket, under the unit with all its restrictions.
fn machine_with_socket(base: &Base, brought: &Brought) -> Result<(), Failure> {
    let machine = Machine::boot("socket", base, &brought.0)?;
    page(&machine, PRODUCTION, "certificate")?;
    page(&machine, INSTALL, "package")?;
    page(&machine, PROXIES, "socket")?;
    machine.run("the configuration of the page", ON_SOCKET)?;
    machine.run("who is answered, and who is not", ANSWERED)?;
    machine.run("a service that was killed comes back, and one that is stopped leaves nothing", KILLED).map(drop)
}

const ON_SOCKET: &str = "sed -i -e 's,^listen   .*,listen = \"unix:/run/pilot/pilot.sock\",' -e '/^\\[tls\\]/,/^$/d' /etc/pilot/pilot.toml\n\
    printf '\\n[socket]\\ngroup = \"pilot-socket\"\\n\\n[tls]\\ntermination = \"mesh\"\\ntrusted_users = [\"www-data\"]\\n' >> /etc/pilot/pilot.toml\n\
    cat /etc/pilot/pilot.toml; systemctl restart pilot\n\
    test \"$(stat -c '%U:%G %a' /run/pilot/pilot.sock)\" = 'pilot:pilot-socket 660'";

/// Root may connect to anything, and is still not the mesh. Another user may not even connect.
const ANSWERED: &str = "ask='curl -s --unix-socket /run/pilot/pilot.sock http://localhost/v1/session'\n\
    runuser -u www-data -- $ask -H \"Authorization: Bearer $(cat ana.token)\" | grep '\"actor_id\":\"ana\"'\n\
    $ask -H \"Authorization: Bearer $(cat ana.token)\" | grep 'Connect through the mesh'\n\
    code=0; runuser -u nobody -- $ask || code=$?; test $code = 7";

const KILLED: &str = "systemctl kill --signal=KILL pilot\n\
    for try in $(seq 100); do test \"$(systemctl show -P NRestarts pilot)\" = 1 && systemctl is-active --quiet pilot && break\n\
    sleep 0.1; done\n\
    runuser -u www-data -- curl -s --unix-socket /run/pilot/pilot.sock http://localhost/healthz\n\
    systemctl stop pilot; test ! -e /run/pilot";

/// A marked block that no step above runs would look as if it were tested.
fn every_block_was_run() -> Result<(), Failure> {
    const RUN: [(&str, &str); 23] = [
        (PRODUCTION, "certificate"),
        (INSTALL, "package"),
        (INSTALL, "first look"),
        (BACKUP, "backup"),
        (BACKUP, "restore"),
        (BACKUP, "new machine"),
        (BACKUP, "erase"),
        (ROTATION, "rotation"),
        (AGENT, "agent"),
        (PRODUCTION, "renewal"),
        (INSTALL, "logging"),
        (BACKUP, "loss"),
        (SIGNER, "token"),
        (SIGNER, "section"),
        (SIGNER, "remove"),
        (FROM_PILOT, "keep"),
        (FROM_PILOT, "step 1"),
        (FROM_PILOT, "back out of step 1"),
        (FROM_PILOT, "step 2"),
        (FROM_PILOT, "back out of step 2"),
        (FROM_PILOT, "step 3"),
        (FROM_PILOT, "back out of step 3"),
        (PROXIES, "socket"),
    ];
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap_or_default();
        if let Some(name) = blocks::names(&text).into_iter().find(|name| !RUN.contains(&(page, name))) {
            return Err(Failure::refuted(format!(
                "{page}: nothing runs the block `{name}`; add it to xtask/src/pages.rs"
            )));
        }
    }
    Ok(())
}

/// How fast people read a manual, and type what is in it.
const WORDS_PER_MINUTE: usize = 200;
const CHARACTERS_PER_MINUTE: usize = 200;

/// What the pages ask of someone who sees them for the first time. The machine's part is printed above, and is small.
fn print_newcomers_times() -> Result<(), Failure> {
    println!("\n  {:32} {:>6} {:>9} {:>6} {:>8}", "page", "words", "commands", "typed", "minutes");
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap_or_default();
        let scripts: Vec<_> =
            blocks::names(&text).into_iter().map(|name| blocks::script(page, name)).collect::<Result<_, _>>()?;
        let words = text.split_whitespace().count();
        let (commands, typed) = scripts.iter().fold((0, 0), |(commands, typed), script| {
            (commands + script.lines().count(), typed + script.chars().count())
        });
        let minutes = words.div_ceil(WORDS_PER_MINUTE) + typed.div_ceil(CHARACTERS_PER_MINUTE);
        println!("  {page:32} {words:>6} {commands:>9} {typed:>6} {minutes:>8}");
    }
    println!("  (reading {WORDS_PER_MINUTE} words and typing {CHARACTERS_PER_MINUTE} characters a minute)");
    Ok(())
}
