//! Messages that the tests of every form write.

use crate::message::{Line, Message, Occasion, Person, Task, Why};
use pilot_core::role::Role;

pub(crate) const LINK: &str = "https://pilot.example/items/01890a5d-ac96-774b-bcce-b302099a8057";

pub(crate) fn person(name: &str, mention: Option<&str>) -> Person {
    Person { name: name.to_owned(), mention: mention.map(str::to_owned) }
}

pub(crate) fn line(title: &str, why: Why) -> Line {
    let who = ["ben", "cara", "dan"].map(|name| person(name, None)).to_vec();
    Line {
        why,
        item: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        title: Some(title.to_owned()),
        workflow: "Controlled operation".to_owned(),
        state: "awaiting_approval".to_owned(),
        risk: Some("high".to_owned()),
        created_by: "ana".to_owned(),
        tasks: vec![Task { action: "approve".to_owned(), role: Role::Approver, needed: 2, who, others: 4 }],
        until: Some("20 Nov 2026, 10:00 CET".to_owned()),
        link: Some(LINK.to_owned()),
        is_urgent: false,
    }
}

pub(crate) fn about(lines: Vec<Line>) -> Message {
    Message { occasion: Occasion::News, lines, more: 0, link: Some("https://pilot.example/waiting".to_owned()) }
}

pub(crate) fn waiting() -> Message {
    about(vec![line("Rotate the payment keys", Why::Waits)])
}

/// With a mention of each kind, of which every form uses its own.
pub(crate) fn mentioning() -> Message {
    let mut message = waiting();
    message.lines[0].tasks[0].who =
        vec![person("ben", Some("U0BEN")), person("cara", Some("cara@example.com")), person("dan_k", None)];
    message
}

pub(crate) fn reminder() -> Message {
    about(vec![line("Rotate the payment keys", Why::Reminder { left: "36 hours".to_owned() })])
}

/// Urgent, and with two roles that could act.
pub(crate) fn escalation() -> Message {
    let mut line = line("Rotate the payment keys", Why::Escalated { left: Some("12 hours".to_owned()) });
    line.is_urgent = true;
    line.tasks[0].needed = 1;
    line.tasks[0].others = 0;
    let who = vec![person("dora", None)];
    line.tasks.push(Task { action: "clear".to_owned(), role: Role::SecurityAdmin, needed: 1, who, others: 0 });
    about(vec![line])
}

pub(crate) fn end() -> Message {
    let mut line = line("Rotate the payment keys", Why::Ended);
    line.state = "rejected".to_owned();
    line.tasks.clear();
    line.until = None;
    about(vec![line])
}

pub(crate) fn digest() -> Message {
    let lines = (1..=10).map(|number| line(&format!("Rotate key {number}"), Why::Waits)).collect();
    Message { more: 7, ..about(lines) }
}

pub(crate) fn summary() -> Message {
    let mut untitled = line("", Why::Reminder { left: "5 hours".to_owned() });
    untitled.title = None;
    untitled.link = None;
    untitled.is_urgent = true;
    Message { occasion: Occasion::Summary, ..about(vec![untitled, line("Close the old account", Why::Waits)]) }
}

/// What somebody may write to mislead the readers of a notice.
pub(crate) const HOSTILE: &[&str] = &[
    "<!channel> approve now",
    "<!here|here> <!everyone>",
    "<@U0BEN> <#C123|general> <!subteam^S123>",
    "@here @channel @everyone @all @ben",
    "<https://evil.example|Open in Pilot>",
    "https://evil.example/login www.evil.example evil.example",
    "[Open in Pilot](https://evil.example)",
    "![x](https://evil.example/pixel.png)",
    "*bold* _italic_ ~struck~ `code` ```block```",
    "**bold** __bold__ ~~struck~~ ||spoiler||",
    "> quote\n# heading\n- list\n1. list",
    "<at>ben</at> <at>cara</at>",
    "{{DATE(2026-11-20T09:00:00Z, SHORT)}} {{{TIME(2026-11-20T09:00:00Z)}}}",
    "${title} @{triggerBody()} {{#each}}",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\"><a href='https://evil.example'>Open in Pilot</a><!--",
    "&lt;at&gt;ben&lt;/at&gt; &amp;lt; &#60;b&#62;",
    "Rotate\r\nBcc: everybody@example.com\r\n\r\n<b>Approved</b>",
    "Rotate\n\n.\r\nMAIL FROM:<a@b.example>",
    "=?utf-8?q?Bcc=3A_x=40example.com?=",
    "safe \u{202e}yllaer ton\u{202c} \u{2066}x\u{2069}",
    "zero\u{200b}width\u{200d}and\u{feff}tags\u{e0041}",
    "\u{0}\u{7}\u{1b}[31mred\u{9b}0m\u{7f}",
    ":fire: :skull: 🔥🔥🔥 👩\u{200d}💻",
    "   \t ",
    "",
    "Z\u{0300}\u{0301}\u{0302}\u{0303}\u{0304}\u{0305}a\u{0306}\u{0307}lgo",
];

/// The same text wherever somebody's text can be, and a very long one.
pub(crate) fn hostile() -> Vec<Message> {
    let long = ["<&*_{{".repeat(500), "a".repeat(5_000), "\u{202e}".repeat(2_000)];
    let texts = HOSTILE.iter().copied().chain(long.iter().map(String::as_str));
    texts.flat_map(|text| [everywhere(text, 1), everywhere(text, 10)]).collect()
}

fn everywhere(text: &str, lines: usize) -> Message {
    let lines = [Why::Waits, Why::Ended, Why::Reminder { left: text.to_owned() }, Why::Escalated { left: None }]
        .into_iter()
        .cycle()
        .take(lines)
        .map(|why| {
            let mut line = line(text, why);
            for field in [&mut line.workflow, &mut line.state, &mut line.created_by] {
                text.clone_into(field);
            }
            line.risk = Some(text.to_owned());
            line.until = Some(text.to_owned());
            line.link = Some(format!("https://pilot.example/{text}"));
            let who = vec![person(text, Some(text)), person("ben", Some("U0BEN")), person(text, Some("b@example.com"))];
            let task = Task { action: text.to_owned(), role: Role::Approver, needed: 1, who, others: 1 };
            line.tasks = vec![task; 9];
            line
        });
    Message { occasion: Occasion::News, lines: lines.collect(), more: 3, link: Some(text.to_owned()) }
}
