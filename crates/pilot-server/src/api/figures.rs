//! Figures for the overview.

use std::collections::BTreeMap;

use pilot_api::figures::{AgesView, DayView, FiguresView, TimeToDecideView};
use pilot_core::time::Time;
use pilot_ledger::figures::{DAYS_MAX, Figures, catch_up, day_of, percentile, seconds_of};

use crate::api::answers::json;
use crate::api::request::Query;
use crate::audience::sees_everything;
use crate::call::{Answer, Call};

const DAYS: u64 = 14;
const HOUR_SECONDS: u64 = 3_600;

pub async fn get_figures(call: &Call) -> Answer {
    let query = Query::read(call, &["days"])?;
    let days = query.number("days", 1, DAYS_MAX)?.unwrap_or(DAYS);
    let app = &call.app;
    let mut figures = app.figures.lock().await;
    catch_up(&mut figures, &*app.ledger.store, &app.workflows).await?;
    let view = view(&figures, days, app.ledger.clock.now(), sees_everything(call.caller.actor.role));
    drop(figures);
    json(&view)
}

fn view(figures: &Figures, days: u64, now: Time, sees_refusals: bool) -> FiguresView {
    let (mut open, mut open_by_age) = (BTreeMap::<String, u64>::new(), AgesView::default());
    for (state, created_at, _) in figures.open() {
        *open.entry(state.to_owned()).or_default() += 1;
        *group(&mut open_by_age, now.since(created_at).as_secs() / HOUR_SECONDS) += 1;
    }
    let (mut shown, mut waits, mut refusals) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let today = day_of(now);
    for day in (today - i64::try_from(days).unwrap_or(i64::MAX) + 1)..=today {
        let counted = figures.day(day).cloned().unwrap_or_default();
        let refused: u64 = counted.refused.values().sum();
        shown.push(DayView {
            day: date_of(day),
            decisions: counted.decisions,
            created: counted.created,
            refused: sees_refusals.then_some(refused),
        });
        add(&mut waits, counted.waits);
        add(&mut refusals, counted.refused);
    }
    let seconds = |percent| percentile(&waits, percent).map(seconds_of);
    let time_to_decide = TimeToDecideView {
        count: waits.values().sum(),
        median_s: seconds(50),
        p90_s: seconds(90),
        max_s: seconds(100),
    };
    let refusals = sees_refusals.then_some(refusals);
    FiguresView { at: now, entries: figures.counted(), open, open_by_age, days: shown, time_to_decide, refusals }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (name, count) in more {
        *sums.entry(name).or_default() += count;
    }
}

fn group(ages: &mut AgesView, hours: u64) -> &mut u64 {
    match hours {
        0 => &mut ages.hour,
        1..24 => &mut ages.day,
        24..72 => &mut ages.three_days,
        72..168 => &mut ages.week,
        _ => &mut ages.older,
    }
}

/// As in `2026-11-16`.
fn date_of(day: i64) -> String {
    let noon = Time::from_unix_micros(day * 86_400_000_000 + 43_200_000_000);
    noon.to_string().chars().take(10).collect()
}
