//! What a file imports.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{tokens, without_tests};

pub type Segments = Vec<String>;

#[derive(Default)]
pub struct Module {
    /// Names that stand for something elsewhere, by `use`.
    pub names: BTreeMap<String, Segments>,
    /// What the file goes to by path: whole paths, as from the crate's root.
    pub paths: Vec<Segments>,
}

/// A file's imports, and the modules it declares.
pub fn read_file(path: Segments, text: &str) -> (Module, Vec<String>) {
    let mut reader = Reader::new(path, without_tests(&tokens(text)));
    reader.read();
    (reader.module, reader.children)
}

pub fn joined(before: &[String], after: &[String]) -> Segments {
    before.iter().chain(after).cloned().collect()
}

/// Collects imports, paths and declared modules of one file.
struct Reader {
    path: Segments,
    tokens: Vec<String>,
    at: usize,
    module: Module,
    children: Vec<String>,
    /// Names that are passed on, by `pub use`.
    passed_on: Vec<(String, Segments)>,
    /// Names that stand in the code by themselves.
    mentioned: BTreeSet<String>,
    /// Modules inside of the file that are open here, each with the depth of braces it began at.
    inline: Vec<(String, usize)>,
    depth: usize,
}

impl Reader {
    fn new(path: Segments, tokens: Vec<String>) -> Self {
        Self {
            path,
            tokens,
            at: 0,
            module: Module::default(),
            children: Vec::new(),
            passed_on: Vec::new(),
            mentioned: BTreeSet::new(),
            inline: Vec::new(),
            depth: 0,
        }
    }

    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn read(&mut self) {
        let mut is_passed_on = false;
        while self.at < self.tokens.len() {
            match self.token(0) {
                "pub" => {
                    is_passed_on = true;
                    self.at += if self.token(1) == "(" { self.length_of_group(1) + 1 } else { 1 };
                    continue;
                }
                "use" if self.begins_item() => self.read_use(is_passed_on),
                "mod" if self.token(2) == ";" => {
                    if self.inline.is_empty() {
                        self.children.push(self.token(1).to_owned());
                    }
                    self.at += 2;
                }
                "mod" if self.token(2) == "{" => {
                    self.inline.push((self.token(1).to_owned(), self.depth));
                    self.at += 2;
                    continue;
                }
                "{" => self.depth += 1,
                "}" => {
                    self.depth = self.depth.saturating_sub(1);
                    let depth = self.depth;
                    self.inline.retain(|(_, began)| *began < depth);
                }
                word if is_name(word) => self.read_path(),
                _ => {}
            }
            is_passed_on = false;
            self.at += 1;
        }
        for (name, target) in std::mem::take(&mut self.passed_on) {
            if self.mentioned.contains(&name) {
                self.module.paths.push(target);
            }
        }
        self.resolve_first_names();
    }

    /// `use` is a keyword that may also stand in `impl Trait + use<'a>`.
    fn begins_item(&self) -> bool {
        self.token(1) != "<"
    }

    /// Tokens of a group in parentheses that begins `ahead`, both parentheses counted.
    fn length_of_group(&self, ahead: usize) -> usize {
        let rest = self.tokens.iter().skip(self.at + ahead);
        rest.take_while(|token| *token != ")").count() + 1
    }

    fn read_use(&mut self, is_passed_on: bool) {
        self.at += 1;
        let mut leaves = Vec::new();
        self.read_tree(&mut Vec::new(), &mut leaves);
        for (name, path) in leaves {
            let Some(path) = self.absolute(&path) else { continue };
            if name == "*" {
                self.module.paths.push(joined(&path, &["*".to_owned()]));
                continue;
            }
            self.module.names.insert(name.clone(), path.clone());
            if is_passed_on {
                self.passed_on.push((name, path));
            } else {
                self.module.paths.push(path);
            }
        }
    }

    /// `a::{b, c as d, e::*}`, up to what ends it.
    fn read_tree(&mut self, before: &mut Segments, leaves: &mut Vec<(String, Segments)>) {
        let length = before.len();
        loop {
            match self.token(0).to_owned().as_str() {
                "{" => {
                    while self.token(0) != "}" {
                        self.at += 1;
                        self.read_tree(before, leaves);
                    }
                    self.at += 1;
                    break;
                }
                "::" => self.at += 1,
                "as" => {
                    if let Some((name, _)) = leaves.last_mut() {
                        name.clone_from(&self.tokens[self.at + 1]);
                    }
                    self.at += 2;
                }
                ";" | "," | "}" | "" => break,
                word => {
                    before.push(word.to_owned());
                    let is_leaf = self.token(1) != "::";
                    self.at += 1;
                    if is_leaf {
                        leaves.push(leaf(before));
                    }
                }
            }
        }
        before.truncate(length);
    }

    fn read_path(&mut self) {
        let is_within = self.at > 0 && [".", "::"].contains(&self.tokens[self.at - 1].as_str());
        let mut path = vec![self.token(0).to_owned()];
        while self.token(1) == "::" && is_name(self.token(2)) {
            path.push(self.token(2).to_owned());
            self.at += 2;
        }
        if is_within {
            return;
        }
        self.mentioned.insert(path[0].clone());
        if path.len() > 1 {
            self.module.paths.extend(self.absolute(&path).or(Some(joined(&["?".to_owned()], &path))));
        }
    }

    /// As from the crate's root; nothing for what is not said to be of this crate.
    fn absolute(&self, path: &[String]) -> Option<Segments> {
        let mut here = joined(&self.path, &self.inline.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => return Some(rest[1..].to_vec()),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    here.pop();
                    rest = &rest[1..];
                }
            }
            // A name of a module in this file, or of another crate: told apart when all of the file is known.
            _ => return Some(joined(&["?".to_owned()], path)),
        }
        // What is inside of the file itself is of the file.
        Some(joined(&here, rest))
    }

    /// Paths that begin with a name: one of a module below, one that was imported, or nothing of ours.
    fn resolve_first_names(&mut self) {
        let (children, here, names) = (&self.children, &self.path, self.module.names.clone());
        let resolved =
            |path: Segments, hops: usize| -> Option<Segments> { resolve(path, here, children, &names, hops) };
        let paths = std::mem::take(&mut self.module.paths);
        self.module.paths = paths.into_iter().filter_map(|path| resolved(path, 4)).collect();
        let names_taken = std::mem::take(&mut self.module.names);
        let kept = names_taken.into_iter().filter_map(|(name, path)| Some((name, resolved(path, 4)?)));
        self.module.names = kept.collect();
    }
}

fn resolve(
    path: Segments,
    here: &[String],
    children: &[String],
    names: &BTreeMap<String, Segments>,
    hops: usize,
) -> Option<Segments> {
    if path.first().is_none_or(|first| first != "?") {
        return Some(path);
    }
    let first = path.get(1)?;
    if children.contains(first) {
        return Some(joined(here, &path[1..]));
    }
    let target = names.get(first).filter(|_| hops > 0)?;
    resolve(joined(target, &path[2..]), here, children, names, hops - 1)
}

/// The name a path of a `use` is known by; `self` stands for the module before it.
fn leaf(path: &[String]) -> (String, Segments) {
    match path {
        [before @ .., last] if last == "self" && !before.is_empty() => {
            (before[before.len() - 1].clone(), before.to_vec())
        }
        [before @ .., last] if last == "*" => ("*".to_owned(), before.to_vec()),
        _ => (path[path.len() - 1].clone(), path.to_vec()),
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
