//! A message as a mail: plain text, and HTML that says the same. Nothing in it is loaded from elsewhere, so opening it
//! tells nobody anything.

use crate::message::{Line, Message};
use crate::words::{self, NOT_HERE, OPEN, Part, Reader};

/// Longer ones are cut off in every list of mails.
const SUBJECT_MAX: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// One line of at most 120 characters.
    pub subject: String,
    pub text: String,
    pub html: String,
}

pub fn letter(message: &Message) -> Letter {
    Letter { subject: subject(message), text: text(message), html: html(message) }
}

fn subject(message: &Message) -> String {
    let subject = match words::only(message) {
        Some(line) => format!("{}: {}", words::subject_head(line), words::title(line)),
        None => words::headline(message, Reader::Person),
    };
    words::shown(&subject, SUBJECT_MAX)
}

fn text(message: &Message) -> String {
    let headline = words::headline(message, Reader::Person);
    let is_only = words::only(message).is_some();
    let mut paragraphs = vec![headline];
    paragraphs.extend(message.lines.iter().map(|line| text_of(line, is_only)));
    if let Some(rest) = words::rest(message) {
        let link = words::link(message.link.as_deref()).map(|link| format!(": {link}")).unwrap_or_default();
        paragraphs.push(format!("{rest}{link}"));
    }
    paragraphs.push(NOT_HERE.to_owned());
    paragraphs.join("\n\n") + "\n"
}

fn text_of(line: &Line, is_only: bool) -> String {
    let mut lines = vec![words::title(line)];
    lines.extend(words::asked_among_others(line).filter(|_| !is_only));
    lines.extend(words::tasks(line).iter().map(|parts| parts.iter().map(text_part).collect()));
    lines.extend(words::until(line));
    lines.push(words::facts(line));
    lines.extend(words::link(line.link.as_deref()).map(|link| format!("{OPEN}: {link}")));
    lines.join("\n")
}

fn text_part(part: &Part<'_>) -> String {
    match part {
        Part::Words(words) => words.clone(),
        Part::Person(person) => words::name(person),
    }
}

// Colours only for a line at the side, in tones that are seen on white and on black; text and background are the
// reader's own.
const CALM: &str = "#3b82f6";
const URGENT: &str = "#dc2626";
const FONT: &str =
    "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.45";

fn html(message: &Message) -> String {
    let headline = words::headline(message, Reader::Person);
    let is_only = words::only(message).is_some();
    let items: String = message.lines.iter().map(|line| html_of(line, is_only)).collect();
    let rest = words::rest(message).map(|rest| {
        let link = anchor(message.link.as_deref()).map(|anchor| format!(": {anchor}")).unwrap_or_default();
        format!("<p style=\"margin:20px 0\"><b>{}</b>{link}</p>\n", escaped(&rest))
    });
    let (title, headline, rest) = (escaped(&subject(message)), escaped(&headline), rest.unwrap_or_default());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"supported-color-schemes\" content=\"light dark\">\n\
         <title>{title}</title>\n</head>\n<body style=\"margin:0;padding:16px;{FONT}\">\n\
         <div style=\"max-width:600px\">\n<h1 style=\"margin:0 0 16px;font-size:22px;line-height:1.25\">{headline}</h1>\n\
         {items}{rest}<p style=\"margin:24px 0 0;font-size:13px;opacity:0.7\">{NOT_HERE}</p>\n</div>\n</body>\n</html>\n"
    )
}

fn html_of(line: &Line, is_only: bool) -> String {
    let colour = if line.is_urgent { URGENT } else { CALM };
    let mut rows = vec![row("font-size:18px;font-weight:bold", &escaped(&words::title(line)))];
    let asked = words::asked_among_others(line).filter(|_| !is_only);
    rows.extend(asked.map(|asked| row("font-weight:bold", &escaped(&asked))));
    for parts in words::tasks(line) {
        rows.push(row("", &parts.iter().map(html_part).collect::<String>()));
    }
    rows.extend(words::until(line).map(|until| row("font-weight:bold", &escaped(&until))));
    rows.push(row("font-size:14px;opacity:0.75", &escaped(&words::facts(line))));
    rows.extend(anchor(line.link.as_deref()).map(|anchor| row("margin-top:8px", &anchor)));
    format!(
        "<div style=\"margin:0 0 16px;padding:2px 0 2px 14px;border-left:4px solid {colour}\">\n{}</div>\n",
        rows.concat()
    )
}

/// `dir`, so that a title written from right to left does not turn its neighbours around.
fn row(style: &str, content: &str) -> String {
    format!("<p dir=\"auto\" style=\"margin:4px 0;text-align:left;{style}\">{content}</p>\n")
}

fn html_part(part: &Part<'_>) -> String {
    match part {
        Part::Words(words) => escaped(words),
        Part::Person(person) => format!("<b>{}</b>", escaped(&words::name(person))),
    }
}

fn anchor(link: Option<&str>) -> Option<String> {
    let style = "font-weight:bold";
    words::link(link).map(|link| format!("<a href=\"{}\" style=\"{style}\">{OPEN}</a>", escaped(link)))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests;
