//! No circle of files inside a crate: what two files use is below both of them.
//!
//! An import is a path into another file of the crate, followed through re-exports to the file that has the thing. A file
//! that declares a module, or passes a name of it on without using it, does not import it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, unreachable_pub, reason = "tests stop at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod imports;
mod tokens;

use imports::{Module, Segments, joined, read_file};

#[test]
fn no_file_of_a_crate_imports_itself_by_way_of_others() {
    let mut findings = Vec::new();
    for source in sources() {
        let name = source.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let circles = Crate::read(&source).circles();
        if !circles.is_empty() {
            findings.push(format!("{name}:\n    {}", circles.join("\n    ")));
        }
    }
    let findings = findings.join("\n  ");
    assert!(findings.is_empty(), "\n  {findings}\nMove what both ends of an arrow use into a file below both.\n");
}

/// `src` of every crate.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut sources: Vec<_> = crates.filter(|source| source.is_dir()).chain([root.join("xtask/src")]).collect();
    sources.sort();
    assert!(sources.len() > 5, "the crates have gone somewhere else");
    sources
}

/// The modules of a crate that have files of their own, by their path; the crate's root has an empty one.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Segments, Module>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let files: Vec<_> =
            ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().filter(|f| f.is_file()).collect();
        let mut read = Self::default();
        for root in files {
            read.add(&[], &root, source);
        }
        read
    }

    /// Reads a file and those of the modules it declares.
    fn add(&mut self, path: &[String], file: &Path, directory: &Path) {
        let text = fs::read_to_string(file).unwrap();
        for child in self.add_text(path.to_vec(), &text) {
            let below = directory.join(format!("{child}.rs"));
            let child_path = joined(path, std::slice::from_ref(&child));
            // What `#[path]` takes from elsewhere is not a file of this crate.
            if below.is_file() {
                self.add(&child_path, &below, &directory.join(child));
            }
        }
    }

    /// Takes a file in; returns the modules it declares.
    fn add_text(&mut self, path: Segments, text: &str) -> Vec<String> {
        let (module, children) = read_file(path.clone(), text);
        let known = self.modules.entry(path).or_default();
        known.names.extend(module.names);
        known.paths.extend(module.paths);
        children
    }

    /// The file that has what a path names.
    fn find(&self, path: &[String], hops: usize) -> Option<Segments> {
        let mut at = Vec::new();
        for (index, segment) in path.iter().enumerate() {
            let below = joined(&at, std::slice::from_ref(segment));
            let target = self.modules.get(&at).and_then(|module| module.names.get(segment));
            // A module may share its name with something that is passed on: at the end of a path, that is meant.
            let is_passed_on = index + 1 == path.len() && target.is_some_and(|target| *target != below);
            if self.modules.contains_key(&below) && !is_passed_on {
                at = below;
                continue;
            }
            return match target {
                Some(target) if hops > 0 => self.find(&joined(target, &path[index + 1..]), hops - 1),
                _ => Some(at),
            };
        }
        // A module itself: what is used of it has a path of its own.
        None
    }

    fn arrows(&self) -> BTreeMap<&Segments, BTreeSet<Segments>> {
        let arrows = self.modules.iter().map(|(path, module)| {
            let targets = module.paths.iter().filter_map(|used| self.find(used, 8));
            (path, targets.filter(|target| target != path).collect())
        });
        arrows.collect()
    }

    /// The shortest circle through each file that is on one, each circle once.
    fn circles(&self) -> Vec<String> {
        let arrows = self.arrows();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for start in arrows.keys() {
            let Some(circle) = shortest_circle(&arrows, start) else { continue };
            if seen.insert(circle.iter().cloned().collect::<BTreeSet<_>>()) {
                let names: Vec<_> = circle.iter().chain([*start]).map(|path| name(path)).collect();
                circles.push(names.join(" -> "));
            }
        }
        circles
    }
}

fn name(path: &[String]) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

fn shortest_circle(arrows: &BTreeMap<&Segments, BTreeSet<Segments>>, start: &Segments) -> Option<Vec<Segments>> {
    let mut came_from: BTreeMap<Segments, Segments> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start.clone()]);
    while let Some(at) = queue.pop_front() {
        for next in &arrows[&at] {
            if next == start {
                let back = std::iter::successors(Some(at.clone()), |at| came_from.get(at).cloned());
                let mut circle: Vec<_> = back.collect();
                circle.reverse();
                return Some(circle);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next.clone(), at.clone());
                queue.push_back(next.clone());
            }
        }
    }
    None
}

/// The circles of a crate with these files, each a module's path and its text.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let mut read = Crate::default();
    for (path, text) in files {
        let path = path.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        read.add_text(path, text);
    }
    read.circles()
}

#[test]
fn files_that_import_each_other_are_a_circle_whichever_way_they_say_it() {
    let ways = [
        ("use crate::b::B;", "fn f() { crate::a::A::new() }"),
        ("use super::b::{self, B};", "use super::a::A as Other;"),
        ("use crate::{b::B, c};", "fn f(a: &super::a::A) {}"),
    ];
    for (a, b) in ways {
        let files = [("", "mod a; mod b; mod c;"), ("a", a), ("b", b), ("c", "")];
        assert_eq!(circles_of(&files), ["a -> b -> a"], "{a} {b}");
    }
}

#[test]
fn a_file_below_another_may_not_import_it_and_be_imported_by_it() {
    let files = [("", "mod a;"), ("a", "mod b; pub struct A; fn f() { b::run() }"), ("a::b", "use super::A;")];
    assert_eq!(circles_of(&files), ["a -> a::b -> a"]);
}

#[test]
fn passing_a_name_on_is_no_import_unless_the_file_uses_it_too() {
    let below = ("a::b", "use super::A; pub struct B;");
    assert!(circles_of(&[("", "mod a;"), ("a", "mod b; pub use b::B; pub struct A;"), below]).is_empty());
    let used = ("a", "mod b; pub use b::B; pub struct A(B);");
    assert_eq!(circles_of(&[("", "mod a;"), used, below]), ["a -> a::b -> a"]);
}

#[test]
fn an_import_is_followed_through_those_who_pass_the_name_on() {
    let files = [
        ("", "mod a; mod c;"),
        ("a", "mod b; pub use b::B;"),
        ("a::b", "use crate::c::C; pub struct B;"),
        ("c", "use crate::a; fn f(b: a::B) {} pub struct C;"),
    ];
    assert_eq!(circles_of(&files), ["a::b -> c -> a::b"]);
}

#[test]
fn tests_texts_and_comments_import_nothing() {
    let quiet = [
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)]\nuse crate::b::{B, C};",
        "// crate::b::B\n/* use crate::b::B; */",
        "const T: &str = r#\"crate::b::B \" \"#; const U: &str = \"crate::b::B\"; const C: char = '\"';",
    ];
    for a in quiet {
        let files = [("", "mod a; mod b;"), ("a", a), ("b", "use crate::a::A;")];
        assert!(circles_of(&files).is_empty(), "{a}");
    }
}
