//! What the agent says to the service. Every answer is one of three: done, refused, or none yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::IF_MATCH;
use pilot_api::items::{ItemView, ItemsPage, TransitionView};
use pilot_api::problem::ProblemView;
use pilot_core::actor::Actor;
use pilot_core::item::ItemId;
use pilot_core::leak::LeakGuard;
use pilot_evidence::checkpoint::Checkpoint;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::feed::Feed;
use crate::client::{Ask, Client, ClientArguments, Reply};
use crate::environment::Environment;
use crate::exit::Failure;

/// How long the service has to answer: much less than a lease.
const PATIENCE: Duration = Duration::from_secs(10);
/// A list is read in this many pages at most. The rest is found when these are done.
const PAGES_MAX: usize = 10;

pub(crate) type Answer<T> = Result<T, No>;

#[derive(Debug)]
pub(crate) enum No {
    /// The service has decided: asking again would get the same answer.
    Refused { status: u16, code: String, detail: String },
    /// Nobody knows whether the request had an effect. It may be repeated under the same key.
    NotYet(String),
}

impl No {
    pub(crate) fn words(self) -> String {
        match self {
            No::Refused { detail, .. } => detail,
            No::NotYet(why) => why,
        }
    }
}

pub(crate) struct Service {
    client: Mutex<Arc<Client>>,
    arguments: ClientArguments,
    environment: Environment,
}

impl Service {
    pub(crate) fn new(arguments: &ClientArguments, environment: &Environment) -> Result<Service, Failure> {
        let client = Mutex::new(Arc::new(Client::new(arguments, environment)?));
        Ok(Service { client, arguments: arguments.clone(), environment: environment.clone() })
    }

    pub(crate) fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The agent's own token must not appear in a log, nor in what commands print.
    pub(crate) fn guard(&self) -> LeakGuard {
        let guard = LeakGuard::for_generated_tokens();
        if let Some(token) = self.client().token() {
            let bearer = token.bearer();
            guard.remember(bearer.trim_start_matches("Bearer ").as_bytes(), token.digest());
        }
        guard
    }

    pub(crate) async fn whoami(&self) -> Answer<Actor> {
        self.read(Ask::get("/v1/session")).await
    }

    /// The item, and the very bytes that said so.
    pub(crate) async fn item(&self, id: &ItemId) -> Answer<(ItemView<'static>, Vec<u8>)> {
        let reply = self.ask(Ask::get(&format!("/v1/items/{id}"))).await?;
        Ok((parsed(&reply)?, reply.bytes().to_vec()))
    }

    /// The items in a state, of one workflow or of all.
    pub(crate) async fn items(&self, state: &str, workflow: Option<&str>) -> Answer<Vec<ItemView<'static>>> {
        let workflow = workflow.map_or_else(String::new, |name| format!("&workflow={name}"));
        let (mut items, mut cursor) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let path = format!("/v1/items?state={state}&limit=200{workflow}{cursor}");
            let page: ItemsPage = self.read(Ask::get(&path)).await?;
            items.extend(page.items);
            let Some(next) = page.next else { break };
            cursor = format!("&cursor={next}");
        }
        Ok(items)
    }

    /// Takes an action. Under the same key it is taken once, however often it is asked for.
    pub(crate) async fn act(
        &self,
        id: &ItemId,
        action: &Value,
        key: &str,
        version: Option<u64>,
    ) -> Answer<TransitionView<'static>> {
        let path = format!("/v1/items/{id}/transitions");
        let mut ask = Ask::post(&path, action).key(key);
        if let Some(version) = version {
            ask = ask.header(IF_MATCH, format!("\"{version}\""));
        }
        self.read(ask).await
    }

    pub(crate) async fn comment(&self, id: &ItemId, text: &str, key: &str) -> Answer<Value> {
        let body = json!({"text": text});
        self.read(Ask::post(&format!("/v1/items/{id}/comments"), &body).key(key)).await
    }

    /// The proof that this item may be executed now, for those who check it.
    pub(crate) async fn permit(&self, id: &ItemId) -> Answer<Vec<u8>> {
        self.ask(Ask::get(&format!("/v1/items/{id}/permit"))).await.map(|reply| reply.bytes().to_vec())
    }

    /// What is written from now on.
    pub(crate) async fn feed(&self) -> Result<Feed, Failure> {
        let client = self.client();
        let note = client.ask(Ask::get("/v1/log/checkpoint").within(PATIENCE)).await?.text()?;
        let text = note.split_once("\n\n").map_or(&*note, |(text, _)| text);
        let size = Checkpoint::parse(&format!("{text}\n")).map(|checkpoint| checkpoint.size);
        let size = size.map_err(|error| Failure::environment("the log's checkpoint", error))?;
        client.feed(size.checked_sub(1)).await
    }

    async fn read<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Answer<T> {
        parsed(&self.ask(ask).await?)
    }

    async fn ask(&self, ask: Ask<'_>) -> Answer<Reply> {
        let ask = ask.within(PATIENCE);
        let mut reply = self.client().ask(ask.clone()).await;
        if reply.as_ref().is_ok_and(|reply| reply.status() == 401) && self.read_token_again().await {
            reply = self.client().ask(ask).await;
        }
        match reply {
            Err(failure) => Err(No::NotYet(failure.text().to_owned())),
            Ok(reply) if reply.is_success() => Ok(reply),
            Ok(reply) => match reply.problem() {
                // Too many requests, or a service that cannot answer now. A credential may be replaced any moment.
                Some(problem) if !matches!(problem.status, 401 | 408 | 429 | 500..) => Err(refused(problem)),
                _ => Err(No::NotYet(reply.refusal().text().to_owned())),
            },
        }
    }

    /// Short-lived tokens are replaced in their file before they expire.
    pub(crate) async fn read_token_again(&self) -> bool {
        if !self.arguments.token_can_be_read_again(&self.environment) {
            return false;
        }
        let (arguments, environment) = (self.arguments.clone(), self.environment.clone());
        // A program that gives the token may take its time.
        let reading = tokio::task::spawn_blocking(move || Client::new(&arguments, &environment));
        let Ok(Ok(Ok(client))) = tokio::time::timeout(PATIENCE, reading).await else { return false };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(client);
        true
    }
}

fn refused(problem: ProblemView<'static>) -> No {
    let ProblemView { status, code, detail, errors, .. } = problem;
    let errors: Vec<_> = errors.iter().map(|fault| format!("{} {}", fault.pointer, fault.detail)).collect();
    let detail = if errors.is_empty() { detail.into_owned() } else { errors.join("; ") };
    No::Refused { status, code: code.into_owned(), detail }
}

fn parsed<T: DeserializeOwned>(reply: &Reply) -> Answer<T> {
    let unreadable = |error| No::NotYet(format!("the answer is not what a pilot service sends: {error}"));
    serde_json::from_slice(reply.bytes()).map_err(unreadable)
}
