//! `wait`: until the item is in another state, for less than a minute.

use std::time::Duration;

use pilot_core::item::ItemId;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::arguments::Wait;
use crate::bounds::{LOOK_AGAIN, WAIT_MAX};
use crate::desk::{Desk, Found};
use crate::refusal::Refusal;
use crate::service::Service;
use crate::texts::WARNING;
use crate::tools::Said;
use crate::view::Status;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Waited {
    /// Whether the item is in another state than the one you named, or than at the beginning of the call.
    pub changed: bool,
    /// Whether the next step is yours, such as `revise` for an item that was returned.
    pub your_turn: bool,
    /// When to ask again, if nothing changed. Null if the item is finished.
    pub ask_again_in_seconds: Option<u64>,
    pub status: Status,
}

pub(crate) async fn wait<S: Service>(desk: &Desk<S>, arguments: Wait) -> Result<Said<Waited>, Refusal> {
    let id = &arguments.item;
    let limit = arguments.timeout_seconds.map_or(WAIT_MAX, |seconds| Duration::from_secs(seconds.into()).min(WAIT_MAX));
    let mut last = desk.item(id).await?;
    let from = arguments.while_state.unwrap_or_else(|| last.view.state.to_string());
    if !is_over(&last, &from) {
        // If the time is up, what was seen last counts.
        tokio::time::timeout(limit, follow(desk, id, &from, &mut last)).await.unwrap_or(Ok(()))?;
    }
    Ok(said(desk, &last, &from))
}

fn is_over(found: &Found, from: &str) -> bool {
    found.view.state != from || found.is_finished() || is_callers_turn(found)
}

/// The service offers the caller a way forward.
fn is_callers_turn(found: &Found) -> bool {
    found.outlook.effects.values().any(|effect| effect.moves && !effect.ends)
}

/// Looks whenever something was recorded about the item; if it cannot be followed, every few seconds.
async fn follow<S: Service>(desk: &Desk<S>, id: &ItemId, from: &str, last: &mut Found) -> Result<(), Refusal> {
    let mut signs = desk.service.follow(id.as_str());
    let mut ended = desk.ended.clone();
    loop {
        tokio::select! {
            () = stir(&mut signs) => {}
            () = async { ended.wait_for(|has_ended| *has_ended).await.map_or((), drop) } => return Ok(()),
        }
        match desk.item(id).await {
            Ok(found) => *last = found,
            Err(refusal) if refusal.is_for_now() => continue,
            Err(refusal) => return Err(refusal),
        }
        if is_over(last, from) {
            return Ok(());
        }
    }
}

/// Something was recorded; or a while has passed, if nothing tells.
async fn stir(signs: &mut mpsc::Receiver<()>) {
    if signs.recv().await.is_none() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn said<S: Service>(desk: &Desk<S>, found: &Found, from: &str) -> Said<Waited> {
    let status = Status::new(found, desk.service.link(found.view.id.as_str()));
    let (changed, your_turn) = (status.state != from, is_callers_turn(found));
    let ask_again_in_seconds = status.ask_again_in_seconds();
    let next = match ask_again_in_seconds {
        _ if your_turn => "The next step is yours.".to_owned(),
        Some(seconds) if !changed => format!("Not yet: nothing has changed. Ask again in {seconds} seconds or later."),
        _ => String::new(),
    };
    let words = format!("{} {next} {WARNING}", status.words());
    Said { words, view: Waited { changed, your_turn, ask_again_in_seconds, status } }
}
