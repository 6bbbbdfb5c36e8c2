//! A message as the incoming webhooks of Teams ("Workflows") take it: an Adaptive Card.
//!
//! People's text is only in a `RichTextBlock`, which knows no Markdown: nothing there can become a link or formatting,
//! whatever the client supports. A `TextBlock` has only words of our own, our own link, and mentions.

use serde_json::{Value, json};

use crate::message::{Line, Message, Person};
use crate::words::{self, NOT_HERE, OPEN, Part, Reader};

/// Teams refuses messages of more than about 28 KB, and stores them in another form than they arrive.
const BYTES_MAX: usize = 24 * 1024;
/// More than a group that can act ever has.
const MENTIONS_MAX: usize = 20;
const NAME_MAX: usize = 60;

/// The body of the request to the webhook.
pub fn body(message: &Message) -> Value {
    let mut message = message.clone();
    loop {
        let body = whole(&message);
        if message.lines.len() < 2 || body.to_string().len() <= BYTES_MAX {
            return body;
        }
        message.lines.pop();
        message.more += 1;
    }
}

fn whole(message: &Message) -> Value {
    let headline = words::headline(message, Reader::Room);
    let mut elements = vec![paragraph(&[Run { size: "Large", ..Run::strong(&headline) }])];
    let is_only = words::only(message).is_some();
    elements.extend(message.lines.iter().map(|line| container(line, is_only)));
    if let Some(rest) = words::rest(message) {
        let mut items = vec![paragraph(&[Run::strong(&rest)])];
        items.extend(open(message.link.as_deref()));
        elements.push(json!({ "type": "Container", "separator": true, "spacing": "Medium", "items": items }));
    }
    let mentions = mentions(message);
    if !mentions.is_empty() {
        let texts: Vec<_> = mentions.iter().map(|mention| mention.text.as_str()).collect();
        elements.push(json!({ "type": "TextBlock", "text": format!("For {}", texts.join(", ")), "wrap": true }));
    }
    elements.push(paragraph(&[Run { subtle: true, size: "Small", ..Run::of(NOT_HERE) }]));
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": inert(&headline),
        "body": elements,
        "msteams": { "width": "Full", "entities": mentions.iter().map(Mention::entity).collect::<Vec<_>>() },
    });
    let kind = "application/vnd.microsoft.card.adaptive";
    json!({ "type": "message", "attachments": [{ "contentType": kind, "contentUrl": null, "content": card }] })
}

fn container(line: &Line, is_only: bool) -> Value {
    let mut items = Vec::new();
    items.push(paragraph(&[Run { size: "Medium", ..Run::strong(&words::title(line)) }]));
    if let Some(asked) = words::asked_among_others(line).filter(|_| !is_only) {
        items.push(paragraph(&[Run { warning: line.is_urgent, ..Run::strong(&asked) }]));
    }
    for parts in words::tasks(line) {
        let texts: Vec<_> = parts.iter().map(part).collect();
        let runs = texts.iter().map(|(text, strong)| Run { strong: *strong, ..Run::of(text) });
        items.push(paragraph(&runs.collect::<Vec<_>>()));
    }
    if let Some(until) = words::until(line) {
        items.push(paragraph(&[Run { warning: line.is_urgent, ..Run::strong(&until) }]));
    }
    items.push(paragraph(&[Run { subtle: true, ..Run::of(&words::facts(line)) }]));
    items.extend(open(line.link.as_deref()));
    let style = if line.is_urgent { "attention" } else { "default" };
    json!({ "type": "Container", "style": style, "separator": true, "spacing": "Medium", "items": items })
}

/// A text, and whether it is somebody's name.
fn part(part: &Part<'_>) -> (String, bool) {
    match part {
        Part::Words(words) => (words.clone(), false),
        Part::Person(person) => (words::name(person), true),
    }
}

struct Run<'a> {
    text: &'a str,
    size: &'static str,
    strong: bool,
    subtle: bool,
    warning: bool,
}

impl<'a> Run<'a> {
    fn of(text: &'a str) -> Run<'a> {
        Run { text, size: "Default", strong: false, subtle: false, warning: false }
    }

    fn strong(text: &'a str) -> Run<'a> {
        Run { strong: true, ..Run::of(text) }
    }

    /// Only what differs from the default, because the card may not be large.
    fn json(&self) -> Value {
        let mut run = json!({ "type": "TextRun", "text": inert(self.text) });
        let differs = [
            ("size", self.size != "Default", json!(self.size)),
            ("weight", self.strong, json!("Bolder")),
            ("isSubtle", self.subtle, json!(true)),
            ("color", self.warning, json!("Attention")),
        ];
        if let Some(fields) = run.as_object_mut() {
            fields
                .extend(differs.into_iter().filter(|(_, is, _)| *is).map(|(name, _, value)| (name.to_owned(), value)));
        }
        run
    }
}

fn paragraph(runs: &[Run<'_>]) -> Value {
    let runs: Vec<_> = runs.iter().map(Run::json).collect();
    json!({ "type": "RichTextBlock", "inlines": runs, "spacing": "Small" })
}

fn open(link: Option<&str>) -> Option<Value> {
    let link = words::link(link)?;
    Some(json!({ "type": "TextBlock", "text": format!("[{OPEN}]({link})"), "wrap": true, "spacing": "Small" }))
}

/// Text that a client neither replaces by a date, `{{DATE(…)}}`, nor takes for a mention or an entity. It cannot be
/// escaped here, so it is written with characters that look alike.
fn inert(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '<' => safe.push('‹'),
            '>' => safe.push('›'),
            '&' if characters.peek().copied().is_some_and(begins_entity) => safe.push('＆'),
            '{' if characters.peek() == Some(&'{') => safe.push_str("{ "),
            other => safe.push(other),
        }
    }
    safe
}

fn begins_entity(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '#'
}

struct Mention {
    text: String,
    name: String,
    address: String,
}

impl Mention {
    fn entity(&self) -> Value {
        let mentioned = json!({ "id": self.address, "name": self.name });
        json!({ "type": "mention", "text": self.text, "mentioned": mentioned })
    }
}

/// Everyone once, in one place, so that nobody is alerted for every item.
fn mentions(message: &Message) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    for person in message.lines.iter().flat_map(|line| &line.tasks).flat_map(|task| &task.who) {
        let Some(mention) = mention(person) else { continue };
        // Teams finds the person by this text, so it must not be ambiguous.
        let is_known = mentions.iter().any(|known| known.address == mention.address || known.text == mention.text);
        if !is_known && mentions.len() < MENTIONS_MAX {
            mentions.push(mention);
        }
    }
    mentions
}

fn mention(person: &Person) -> Option<Mention> {
    let address = person.mention.as_deref().filter(|address| is_address(address))?.to_owned();
    // This is in a `TextBlock`, so nothing but letters, digits and what stands between them in a name.
    let fits = |character: char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '.' | '\'');
    let name = words::shown(&person.name, NAME_MAX);
    let name: String = name.chars().map(|character| if fits(character) { character } else { '-' }).collect();
    if !name.contains(char::is_alphanumeric) {
        return None;
    }
    Some(Mention { text: format!("<at>{name}</at>"), name, address })
}

/// Whether this can be the name with which a user signs in to Teams, such as `ben@example.com`.
fn is_address(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+'".contains(&byte);
    text.len() <= 254
        && text.split_once('@').is_some_and(|(user, domain)| {
            [user, domain].iter().all(|part| !part.is_empty() && part.bytes().all(fits)) && domain.contains('.')
        })
}

#[cfg(test)]
mod tests;
