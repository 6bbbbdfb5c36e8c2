//! The report: one self-contained page for people.

mod sections;
mod timeline;

use std::io;

use askama::Template;
use pilot_core::certain::Certain as _;
use pilot_core::document::ContentDigest;
use pilot_core::entry::{Entry, EntryType};
use pilot_core::item::ItemId;
use pilot_core::time::Time;
use pilot_core::visible::{hidden, visible};
use pilot_explain::graph::{Layouts, Trail};
use serde_json::Value;

use crate::audit::Audit;
use crate::audit::population::Population;
use crate::bundle::source::Source;
use crate::bundle::{BundleError, CHECKPOINT, Parts, Scope, assemble};
use crate::credentials;
use crate::note::{Note, NoteKey};
use crate::replay::Documents;
use crate::verify::contents::{Contents, Held};
use crate::verify::items::histories;
use crate::verify::{
    About, Conclusion, Finding, IN_MEMORY, ItemVerdict, Outcome, Trust, Verdict, Watch, examine, opened,
};
use sections::{Sections, clock, quoted};
use timeline::{Step, gathered};

/// How many items are shown in detail. Nobody would read or print a page with more.
const DETAILED_MAX: usize = 100;
const LEFT_OUT: &str = "(left out)";

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'r> {
    subject: String,
    class: &'static str,
    mark: &'static str,
    headline: String,
    /// For the top of every printed page.
    running: String,
    sections: Sections,
    scope: String,
    made: String,
    cosigners: String,
    about: &'r About,
    checks: Vec<Row>,
    controls: Vec<Row>,
    rows: Vec<ItemRow>,
    untold: usize,
    items: Vec<ItemView>,
    others: Vec<OtherView>,
}

struct Row {
    title: &'static str,
    class: &'static str,
    words: &'static str,
    detail: String,
}

struct ItemRow {
    id: String,
    title: String,
    workflow: String,
    state: String,
    people: String,
    class: &'static str,
    words: &'static str,
    detailed: bool,
}

struct ItemView {
    id: String,
    title: String,
    workflow: String,
    state: String,
    /// A warning about invisible characters; empty if there are none.
    warning: String,
    version: u64,
    definition: String,
    controls: Vec<Row>,
    timeline: String,
    diagram: String,
    steps: Vec<StepView>,
    contents: Vec<ContentView>,
}

struct StepView {
    entry: u64,
    at: String,
    who: String,
    role: &'static str,
    action: String,
    state: String,
    comment: String,
    inputs: Vec<Piece>,
}

struct ContentView {
    entry: u64,
    digest: ContentDigest,
    title: String,
    payload: Vec<Piece>,
}

/// A part of a JSON text. String contents are isolated, so that they cannot reorder the text around them.
struct Piece {
    text: String,
    is_string: bool,
}

struct OtherView {
    entry: u64,
    at: String,
    kind: &'static str,
    who: String,
    /// What it says about credentials, one sentence each.
    told: Vec<String>,
    details: String,
}

/// The report on a bundle, or the verdict on one that cannot even be opened.
pub fn report(bundle: &[u8], trust: &Trust) -> Result<String, Box<Verdict>> {
    report_with(bundle, trust, &Layouts::default())
}

/// The same, with layouts that were made for earlier reports.
pub fn report_with(bundle: &[u8], trust: &Trust, layouts: &Layouts) -> Result<String, Box<Verdict>> {
    written(&bundle.into(), trust, layouts, &mut |_, _, _| {}).certain(IN_MEMORY)
}

/// The report on a bundle that is read piece by piece. The outer error is of whatever it is read from.
pub fn report_from(
    source: &Source<'_>,
    trust: &Trust,
    watch: &mut Watch<'_>,
) -> io::Result<Result<String, Box<Verdict>>> {
    written(source, trust, &Layouts::default(), watch)
}

fn written(
    source: &Source<'_>,
    trust: &Trust,
    layouts: &Layouts,
    watch: &mut Watch<'_>,
) -> io::Result<Result<String, Box<Verdict>>> {
    let contents = match opened(source, trust, watch)? {
        Ok(contents) => contents,
        Err(verdict) => return Ok(Err(verdict)),
    };
    let verdict = examine(&contents, trust, watch)?;
    let Some(about) = &verdict.about else { return Ok(Err(Box::new(verdict))) };
    let page = page(&contents, trust, &verdict, about, layouts)?.render();
    // Applied to the whole page, so that no text on it can be forgotten.
    Ok(page.map(|page| visible(&page).into_owned()).map_err(|_| Box::new(verdict)))
}

/// A whole bundle with a report in it.
pub fn assemble_with_report(parts: &Parts, key: &NoteKey, trust: &Trust) -> Result<Vec<u8>, BundleError> {
    let bare = assemble(parts, key)?;
    let report = report(&bare, trust).map_err(|verdict| BundleError::Report(verdict.sentence()))?;
    assemble(&Parts { report: Some(report), ..parts.clone() }, key)
}

fn page<'r>(
    contents: &Contents<'_>,
    trust: &Trust,
    verdict: &Verdict,
    about: &'r About,
    layouts: &Layouts,
) -> io::Result<Page<'r>> {
    let mut detailed: Vec<_> = verdict.items.iter().collect();
    detailed.sort_by_key(|item| item.outcome != Outcome::Fails);
    detailed.truncate(DETAILED_MAX);
    let histories = histories(contents);
    let view = |item: &&ItemVerdict| {
        let history = histories.iter().find(|history| *history.id == item.id)?;
        Some(history.read(contents).and_then(|history| item_view(contents, item, &history, layouts)))
    };
    let items: Vec<_> = detailed.iter().filter_map(view).collect::<io::Result<_>>()?;
    let others = contents.entries.iter().filter(|mark| mark.item.is_none());
    let others = others.map(|mark| Ok(other_view(&contents.entry(mark)?))).collect::<io::Result<_>>()?;
    let is_detailed = |id: &ItemId| detailed.iter().any(|item| item.id == *id);
    Ok(Page {
        subject: subject(about, &verdict.items),
        class: match verdict.verdict {
            Conclusion::Holds => class(Outcome::Holds),
            Conclusion::DoesNotHold => class(Outcome::Fails),
            Conclusion::HoldsAsFarAsChecked => class(Outcome::NotChecked),
        },
        mark: match verdict.verdict {
            Conclusion::Holds => "✓",
            Conclusion::DoesNotHold => "✗",
            Conclusion::HoldsAsFarAsChecked => "–",
        },
        headline: verdict.sentence(),
        running: quoted(&format!("{} · {}", about.origin, scope(about))),
        sections: Sections::of(Audit::of(contents, trust, verdict, Population::default())?),
        scope: scope(about),
        made: clock(about.made),
        cosigners: cosigners(contents),
        about,
        checks: verdict.checks.iter().map(|check| row(check.name.title(), check)).collect(),
        controls: verdict.controls.iter().map(|control| row(control.name.title(), control)).collect(),
        rows: verdict.items.iter().map(|item| item_row(item, is_detailed(&item.id))).collect(),
        untold: verdict.items.len().saturating_sub(items.len()),
        items,
        others,
    })
}

fn subject(about: &About, items: &[ItemVerdict]) -> String {
    match (&about.scope, items) {
        (Scope::Item(_), [item]) => title(item),
        (Scope::Item(id), _) => format!("Item {id}"),
        (Scope::Period { from, to, .. }, _) if *from == Time::EPOCH => format!("Everything until {} UTC", clock(*to)),
        (Scope::Period { from, to, .. }, _) => format!("{} to {} UTC", clock(*from), clock(*to)),
    }
}

fn scope(about: &About) -> String {
    match &about.scope {
        Scope::Item(id) => format!("everything about item {id}"),
        Scope::Period { from, to, first, end } => {
            format!("every entry from {from} to {to}: entries {first} to {}", end.saturating_sub(1))
        }
    }
}

fn title(item: &ItemVerdict) -> String {
    item.title.clone().unwrap_or_else(|| format!("Item {}, its title {LEFT_OUT}", item.id))
}

fn cosigners(contents: &Contents<'_>) -> String {
    let note = Note::parse(contents.text(CHECKPOINT).unwrap_or_default());
    let names = note.iter().flat_map(|note| &note.signatures).map(|line| line.name);
    names.filter(|name| *name != contents.manifest.origin).collect::<Vec<_>>().join(", ")
}

const fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::Fails => "fails",
        Outcome::NotChecked => "not_checked",
    }
}

fn row<K>(title: &'static str, finding: &Finding<K>) -> Row {
    let outcome = finding.outcome;
    Row { title, class: class(outcome), words: outcome.words(), detail: finding.detail.clone() }
}

fn item_row(item: &ItemVerdict, detailed: bool) -> ItemRow {
    ItemRow {
        id: item.id.to_string(),
        title: title(item),
        workflow: format!("{} v{}", item.workflow, item.workflow_version),
        state: item.state.to_string(),
        people: item.people.iter().map(|actor| actor.actor_id.as_str()).collect::<Vec<_>>().join(", "),
        class: class(item.outcome),
        words: item.outcome.words(),
        detailed,
    }
}

fn lane(entry: &Entry) -> &'static str {
    entry.role.map_or("clock", |role| role.as_str())
}

fn item_view(
    contents: &Contents<'_>,
    item: &ItemVerdict,
    history: &[Held<'_>],
    layouts: &Layouts,
) -> io::Result<ItemView> {
    let digest = history.first().and_then(|held| held.entry.definition.clone()).unwrap_or_else(|| "".into());
    let moves = history.iter().filter_map(|held| Some((held.entry.from.clone()?, held.entry.to.clone()?)));
    let trail = Trail { moves: moves.collect(), current: Some(item.state.clone()) };
    let diagram = contents.definitions.get(&*digest).map(|definition| layouts.svg(definition, Some(&trail)));
    let mut state = String::new();
    let steps = gathered(history.iter().map(|held| {
        let entry = &held.entry;
        if let Some(to) = &entry.to {
            state = to.to_string();
        }
        Step {
            action: action(entry),
            who: entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            lane: lane(entry),
            state: state.clone(),
            at: entry.at,
            count: 1,
        }
    }));
    let (mut hidden, mut views, mut written) = (0, Vec::new(), Vec::new());
    for held in history {
        let brought = contents.brought(&held.entry)?;
        hidden += hidden_in(brought.documents());
        views.push(step_view(&held.entry, brought.documents()));
        written.extend(content_view(&held.entry, brought.documents()));
    }
    Ok(ItemView {
        id: item.id.to_string(),
        title: title(item),
        workflow: format!("{} v{}", item.workflow, item.workflow_version),
        state: item.state.to_string(),
        warning: warning(hidden),
        version: item.version,
        definition: digest.to_string(),
        controls: item.controls.iter().map(|control| row(control.name.title(), control)).collect(),
        timeline: timeline::svg(&steps),
        diagram: inlined(&diagram.unwrap_or_default(), &item.id),
        steps: views,
        contents: written,
    })
}

/// Ids inside a picture must be unique, because several pictures may be on one page.
fn inlined(svg: &str, id: &ItemId) -> String {
    svg.replace("id=\"t\"", &format!("id=\"t-{id}\""))
        .replace("id=\"d\"", &format!("id=\"d-{id}\""))
        .replace("aria-labelledby=\"t d\"", &format!("aria-labelledby=\"t-{id} d-{id}\""))
}

fn action(entry: &Entry) -> String {
    match (&entry.action, entry.r#type) {
        (_, EntryType::ItemComment) => "comment".to_owned(),
        (_, EntryType::PermitIssued) => "permit token issued".to_owned(),
        (Some(action), _) => action.to_string(),
        (None, kind) => kind.to_string(),
    }
}

fn member(bytes: Option<&[u8]>, name: &str) -> Option<Value> {
    serde_json::from_slice::<Value>(bytes?).ok()?.get_mut(name).map(Value::take)
}

fn pretty(value: &Value) -> Vec<Piece> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut pieces = vec![Piece { text: String::new(), is_string: false }];
    let mut is_escaped = false;
    for character in text.chars() {
        let is_string = pieces.last().is_some_and(|piece| piece.is_string);
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        if is_end {
            pieces.push(Piece { text: String::new(), is_string: !is_string });
        } else if let Some(piece) = pieces.last_mut() {
            piece.text.push(character);
        }
    }
    pieces
}

/// The number of hidden characters in what an entry brought: content, comment and inputs.
fn hidden_in(documents: Documents<'_>) -> usize {
    let values = [documents.content, documents.comment, documents.inputs].into_iter().flatten();
    values.filter_map(|bytes| serde_json::from_slice(bytes).ok()).map(|value| hidden_values(&value)).sum()
}

fn hidden_values(value: &Value) -> usize {
    match value {
        Value::String(text) => hidden(text),
        Value::Array(list) => list.iter().map(hidden_values).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| hidden(name) + hidden_values(value)).sum(),
        _ => 0,
    }
}

fn warning(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        1 => "What was written about this item contains 1 hidden character. It is shown as its code point.".to_owned(),
        many => format!(
            "What was written about this item contains {many} hidden characters. They are shown as their code points."
        ),
    }
}

fn step_view(entry: &Entry, documents: Documents<'_>) -> StepView {
    let absent = || LEFT_OUT.to_owned();
    let comment = entry.comment.as_ref().map(|_| {
        member(documents.comment, "comment").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_else(absent)
    });
    let left_out = || vec![Piece { text: absent(), is_string: false }];
    let inputs = entry.inputs.as_ref();
    let inputs = inputs.map(|_| member(documents.inputs, "inputs").map_or_else(left_out, |inputs| pretty(&inputs)));
    let state = match (&entry.from, &entry.to) {
        (Some(from), Some(to)) if from != to => format!("{from} → {to}"),
        (_, Some(to)) => to.to_string(),
        _ => String::new(),
    };
    StepView {
        entry: entry.index,
        at: clock(entry.at),
        who: entry.actor_id.as_ref().map_or_else(|| "time".to_owned(), ToString::to_string),
        role: lane(entry),
        action: action(entry),
        state,
        comment: comment.unwrap_or_default(),
        inputs: inputs.unwrap_or_default(),
    }
}

fn content_view(entry: &Entry, documents: Documents<'_>) -> Option<ContentView> {
    let brings = matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
    let digest = entry.content.clone().filter(|_| brings)?;
    let bytes = documents.content;
    let title = member(bytes, "title").and_then(|title| title.as_str().map(str::to_owned));
    Some(ContentView {
        entry: entry.index,
        digest,
        title: title.unwrap_or_else(|| LEFT_OUT.to_owned()),
        payload: member(bytes, "payload").map(|payload| pretty(&payload)).unwrap_or_default(),
    })
}

fn other_view(entry: &Entry) -> OtherView {
    OtherView {
        entry: entry.index,
        at: clock(entry.at),
        kind: entry.r#type.as_str(),
        who: entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        told: credentials::events(entry).iter().map(ToString::to_string).collect(),
        details: entry.details.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}
