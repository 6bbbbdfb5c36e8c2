//! A command line as far as it is written: which command, which options, and what belongs at the cursor.

use clap::{Arg, Command};
use pilot_core::item::ItemId;

use crate::client::ClientArguments;

/// What belongs at the cursor, if only the service or the profiles know it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    Item,
    Action(ItemId),
    Workflow,
    Profile,
}

pub(super) struct Line {
    pub wanted: Wanted,
    /// The word at the cursor, as far as it is written.
    pub current: String,
    pub client: ClientArguments,
}

impl Line {
    pub(super) fn read(text: &str, program: &Command) -> Line {
        let mut words = split(text);
        let current = words.pop().unwrap_or_default();
        let mut words = words.into_iter().skip(1);
        let (mut command, mut path) = (program, Vec::new());
        let (mut places, mut options, mut pending) = (Vec::new(), Vec::new(), None);
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let takes_value = option(command, name).is_some_and(|known| known.get_action().takes_values());
                let value = value.map(str::to_owned).or_else(|| if takes_value { words.next() } else { None });
                if takes_value && value.is_none() {
                    pending = Some(name.to_owned());
                }
                options.push((name.to_owned(), value.unwrap_or_default()));
            } else if let Some(below) = command.find_subcommand(&word) {
                command = below;
                path.push(word);
            } else {
                places.push(word);
            }
        }
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let wanted = wanted(&path, &places, pending.as_deref(), &current);
        Line { wanted, current, client: client_arguments(&options) }
    }
}

fn option<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|known| known.get_long() == Some(name))
}

fn wanted(path: &[&str], places: &[String], pending: Option<&str>, current: &str) -> Wanted {
    match (path, places, pending) {
        (["item" | "watch", ..], _, Some("item")) => Wanted::Item,
        (["item", ..], _, Some("workflow")) => Wanted::Workflow,
        (_, _, Some("profile")) | (["profile", "check"], [], None) => Wanted::Profile,
        (_, _, Some(_)) => Wanted::Nothing,
        _ if current.starts_with('-') => Wanted::Nothing,
        (["item", "show" | "edit" | "act" | "wait"], [], None) => Wanted::Item,
        (["item", "act"], [id], None) => id.parse().map_or(Wanted::Nothing, Wanted::Action),
        _ => Wanted::Nothing,
    }
}

/// The words of a line; the last one is the one at the cursor, and empty after a space. Quotes hold words together.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in text.chars() {
        match (quote, letter) {
            (None, ' ' | '\t') if word.is_empty() && !words.is_empty() => {}
            (None, ' ' | '\t') => words.push(std::mem::take(&mut word)),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (_, letter) => word.push(letter),
        }
    }
    words.push(word);
    words
}

/// What a command line says about the client.
fn client_arguments(options: &[(String, String)]) -> ClientArguments {
    let given = |name: &str| options.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    ClientArguments {
        profile: given("profile"),
        url: given("url"),
        token_file: given("token-file").map(Into::into),
        insecure_http: options.iter().any(|(name, _)| name == "insecure-http"),
        ca_file: given("ca-file").map(Into::into),
        client_cert: given("client-cert").map(Into::into),
        client_key: given("client-key").map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn program() -> Command {
        let with = |name: &'static str| {
            let profile = Arg::new("profile").long("profile").action(clap::ArgAction::Set);
            let workflow = Arg::new("workflow").long("workflow").action(clap::ArgAction::Set);
            let submit = Arg::new("submit").long("submit").action(clap::ArgAction::SetTrue);
            Command::new(name).args([profile, workflow, submit])
        };
        let item = Command::new("item").subcommands([with("show"), with("act"), with("new"), with("list")]);
        Command::new("pilot").subcommands([item, Command::new("profile").subcommand(Command::new("check"))])
    }

    #[test]
    fn what_belongs_at_the_cursor_follows_from_the_words_before_it() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let action = Wanted::Action(id.parse().unwrap());
        for (text, wanted, current) in [
            ("pilot item show ", Wanted::Item, ""),
            ("pilot  item  show 0189", Wanted::Item, "0189"),
            (&format!("pilot item act {id} "), action, ""),
            (&format!("pilot item act --submit --profile work {id} ap"), Wanted::Action(id.parse().unwrap()), "ap"),
            (&format!("pilot item act {id} approve "), Wanted::Nothing, ""),
            ("pilot item act nonsense ", Wanted::Nothing, ""),
            ("pilot item show --pro", Wanted::Nothing, "--pro"),
            ("pilot item show --profile ", Wanted::Profile, ""),
            ("pilot profile check w", Wanted::Profile, "w"),
            ("pilot item new --workflow con", Wanted::Workflow, "con"),
            ("pilot item show --workflow 'a b' ", Wanted::Item, ""),
            ("pilot item ", Wanted::Nothing, ""),
            ("pilot", Wanted::Nothing, "pilot"),
            ("", Wanted::Nothing, ""),
        ] {
            let line = Line::read(text, &program());
            assert_eq!((line.wanted, &*line.current), (wanted, current), "{text}");
        }
        assert_eq!(Line::read("pilot item show --profile=work ", &program()).client.profile.as_deref(), Some("work"));
    }
}
