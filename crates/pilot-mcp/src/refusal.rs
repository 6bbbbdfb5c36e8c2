//! What an agent is told when something was not done: in plain words, with the code, and who else has to act.

use pilot_api::outlook::WaitingView;
use pilot_api::problem::{ProblemView, WhoCanView};
use serde_json::{Value, json};

use crate::bounds::{FAULTS_MAX, PROBLEM_BYTES_MAX};
use crate::service::{Answer, Unreachable};
use crate::texts::shortened;

/// Why a call did nothing.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// For the model.
    words: String,
    /// `separation_of_duties`, `invalid_arguments`, …
    code: String,
    /// The HTTP status, if it was the service that refused.
    status: Option<u16>,
    /// JSON pointers and what is wrong there.
    faults: Vec<(String, String)>,
    /// The item that this is about, if there is one.
    item: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: &str, words: impl Into<String>) -> Refusal {
        Refusal { words: words.into(), code: code.to_owned(), status: None, faults: Vec::new(), item: None }
    }

    /// An argument that cannot be accepted, by its JSON pointer.
    pub(crate) fn argument(pointer: &str, detail: &str) -> Refusal {
        Refusal::faults(vec![(pointer.to_owned(), detail.to_owned())])
    }

    pub(crate) fn faults(faults: Vec<(String, String)>) -> Refusal {
        let listed = in_words(&faults);
        Refusal { faults, ..Refusal::new("invalid_arguments", format!("The arguments are not valid. {listed}")) }
    }

    /// What the service says about a request that it did not accept.
    pub(crate) fn by_service(answer: &Answer) -> Refusal {
        let Ok(problem) = serde_json::from_value::<ProblemView<'static>>(answer.body.clone()) else {
            let words = format!("The answer has status {} and does not come from a Pilot service.", answer.status);
            return Refusal { status: Some(answer.status), ..Refusal::new("not_a_pilot_service", words) };
        };
        let ProblemView { status, detail, code, errors, who_can, .. } = problem;
        let faults: Vec<_> = errors.into_iter().map(|fault| (fault.pointer, fault.detail)).collect();
        let said = if faults.is_empty() { with_full_stop(&detail) } else { in_words(&faults) };
        let who = who_can.map_or_else(String::new, |who| format!(" {}", who_can_in_words(&who)));
        let verb = if status >= 500 { "The service could not do it" } else { "Refused" };
        let words = format!("{verb} ({code}): {said}{who}");
        Refusal { status: Some(status), faults, ..Refusal::new(&code, words) }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The service has decided, and said what it has to say.
    pub(crate) fn is_by_service(&self) -> bool {
        self.status.is_some_and(|status| status < 500)
    }

    /// Whether the same request may be accepted later.
    pub(crate) fn is_for_now(&self) -> bool {
        self.code == UNREACHABLE || self.status.is_some_and(|status| status == 429 || status >= 500)
    }

    #[must_use]
    pub(crate) fn about(self, item: &str) -> Refusal {
        Refusal { item: Some(item.to_owned()), ..self }
    }

    /// One more thing to say.
    #[must_use]
    pub(crate) fn and(self, more: &str) -> Refusal {
        Refusal { words: format!("{} {more}", self.words), ..self }
    }

    pub(crate) fn words(&self) -> String {
        shortened(&self.words, PROBLEM_BYTES_MAX).0
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let faults =
            self.faults.iter().take(FAULTS_MAX).map(
                |(pointer, detail)| json!({"pointer": shortened(pointer, 200).0, "detail": shortened(detail, 300).0}),
            );
        json!({"code": self.code, "status": self.status, "item": self.item, "errors": faults.collect::<Vec<_>>()})
    }
}

const UNREACHABLE: &str = "unreachable";

impl From<Unreachable> for Refusal {
    fn from(error: Unreachable) -> Refusal {
        let words = format!("The service cannot be reached: {error}. Nothing is known about this request; try again.");
        Refusal::new(UNREACHABLE, words)
    }
}

fn in_words(faults: &[(String, String)]) -> String {
    let listed = faults.iter().take(FAULTS_MAX).map(|(pointer, detail)| match &**pointer {
        "" => with_full_stop(detail),
        pointer => format!("{pointer}: {}", with_full_stop(detail)),
    });
    let mut listed: Vec<_> = listed.collect();
    if faults.len() > FAULTS_MAX {
        listed.push(format!("And {} more.", faults.len() - FAULTS_MAX));
    }
    listed.join(" ")
}

fn with_full_stop(text: &str) -> String {
    let mut sentence = text.trim_end().to_owned();
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}

/// `ben or bea can.`
fn who_can_in_words(who: &WhoCanView) -> String {
    let names: Vec<_> = who.actors.iter().map(|actor| actor.as_str().to_owned()).collect();
    match one_of(names, who.others) {
        None => "Nobody can do it now.".to_owned(),
        Some(names) => format!("{names} can."),
    }
}

/// `ben or bea can approve; 2 are needed`
fn can(waiting: &WaitingView) -> String {
    let WaitingView { action, role, actors, others, needed } = waiting;
    let needed = if *needed > 1 { format!("; {needed} are needed") } else { String::new() };
    match one_of(actors.iter().map(ToString::to_string).collect(), *others) {
        None => format!("nobody ({role}) can {action} now"),
        Some(names) => format!("{names} can {action}{needed}"),
    }
}

/// `It waits: ben or bea can approve.` Nothing if it does not wait for anybody.
pub(crate) fn waits(waiting: &[WaitingView]) -> Option<String> {
    let all: Vec<_> = waiting.iter().map(can).collect();
    (!all.is_empty()).then(|| format!("It waits: {}.", all.join("; ")))
}

/// `ben, bea or 2 others`
fn one_of(mut names: Vec<String>, others: usize) -> Option<String> {
    match others {
        0 => {}
        1 => names.push("one other".into()),
        others => names.push(format!("{others} others")),
    }
    match names.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] => Some(format!("{} or {last}", first.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: Value) -> String {
        let status = u16::try_from(body["status"].as_u64().unwrap()).unwrap();
        Refusal::by_service(&Answer { status, body }).words()
    }

    fn problem(status: u16, code: &str, detail: &str, more: &Value) -> Value {
        let mut body =
            json!({"type": "x", "title": "x", "status": status, "detail": detail, "code": code, "request_id": "r"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    }

    #[test]
    fn a_refusal_says_what_why_and_who_can() {
        let who = json!({"who_can": {"actors": ["ben", "cleo"], "others": 1}});
        let body = problem(403, "separation_of_duties", "needs an approver other than ana", &who);
        let words = "Refused (separation_of_duties): needs an approver other than ana. ben, cleo or one other can.";
        assert_eq!(said(body), words);
        let nobody = json!({"who_can": {"actors": [], "others": 0}});
        let words = "Refused (not_owner): it is amy's. Nobody can do it now.";
        assert_eq!(said(problem(403, "not_owner", "it is amy's", &nobody)), words);
    }

    #[test]
    fn a_code_that_this_program_does_not_know_is_passed_on_with_its_words() {
        let detail = "this agent has 5 open items, and 5 are allowed";
        let words = "Refused (too_many_open): this agent has 5 open items, and 5 are allowed.";
        assert_eq!(said(problem(409, "too_many_open", detail, &json!({}))), words);
    }

    #[test]
    fn faults_come_with_their_places() {
        let errors = json!({"errors": [{"pointer": "/payload/risk", "detail": "is missing"}]});
        let body = problem(422, "invalid_request", "the request has faults", &errors);
        assert_eq!(said(body), "Refused (invalid_request): /payload/risk: is missing.");
    }

    #[test]
    fn a_service_that_cannot_does_not_refuse() {
        let body = problem(503, "unavailable", "the disk is full", &json!({}));
        assert_eq!(said(body.clone()), "The service could not do it (unavailable): the disk is full.");
        assert!(Refusal::by_service(&Answer { status: 503, body }).is_for_now());
    }

    #[test]
    fn an_answer_of_something_else_is_not_taken_for_the_services() {
        let refusal = Refusal::by_service(&Answer { status: 502, body: Value::Null });
        assert_eq!(refusal.words(), "The answer has status 502 and does not come from a Pilot service.");
    }
}
