//! What a verification found, for people and for programs.

use std::collections::BTreeSet;
use std::fmt;

use pilot_core::actor::Actor;
use pilot_core::certain::Certain as _;
use pilot_core::decide::Unasked;
use pilot_core::item::{ItemId, WorkflowRef};
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

use crate::bundle::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Holds,
    Fails,
    /// It could not be checked; the detail says why. This is not a fault.
    NotChecked,
}

/// What is checked about the bundle as a whole, in this order. If one of the first three fails, nothing further is
/// trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    Container,
    Manifest,
    Files,
    Checkpoint,
    Witnesses,
    Inclusion,
    Completeness,
    Times,
    Pins,
    Documents,
    Legality,
}

impl Check {
    pub const ALL: [Check; 11] = [
        Check::Container,
        Check::Manifest,
        Check::Files,
        Check::Checkpoint,
        Check::Witnesses,
        Check::Inclusion,
        Check::Completeness,
        Check::Times,
        Check::Pins,
        Check::Documents,
        Check::Legality,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Check::Container => "container",
            Check::Manifest => "manifest",
            Check::Files => "files",
            Check::Checkpoint => "checkpoint",
            Check::Witnesses => "witnesses",
            Check::Inclusion => "in the log",
            Check::Completeness => "complete",
            Check::Times => "times",
            Check::Pins => "as pinned",
            Check::Documents => "documents",
            Check::Legality => "by the rules",
        }
    }
}

/// What is checked for each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    People,
    Quorum,
    Window,
    Content,
    Steps,
    Times,
    RoleMap,
    Credentials,
}

impl Control {
    pub const ALL: [Control; 8] = [
        Control::People,
        Control::Quorum,
        Control::Window,
        Control::Content,
        Control::Steps,
        Control::Times,
        Control::RoleMap,
        Control::Credentials,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Control::People => "distinct people",
            Control::Quorum => "quorum",
            Control::Window => "window",
            Control::Content => "content unchanged",
            Control::Steps => "steps in order",
            Control::Times => "times in order",
            Control::RoleMap => "role map",
            Control::Credentials => "credentials",
        }
    }

    /// The control that a broken rule belongs to.
    pub fn of_rule(rule: &str) -> Control {
        match rule {
            "separation_of_duties" | "role_forbidden" | "not_owner" | "already_decided" => Control::People,
            "quorum" => Control::Quorum,
            "outside_window" => Control::Window,
            "content_changed" => Control::Content,
            "time_order" => Control::Times,
            "role_map" => Control::RoleMap,
            "credential" => Control::Credentials,
            _ => Control::Steps,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding<K> {
    pub name: K,
    pub outcome: Outcome,
    pub detail: String,
}

impl<K> Finding<K> {
    pub fn holds(name: K, detail: impl Into<String>) -> Finding<K> {
        Finding { name, outcome: Outcome::Holds, detail: detail.into() }
    }

    pub fn fails(name: K, detail: impl Into<String>) -> Finding<K> {
        Finding { name, outcome: Outcome::Fails, detail: detail.into() }
    }

    pub fn not_checked(name: K, detail: impl Into<String>) -> Finding<K> {
        Finding { name, outcome: Outcome::NotChecked, detail: detail.into() }
    }
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub check: Check,
    /// A refusal's code, or a word of our own where there is no refusal.
    pub rule: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    pub what: String,
}

impl Fault {
    pub fn new(check: Check, rule: &'static str, what: impl Into<String>) -> Fault {
        Fault { check, rule, file: None, entry: None, item: None, what: what.into() }
    }

    #[must_use]
    pub fn in_file(self, path: impl Into<String>) -> Fault {
        Fault { file: Some(path.into()), ..self }
    }

    #[must_use]
    pub fn at_entry(self, index: u64) -> Fault {
        Fault { entry: Some(index), ..self }
    }

    #[must_use]
    pub fn of_item(self, item: &ItemId) -> Fault {
        Fault { item: Some(item.clone()), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.entry.map(|index| format!("entry {index}"));
        let item = self.item.as_ref().map(|item| format!("item {item}"));
        let place: Vec<_> = [self.file.clone(), entry, item].into_iter().flatten().collect();
        let place = if place.is_empty() { "the bundle".to_owned() } else { place.join(", ") };
        write!(f, "{place}: {} [{}]", self.what, self.rule)
    }
}

/// What a bundle says about itself; trusted only after its signature was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    pub origin: String,
    /// The verifier key it was checked with.
    pub key: String,
    pub scope: Scope,
    pub made: Time,
    /// Entries in the log at the checkpoint.
    pub size: u64,
    /// The root of the log's tree at the checkpoint, in base64.
    pub root: String,
    /// Entries in this bundle.
    pub entries: usize,
    pub documents: usize,
    /// Files that the manifest lists and the bundle is allowed to lack.
    pub left_out: Vec<String>,
    /// SHA-256 of the checkpoint's text, the part that is signed. It does not change when a witness cosigns.
    pub checkpoint: String,
    /// The definitions that items of this bundle move by.
    pub definitions: Vec<WorkflowRef>,
    /// The digests of the role maps in force.
    pub role_maps: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemVerdict {
    pub id: ItemId,
    pub workflow: Name,
    pub workflow_version: u32,
    /// Absent if it was left out.
    pub title: Option<String>,
    pub state: Name,
    pub version: u64,
    pub entries: usize,
    pub people: Vec<Actor>,
    /// Every move was replayed by the rules.
    pub replayed: bool,
    pub outcome: Outcome,
    pub controls: Vec<Finding<Control>>,
}

/// The overall result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    Holds,
    DoesNotHold,
    /// No fault was found, but something was erased or left out, and only its content could show a fault.
    HoldsAsFarAsChecked,
}

/// Why a verdict is only "as far as it could be checked".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// Documents were erased or left out.
    LeftOut,
    /// The period ends where the log ends, and no witness has seen the log after that.
    EndOfPeriod,
    /// The user wants to know about everything that was not checked.
    Strict,
}

impl Gap {
    pub const fn words(self) -> &'static str {
        match self {
            Gap::LeftOut => "documents were erased or left out",
            Gap::EndOfPeriod => "nothing shows that the period is complete at its end",
            Gap::Strict => "not everything was checked, and --strict requires it",
        }
    }
}

/// A question that could not be checked for an entry, because the document it depends on was erased or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    pub item: ItemId,
    pub entry: u64,
    pub question: Unasked,
}

impl Serialize for Open {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_struct("Open", 4)?;
        members.serialize_field("item", &self.item)?;
        members.serialize_field("entry", &self.entry)?;
        members.serialize_field("question", &self.question)?;
        members.serialize_field("what", self.question.words())?;
        members.end()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// No fault was found. `verdict` says what could not be checked.
    pub holds: bool,
    pub verdict: Conclusion,
    /// Why it is only as far as it could be checked.
    pub gaps: BTreeSet<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    pub checks: Vec<Finding<Check>>,
    /// Each control over all items.
    pub controls: Vec<Finding<Control>>,
    pub items: Vec<ItemVerdict>,
    /// What only missing content could answer.
    pub unasked: Vec<Open>,
    /// Ordered by check, then by position in the ledger.
    pub faults: Vec<Fault>,
}

impl Verdict {
    /// For a bundle that cannot be read any further.
    pub(super) fn broken(checks: Vec<Finding<Check>>, faults: Vec<Fault>) -> Verdict {
        Verdict {
            holds: false,
            verdict: Conclusion::DoesNotHold,
            gaps: BTreeSet::new(),
            about: None,
            checks,
            controls: Vec::new(),
            items: Vec::new(),
            unasked: Vec::new(),
            faults,
        }
    }

    /// Adds a fault that was found afterwards.
    pub(super) fn refute(&mut self, fault: Fault) {
        (self.holds, self.verdict) = (false, Conclusion::DoesNotHold);
        self.faults.push(fault);
    }

    /// The verifier's exit code. `allow_left_out` is for those who know that documents were left out.
    pub fn exit_code(&self, allow_left_out: bool) -> u8 {
        let is_allowed = allow_left_out && self.gaps.iter().all(|gap| *gap == Gap::LeftOut);
        match self.verdict {
            Conclusion::Holds => 0,
            Conclusion::DoesNotHold => 1,
            Conclusion::HoldsAsFarAsChecked if is_allowed => 0,
            Conclusion::HoldsAsFarAsChecked => 4,
        }
    }

    /// Why it is only as far as it could be checked.
    pub fn reservations(&self) -> String {
        self.gaps.iter().map(|gap| gap.words()).collect::<Vec<_>>().join(", and ")
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).certain("a verdict is made of texts and numbers") + "\n"
    }

    /// The result in one line.
    pub fn sentence(&self) -> String {
        let checks = self.checks.iter().map(|check| (check.name.title(), check.outcome));
        let controls = self.controls.iter().map(|control| (control.name.title(), control.outcome));
        let open = checks.chain(controls).filter(|(_, outcome)| *outcome == Outcome::NotChecked);
        let open: Vec<_> = open.map(|(title, _)| title).collect();
        let holds = match self.verdict {
            Conclusion::HoldsAsFarAsChecked => {
                format!("The evidence holds AS FAR AS IT COULD BE CHECKED: {}.", self.reservations())
            }
            Conclusion::Holds | Conclusion::DoesNotHold => "The evidence holds.".to_owned(),
        };
        match (self.faults.as_slice(), open.as_slice()) {
            ([], []) => holds,
            ([], open) => format!("{holds} Not checked: {}.", open.join(", ")),
            ([one], _) => format!("The evidence does NOT hold: {one}"),
            ([first, rest @ ..], _) => {
                format!("The evidence does NOT hold. First of {} faults: {first}", rest.len() + 1)
            }
        }
    }
}

/// Enough of a digest to distinguish it from others on a page.
pub(super) fn short(digest: &str) -> String {
    digest.chars().take("sha256:".len() + 12).collect::<String>() + "…"
}

pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
