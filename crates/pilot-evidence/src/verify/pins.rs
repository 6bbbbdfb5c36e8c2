//! Whether a bundle agrees with what its reader knows from elsewhere: definitions, role maps, a kept checkpoint, and the
//! previous period.

use super::Trust;
use super::contents::Contents;
use super::log::Roots;
use super::times::proved_root;
use super::trust::Pins;
use super::verdict::{Check, Fault, Finding};
use crate::bundle::{definition_path, role_map_path};
use crate::checkpoint::Checkpoint;

pub(super) fn pins(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    roots: &Roots,
    faults: &mut Vec<Fault>,
) -> Finding<Check> {
    let Pins { definitions, role_maps, checkpoint, after } = &trust.pins;
    let (mut agreed, mut open) = (Vec::new(), Vec::new());
    let before = faults.len();
    if definitions.is_empty() {
        open.push("no definition was given".to_owned());
    } else {
        faults.extend(contents.definitions.keys().filter(|digest| !definitions.contains(*digest)).map(|digest| {
            let what = format!("the definition {digest} is not one of those given");
            Fault::new(Check::Pins, "pinned_definition", what).in_file(definition_path(digest))
        }));
        agreed.push("definitions");
    }
    if role_maps.is_empty() {
        open.push("no role map was given".to_owned());
    } else {
        faults.extend(contents.role_maps.keys().filter(|digest| !role_maps.contains(*digest)).map(|digest| {
            let what = format!("the role map {digest} is not one of those given");
            Fault::new(Check::Pins, "pinned_role_map", what).in_file(role_map_path(digest))
        }));
        faults.extend(super::role_maps::without_map(contents));
        agreed.push("role maps");
    }
    match checkpoint.as_ref().map(|kept| (kept, proved_root(contents, newest, roots, kept.size, kept))) {
        None => {}
        Some((_, Ok(true))) => agreed.push("kept checkpoint"),
        Some((kept, Ok(false))) => open.push(format!(
            "nothing in the bundle connects it with the kept checkpoint of {} entries: export it with --kept {0}",
            kept.size
        )),
        Some((kept, Err(fault))) => {
            let what = format!("{}; you kept {} for {} entries", fault.what, kept.root.to_base64(), kept.size);
            faults.push(Fault { check: Check::Pins, rule: "pinned_checkpoint", what, ..fault });
        }
    }
    match after.as_ref().map(|after| after.check(contents, roots)) {
        None => {}
        Some(Ok(())) => agreed.push("previous period"),
        Some(Err(fault)) => faults.push(fault),
    }
    let check = Check::Pins;
    match (faults.len() > before, open.is_empty()) {
        (true, _) => Finding::fails(check, "see the faults"),
        (false, true) => Finding::holds(check, format!("{} as given", agreed.join(", "))),
        (false, false) if agreed.is_empty() => Finding::not_checked(check, open.join("; ")),
        (false, false) => Finding::not_checked(check, format!("{} as given; {}", agreed.join(", "), open.join("; "))),
    }
}
