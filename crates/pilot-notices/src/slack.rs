//! A message as the incoming webhooks of Slack take it, and of the chats that copied them: Mattermost, Rocket.Chat and,
//! with `/slack` after its address, Discord.
//!
//! Slack shows `blocks`, and `text` only where there is no room, as on a locked phone. Mattermost and Discord ignore
//! `blocks` and read `text` as Markdown, so that has to be enough and safe in their languages too. There is no way to
//! escape `*` or `@` in all of them, which is why people's text either is in an element without any formatting or has
//! such characters replaced by others that look alike.

use serde_json::{Value, json};

use crate::message::{Line, Message, Person};
use crate::words::{self, OPEN, Part, Reader};

// https://docs.slack.dev/reference/block-kit/blocks: a message has up to 50 blocks. With at most four for an item and
// three around them, ten items are well within that.
const HEADER_MAX: usize = 150;
const SECTION_MAX: usize = 3_000;
/// Discord refuses a text of more than 2,000 characters; Slack allows 40,000.
const TEXT_MAX: usize = 2_000;
/// How much of a title is in `text`.
const TEXT_TITLE_MAX: usize = 80;

/// The body of the request to the webhook.
pub fn body(message: &Message) -> Value {
    json!({
        "text": text(message),
        "blocks": blocks(message),
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

fn blocks(message: &Message) -> Vec<Value> {
    let headline = words::headline(message, Reader::Room);
    let is_only = words::only(message).is_some();
    let mut blocks = vec![json!({ "type": "header", "text": plain(&headline, HEADER_MAX) })];
    for (place, line) in message.lines.iter().enumerate() {
        if place > 0 {
            blocks.push(json!({ "type": "divider" }));
        }
        blocks.push(title(line, is_only));
        let details = details(line, is_only);
        if !details.is_empty() {
            blocks.push(json!({ "type": "section", "text": formatted(&details) }));
        }
        blocks.push(json!({ "type": "context", "elements": [plain(&words::facts(line), SECTION_MAX)] }));
    }
    if let Some(rest) = words::rest(message) {
        let open = open(message.link.as_deref()).map(|open| format!(": {open}")).unwrap_or_default();
        blocks.push(json!({ "type": "divider" }));
        blocks.push(json!({ "type": "section", "text": formatted(&format!("*{rest}*{open}")) }));
    }
    blocks
}

/// Among others it is a header, so that one sees where an item begins. Neither form formats anything.
fn title(line: &Line, is_only: bool) -> Value {
    let (kind, most) = if is_only { ("section", SECTION_MAX) } else { ("header", HEADER_MAX) };
    json!({ "type": kind, "text": plain(&words::title(line), most) })
}

/// What has to be done, by whom and until when, and where.
fn details(line: &Line, is_only: bool) -> String {
    let mut details = Vec::new();
    if !is_only {
        details.extend(words::asked_among_others(line).map(|asked| format!("*{}*", harmless(&asked))));
    }
    details.extend(words::tasks(line).iter().map(|parts| parts.iter().map(part).collect()));
    let end: Vec<_> = [words::until(line).map(|until| format!("*{}*", harmless(&until))), open(line.link.as_deref())]
        .into_iter()
        .flatten()
        .collect();
    // The names give way, not the time and the link.
    let room = SECTION_MAX - end.iter().map(|line| line.len() + 1).sum::<usize>();
    while details.iter().map(|line| line.len() + 1).sum::<usize>() > room {
        details.pop();
    }
    details.extend(end);
    details.join("\n")
}

fn part(part: &Part<'_>) -> String {
    match part {
        Part::Words(words) => harmless(words),
        Part::Person(person) => mention(person).unwrap_or_else(|| harmless(&words::name(person))),
    }
}

/// Only the blocks mention somebody: the other chats do not know these ids.
fn unmentioned(part: &Part<'_>) -> String {
    match part {
        Part::Words(words) => harmless(words),
        Part::Person(person) => harmless(&words::name(person)),
    }
}

fn mention(person: &Person) -> Option<String> {
    person.mention.as_deref().filter(|id| is_member(id)).map(|id| format!("<@{id}>"))
}

/// Whether this is a member id of Slack, such as `U012AB3CD`.
fn is_member(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    id.strip_prefix(['U', 'W']).is_some_and(|rest| (2..=20).contains(&rest.len()) && rest.bytes().all(fits))
}

fn open(link: Option<&str>) -> Option<String> {
    words::link(link).map(|link| format!("<{}|{OPEN}>", escaped(link)))
}

/// What a notification shows, and all that some chats show.
fn text(message: &Message) -> String {
    // Fewer items, until it fits. None may be left if a link is very long.
    let candidates = (0..=message.lines.len()).rev().map(|shown| text_with(message, shown));
    let fitting = candidates.into_iter().find(|text| text.len() <= TEXT_MAX);
    fitting.unwrap_or_else(|| harmless(&words::headline(message, Reader::Room)))
}

fn text_with(message: &Message, shown: usize) -> String {
    let mut lines = vec![format!("*{}*", harmless(&words::headline(message, Reader::Room)))];
    lines.extend(message.lines.iter().take(shown).map(text_line));
    // On a phone the title is seen, and the names are not; there is room for them if this is the only item.
    let tasks = words::only(message).filter(|_| shown > 0).map(words::tasks).unwrap_or_default();
    lines.extend(tasks.iter().map(|parts| parts.iter().map(unmentioned).collect::<String>()));
    let more = message.more + message.lines.len() - shown;
    if more > 0 {
        let open = open(message.link.as_deref()).map(|open| format!(": {open}")).unwrap_or_default();
        lines.push(format!("{more} more{open}"));
    }
    lines.join("\n")
}

fn text_line(line: &Line) -> String {
    let title = words::shown(&words::title(line), TEXT_TITLE_MAX);
    let place = open(line.link.as_deref()).unwrap_or_else(|| line.item.as_str().to_owned());
    let until = words::until(line).map(|until| format!("{} · ", harmless(&until))).unwrap_or_default();
    format!("• {} · {until}{place}", harmless(&title))
}

/// An element in which nothing is formatting. Only whole escapes are left when it is shortened.
fn plain(text: &str, most: usize) -> Value {
    let fitting = (0..=text.chars().count()).rev().map(|length| escaped(&words::shown(text, length)));
    let text = fitting.into_iter().find(|text| text.len() <= most).unwrap_or_default();
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// An element with our own formatting. Verbatim, so that nothing else in it becomes a link or a mention.
fn formatted(text: &str) -> Value {
    json!({ "type": "mrkdwn", "text": text, "verbatim": true })
}

/// As Slack asks: these three and no others.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn is_time(before: char, after: char) -> bool {
    before.is_ascii_digit() && after.is_ascii_digit()
}

/// Text that is not formatting, a link, a mention or an emoji, neither in Slack's language nor in Markdown.
fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let inside_word = before.is_alphanumeric() && after.is_alphanumeric();
        safe.push(match character {
            '*' => '∗',
            '~' => '∼',
            '`' => 'ˋ',
            '@' => '＠',
            '#' => '＃',
            '[' => '［',
            ']' => '］',
            '|' => '｜',
            '\\' => '＼',
            // Inside a word it formats nothing, and names often have one.
            '_' if !inside_word => '＿',
            // `https://` and `:fire:`, but not `Until: today`.
            ':' if !after.is_whitespace() && !is_time(before, after) => '∶',
            // `evil.example`, but not `1.5`.
            '.' if inside_word && !after.is_ascii_digit() => '․',
            other => other,
        });
        before = character;
    }
    escaped(&safe)
}

#[cfg(test)]
mod tests;
