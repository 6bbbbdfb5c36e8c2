//! Rules about the tree that the compiler does not keep. Each finding names file, line and remedy.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate depends on those before it alone.
const CRATES: [&str; 16] = [
    "pilot-testing",
    "pilot-core",
    "pilot-explain",
    "pilot-evidence",
    "pilot-verify",
    "pilot-verify-web",
    "pilot-store",
    "pilot-wire",
    "pilot-setup",
    "pilot-api",
    "pilot-mcp",
    "pilot-ledger",
    "pilot-notices",
    "pilot-witness",
    "pilot-server",
    "pilot",
];
/// Crates whose verdicts must be the same everywhere and for ever.
const PURE_CRATES: [&str; 3] = ["pilot-core", "pilot-explain", "pilot-evidence"];
const IMPURE: [&str; 12] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::",
    "time::Instant",
    "Timestamp::now",
    "getrandom",
    "rand::",
    "tokio",
];
const GENERATED_OR_FOREIGN: [&str; 7] = ["target", ".git", "node_modules", "dist", "corpus", "artifacts", "pilot-demo"];

struct File {
    /// Relative to the root, with forward slashes.
    path: String,
    text: String,
}

impl File {
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    fn is_rust(&self) -> bool {
        has_ending(&self.path, "rs")
    }

    /// The lines before the file's own tests, without those that are comments.
    fn program_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.lines().take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"));
        code.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == ending)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every text file of the repository.
fn files() -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), "", &mut files);
    assert!(files.len() > 50, "the walk over the repository lost its way");
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn walk(directory: &Path, prefix: &str, files: &mut Vec<File>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if GENERATED_OR_FOREIGN.contains(&name.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push(File { path, text });
        }
    }
}

#[derive(Default)]
struct Findings(String);

impl Findings {
    fn add(&mut self, path: &str, line: usize, what: impl std::fmt::Display) {
        writeln!(self.0, "  {path}:{line}: {what}").unwrap();
    }

    /// Fails with every finding at once and the one remedy they share.
    fn settle(self, remedy: &str) {
        assert!(self.0.is_empty(), "\n{}{remedy}\n", self.0);
    }
}

#[test]
fn crates_depend_only_leftwards() {
    let mut findings = Findings::default();
    for file in files().iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml")) {
        let name = file.path.split('/').nth(1).unwrap();
        let Some(rank) = CRATES.iter().position(|known| *known == name) else {
            findings.add(&file.path, 1, format!("{name} has no place in the order of crates"));
            continue;
        };
        for (line, dependency) in dependencies(&file.text) {
            let other = CRATES.iter().position(|known| *known == dependency);
            // A crate may name itself, to have its own test features on in its tests.
            if other.is_some_and(|other| other > rank) {
                findings.add(&file.path, line, format!("{name} depends on {dependency}"));
            }
        }
    }
    findings.settle(&format!(
        "The order is {}. Move the code, or pass what is needed as a parameter.",
        CRATES.join(" <- ")
    ));
}

/// A table of a manifest, without comments and empty lines.
fn table<'a>(manifest: &'a str, name: &str) -> BTreeSet<&'a str> {
    let lines = manifest.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn every_crate_has_the_lints_of_the_workspace_and_one_has_a_file_with_unsafe_attributes() {
    const EXCEPTION: &str = "crates/pilot-verify-web";
    let files = files();
    let text = |path: &str| files.iter().find(|file| file.path == path).unwrap().text.as_str();
    let mut findings = Findings::default();
    for file in files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml")) {
        let is_exception = file.path.starts_with(&format!("{EXCEPTION}/"));
        if !is_exception && !table(&file.text, "lints").contains("workspace = true") {
            findings.add(&file.path, 1, "does not have the lints of the workspace");
        }
    }
    let (workspace, own) = (text("Cargo.toml"), text(&format!("{EXCEPTION}/Cargo.toml")));
    let mut expected = table(workspace, "workspace.lints.rust");
    assert!(expected.remove("unsafe_code = \"forbid\""), "unsafe code is no longer forbidden");
    expected.insert("unsafe_code = \"deny\"");
    assert_eq!(table(own, "lints.rust"), expected, "the lints of {EXCEPTION}");
    assert_eq!(table(own, "lints.clippy"), table(workspace, "workspace.lints.clippy"), "the lints of {EXCEPTION}");
    let is_unsafe = |line: &str| line.contains(concat!("unsafe", "(")) || line.contains(concat!("unsafe", " "));
    for file in files.iter().filter(|file| file.is_rust() && file.path.starts_with(EXCEPTION)) {
        for (number, line) in file.program_lines().filter(|(_, line)| is_unsafe(line)) {
            if file.path != format!("{EXCEPTION}/src/exports.rs") || line != concat!("#[unsafe", "(no_mangle)]") {
                findings.add(&file.path, number, "is unsafe");
            }
        }
    }
    findings
        .settle("Without an unsafe block there is nothing to prove; the attributes are for names that a page calls.");
}

#[test]
fn xtask_uses_the_standard_library_alone() {
    let text = fs::read_to_string(root().join("xtask/Cargo.toml")).unwrap();
    let mut findings = Findings::default();
    for (line, dependency) in dependencies(&text) {
        findings.add("xtask/Cargo.toml", line, format!("depends on {dependency}"));
    }
    findings.settle("The first command on a fresh clone should not wait for a download: use the standard library.");
}

#[test]
fn every_dependency_is_used() {
    let files = files();
    let mut findings = Findings::default();
    for manifest in files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml")) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let (own, for_tests) = manifest.text.split_once("[dev-dependencies]").unwrap_or((&manifest.text, ""));
        let code = |places: &[&str]| {
            let is_there = |file: &&File| places.iter().any(|place| file.path.starts_with(&format!("{folder}{place}")));
            files.iter().filter(|file| file.is_rust()).filter(is_there).collect::<Vec<_>>()
        };
        let (program, everything) = (code(&["src/"]), code(&["src/", "tests/", "examples/"]));
        for (line, dependency) in dependencies(own) {
            let is_used = |file: &&File| file.program_lines().any(|(_, code)| names_crate(code, dependency));
            if !program.iter().any(is_used) {
                findings.add(&manifest.path, line, format!("{dependency} is not used outside of tests"));
            }
        }
        let before = own.lines().count();
        for (line, dependency) in dependencies(&format!("[dev-dependencies]{for_tests}")) {
            let is_used = |file: &&File| file.lines().any(|(_, code)| names_crate(code, dependency));
            if !everything.iter().any(is_used) {
                findings.add(&manifest.path, before + line, format!("{dependency} is not used"));
            }
        }
    }
    findings.settle("Every dependency is one to defend to an auditor: remove it, or move it to [dev-dependencies].");
}

/// Whether a line has a path that begins with this crate.
fn names_crate(line: &str, dependency: &str) -> bool {
    let path = format!("{}::", dependency.replace('-', "_"));
    let is_part_of_a_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == ':';
    line.match_indices(&path).any(|(at, _)| !line[..at].ends_with(is_part_of_a_name))
}

#[test]
fn a_crate_is_told_from_one_whose_name_ends_alike() {
    for (line, expected) in [
        ("use rustls::Error;", true),
        ("let error = rustls::Error::General;", true),
        ("use tokio_rustls::client;", false),
        ("crate::rustls::x()", false),
    ] {
        assert_eq!(names_crate(line, "rustls"), expected, "{line}");
    }
}

#[test]
fn every_file_of_tests_is_compiled() {
    let files = files();
    let mut findings = Findings::default();
    let is_test = |file: &&File| file.is_rust() && file.path.starts_with("crates/") && file.path.contains("/tests/");
    for file in files.iter().filter(is_test).filter(|file| !file.path.ends_with("/main.rs")) {
        let (folder, name) = file.path.rsplit_once('/').unwrap();
        let parent = if folder.ends_with("/tests") { format!("{folder}/main.rs") } else { format!("{folder}.rs") };
        let declares = |line: &str| line.ends_with(&format!("mod {};", name.trim_end_matches(".rs")));
        let parent = files.iter().find(|file| file.path == parent);
        // A crate with one file of tests needs no main.rs.
        let is_alone = folder.ends_with("/tests") && parent.is_none();
        if !is_alone && !parent.is_some_and(|parent| parent.lines().any(|(_, line)| declares(line))) {
            findings.add(&file.path, 1, "no `mod` names this file");
        }
    }
    findings.settle("A file that is not compiled tests nothing: declare it in the file above it.");
}

/// A check would start the documentation tool for every library to find out that there is nothing to run.
#[test]
fn comments_have_no_examples_because_nothing_runs_them() {
    let mut findings = Findings::default();
    for file in files().iter().filter(|file| file.is_rust()) {
        for (line, _) in file.lines().filter(|(_, line)| line.trim_start().starts_with("//") && line.contains("```")) {
            findings.add(&file.path, line, "an example in a comment");
        }
    }
    findings.settle("Write it as a test: the check runs tests, and no examples in comments.");
}

/// Names in the dependency tables of a manifest, whether `name = …`, `name.workspace = …` or `[dependencies.name]`.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in (1..).zip(manifest.lines().map(str::trim)) {
        if let Some(table) = line.strip_prefix('[').map(|line| line.trim_end_matches(']')) {
            inside = table.ends_with("dependencies");
            if let Some((_, name)) = table.split_once("dependencies.") {
                found.push((number, name));
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            found.push((number, line.split(['.', '=', ' ']).next().unwrap()));
        }
    }
    found
}

#[test]
fn the_pure_crates_do_no_io_and_read_no_clock_and_no_randomness() {
    let mut findings = Findings::default();
    for file in files() {
        let is_pure = PURE_CRATES.iter().any(|name| file.path.starts_with(&format!("crates/{name}/src/")));
        if !is_pure {
            continue;
        }
        for (number, line) in file.program_lines() {
            for word in IMPURE.iter().filter(|word| line.contains(**word)) {
                findings.add(&file.path, number, format!("uses {word}"));
            }
            // Nested imports would hide what they import from the words above.
            if line.contains("use std::{") {
                findings.add(&file.path, number, "imports several things of std at once; give each its own line");
            }
        }
    }
    findings
        .settle("Time, ids, nonces and file contents are parameters here, so that an auditor can repeat the verdict.");
}

#[test]
fn every_decision_is_in_the_index_under_its_title() {
    let files = files();
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let index = text("docs/README.md");
    let mut findings = Findings::default();
    for file in files.iter().filter(|file| file.path.starts_with("docs/adr/")) {
        let name = file.path.strip_prefix("docs/adr/").unwrap_or_default();
        let number = name.split('-').next().unwrap_or_default();
        let title = file.text.lines().next().unwrap_or_default().strip_prefix(&format!("# {number}: "));
        let row = title.map(|title| format!("| [{number}](adr/{name}) | {title} |"));
        if !row.is_some_and(|row| index.contains(&row)) {
            findings.add(&file.path, 1, "is not in docs/README.md as `| [NUMBER](adr/FILE) | TITLE |`".to_owned());
        }
    }
    findings.settle("Decisions that nobody finds are made twice.");
}

#[test]
fn every_path_named_in_the_docs_exists() {
    let files = files();
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings = Findings::default();
    for file in files.iter().filter(|file| is_doc(&file.path)) {
        let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (line, named) in named_paths(&file.text) {
            let there = match &named {
                Named::Link(target) => {
                    let path = joined(directory, target);
                    // Pictures are no text, and so not among the files that were read.
                    is_there(&path, &known) || root().join(path).is_file()
                }
                Named::Code(path) => {
                    expanded(path).iter().all(|path| is_there(path, &known) || is_suffix(path, &known))
                }
            };
            if !there {
                findings.add(&file.path, line, format!("names `{}`, which does not exist", named.text()));
            }
        }
    }
    findings.settle("A map that lies is worse than none: correct the path, or make the file.");
}

fn is_doc(path: &str) -> bool {
    let has_name = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].contains(&path);
    has_name || (path.starts_with("docs/") || path.starts_with("examples/")) && has_ending(path, "md")
}

#[derive(Debug, PartialEq)]
enum Named {
    /// Relative to the page it stands on.
    Link(String),
    /// Relative to the root; a bare file name may lie anywhere.
    Code(String),
}

impl Named {
    fn text(&self) -> &str {
        match self {
            Named::Link(text) | Named::Code(text) => text,
        }
    }
}

/// Links and pieces of code that can only be meant as paths of this repository, outside of fenced blocks.
fn named_paths(text: &str) -> Vec<(usize, Named)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for code in line.split('`').skip(1).step_by(2).filter(|code| is_repository_path(code)) {
            found.push((number, Named::Code(code.trim_end_matches('/').to_owned())));
        }
        for link in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            if !link.is_empty() && !link.contains(':') && !link.starts_with('/') {
                found.push((number, Named::Link(link.trim_end_matches('/').to_owned())));
            }
        }
    }
    found
}

/// Not a path of the API, of an installation or of what a build makes.
fn is_repository_path(code: &str) -> bool {
    const TOP: [&str; 8] = [".ci", ".cargo", "console", "crates", "deploy", "docs", "fuzz", "xtask"];
    if code.contains([' ', '<', '>', '$', '…', '(', ':', '=']) {
        return false;
    }
    match code.split_once('/') {
        Some((first, rest)) => TOP.contains(&first) && !rest.starts_with("dist") && !rest.starts_with("target"),
        None => has_ending(code, "rs") || has_ending(code, "md"),
    }
}

fn joined(directory: &str, target: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// `a/{b,c}` names both.
fn expanded(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (choices, after))) => {
            choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// A file, a directory, or (before a `*`) the beginning of one.
fn is_there(path: &str, known: &BTreeSet<&str>) -> bool {
    let (start, is_pattern) = path.split_once('*').map_or((path, false), |(start, _)| (start, true));
    known.contains(start)
        || known.iter().any(|file| {
            file.strip_prefix(start).is_some_and(|rest| is_pattern || rest.starts_with('/') || start.is_empty())
        })
}

fn is_suffix(path: &str, known: &BTreeSet<&str>) -> bool {
    !path.contains('/') && known.iter().any(|file| file.rsplit('/').next() == Some(path))
}

#[test]
fn paths_are_told_from_other_code() {
    let text = "see `crates/pilot-core/src/leak.rs`, `problem.rs` and [this](../a/b.md#c), not `/v1/session`, \
        `pilot.toml`, `data/log.key` or [that](https://example.org/x.md)\n```\n`docs/none.md`\n```\n`docs/adr/`";
    let found: Vec<_> = named_paths(text).into_iter().map(|(line, named)| format!("{line} {}", named.text())).collect();
    assert_eq!(found, ["1 crates/pilot-core/src/leak.rs", "1 problem.rs", "1 ../a/b.md", "5 docs/adr"]);
    assert_eq!(joined("docs/adr", "../guide/x.md"), "docs/guide/x.md");
    assert_eq!(expanded("a/{b,c}.md"), ["a/b.md", "a/c.md"]);
}

#[test]
fn every_problem_code_has_its_section_in_the_docs() {
    let source = "crates/pilot-server/src/problem.rs";
    let page = "docs/reference/problems.md";
    let code = fs::read_to_string(root().join(source)).unwrap();
    let docs = fs::read_to_string(root().join(page)).unwrap();
    let mut findings = Findings::default();
    let mut count = 0;
    for (number, line) in (1..).zip(code.lines()) {
        // A row of the table: `NotFound = "not_found", 404, "Not found",`
        let Some((_, row)) =
            line.split_once(" = \"").filter(|(name, _)| name.trim().chars().all(char::is_alphanumeric))
        else {
            continue;
        };
        let name = row.split('"').next().unwrap();
        count += 1;
        if !docs.lines().any(|line| line == format!("## `{name}`")) {
            findings.add(source, number, format!("`{name}` has no section in {page}"));
        }
    }
    assert!(count > 15, "the codes in {source} are no longer found; teach this test their new shape");
    findings.settle("Write it with UPDATE_EXPECT=1 cargo test -p pilot-server reference.");
}

/// A threat without a test is a promise.
#[test]
fn every_answer_to_a_threat_names_a_test_that_exists() {
    let (mut findings, files) = (Findings::default(), files());
    let page = "docs/audit/threats-and-answers.md";
    let text = files.iter().find(|file| file.path == page).map(|file| file.text.as_str()).unwrap();
    let is_test = |name: &str| {
        files.iter().any(|file| has_ending(&file.path, "rs") && file.text.contains(&format!("fn {name}(")))
    };
    let table = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("| who |")).skip(2);
    let mut rows = 0;
    for (number, line) in table.take_while(|(_, line)| line.starts_with('|')) {
        rows += 1;
        let shown_by = line.trim_end_matches('|').rsplit('|').next().unwrap_or("").trim();
        let is_answered = line.contains("**stopped**") || line.contains("**exposed**");
        match shown_by.trim_matches('`') {
            "" if is_answered => findings.add(page, number + 1, "no test is named"),
            "" => {}
            name if !is_test(name) => findings.add(page, number + 1, format!("there is no test `{name}`")),
            _ => {}
        }
    }
    assert!(rows > 30, "the table has gone somewhere else");
    findings.settle("Name the test that fails when the answer is no longer true.");
}

#[test]
fn no_file_is_named_after_nothing() {
    let mut findings = Findings::default();
    for file in files() {
        let name = file.path.rsplit('/').next().unwrap();
        if ["mod", "utils", "util", "common", "types", "helpers", "misc"].contains(&name.split('.').next().unwrap()) {
            findings.add(&file.path, 1, "says nothing about what is in it");
        }
    }
    findings.settle("Name a file after what it holds; a module `x` is `x.rs`, with its parts in `x/`.");
}

#[test]
fn nothing_unfinished_and_nothing_left_from_debugging() {
    // Put together here, so that this file does not find itself.
    let words = ["todo!", "unimplemented!", "dbg!"]
        .map(|name| format!("{name}("))
        .into_iter()
        .chain([format!("#[{}", "ignore")]);
    let words: Vec<_> = words.collect();
    let mut findings = Findings::default();
    for file in files().iter().filter(|file| file.is_rust()) {
        for (number, line) in file.lines() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                findings.add(&file.path, number, format!("has {word}"));
            }
        }
    }
    findings.settle("Finish it, or take it out. A test that is not run proves nothing.");
}

#[test]
fn status_codes_of_errors_exist_only_in_problem_rs() {
    const PLACE: &str = "crates/pilot-server/src/problem.rs";
    // All names of 1xx to 3xx in use; every other name is an error's.
    const FINE: [&str; 9] = [
        "OK",
        "CREATED",
        "ACCEPTED",
        "NO_CONTENT",
        "PARTIAL_CONTENT",
        "NOT_MODIFIED",
        "SWITCHING_PROTOCOLS",
        "SEE_OTHER",
        "CONTINUE",
    ];
    let mut findings = Findings::default();
    for file in files() {
        let is_checked = file.is_rust() && file.path.starts_with("crates/") && file.path.contains("/src/");
        if !is_checked || file.path == PLACE || file.path == "crates/pilot/src/client.rs" {
            continue;
        }
        for (number, line) in file.program_lines() {
            for rest in line.split("StatusCode::").skip(1) {
                let name: String =
                    rest.chars().take_while(|letter| letter.is_ascii_uppercase() || *letter == '_').collect();
                if !name.is_empty() && !FINE.contains(&name.as_str()) {
                    findings.add(&file.path, number, format!("gives the status {name}"));
                }
            }
        }
    }
    findings.settle(&format!("Every \"no\" is a Problem with a stable code: add or use one in {PLACE}."));
}

#[test]
fn no_file_names_a_place_on_one_persons_machine() {
    // Put together here, so that this file does not find itself.
    let places = ["work", "root", "home"].map(|name| format!("/{name}/"));
    let mut findings = Findings::default();
    for file in files() {
        for (number, line) in file.lines() {
            for place in &places {
                let begins = |at: usize| {
                    !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-*/{}~".contains(before))
                };
                if line.match_indices(place.as_str()).any(|(at, _)| begins(at)) {
                    findings.add(&file.path, number, format!("names {place}"));
                }
            }
        }
    }
    findings.settle("Use a path relative to the repository, or one that every installation has.");
}

#[test]
fn exemptions_only_shrink() {
    let page = "xtask/exemptions.txt";
    let allowed = fs::read_to_string(root().join(page)).unwrap();
    let allowed = read_counts(&allowed);
    let found = find_exemptions(&files());
    let mut findings = Findings::default();
    let places: BTreeSet<&String> = allowed.keys().chain(found.keys()).collect();
    for place in places {
        let (line, allowed) = allowed.get(place).copied().unwrap_or((1, 0));
        let found = found.get(place).map_or(&[][..], Vec::as_slice);
        if found.len() < allowed {
            findings.add(page, line, format!("{place} is down to {}: lower the {allowed}", found.len()));
        }
        if found.len() > allowed {
            findings.add(
                page,
                line,
                format!("{place} has {} where {allowed} are granted; one of these goes:", found.len()),
            );
            for (path, line) in found {
                findings.add(path, *line, "is exempted");
            }
        }
    }
    findings.settle("An exemption that nothing can replace is granted by changing the table in the same commit.");
}

/// Lines of `PLACE COUNT`, each with its number; `#` begins a comment.
fn read_counts(table: &str) -> BTreeMap<String, (usize, usize)> {
    let rows = (1..).zip(table.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let read = |(number, row): (usize, &str)| {
        let (place, count) = row.rsplit_once(' ').unwrap();
        (place.trim().to_owned(), (number, count.parse().unwrap()))
    };
    rows.map(read).collect()
}

/// Per crate: attributes that silence a lint. Per file: those that let it read clock, environment or randomness.
fn find_exemptions(files: &[File]) -> BTreeMap<String, Vec<(String, usize)>> {
    let attributes: Vec<_> =
        ["allow", "expect"].iter().flat_map(|word| [format!("#[{word}("), format!("#![{word}(")]).collect();
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let depth = if file.path.starts_with("crates/") { 2 } else { 1 };
        let place = file.path.split('/').take(depth).collect::<Vec<_>>().join("/");
        for (number, line) in file.lines().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for _ in attributes.iter().flat_map(|attribute| line.matches(attribute.as_str())) {
                found.entry(place.clone()).or_default().push((file.path.clone(), number));
            }
            // On a line of its own when the attribute is long.
            if line.contains(concat!("clippy::", "disallowed_methods")) {
                found.entry(file.path.clone()).or_default().push((file.path.clone(), number));
            }
        }
    }
    found
}
