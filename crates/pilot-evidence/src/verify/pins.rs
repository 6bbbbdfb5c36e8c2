//! Whether a bundle agrees with what its reader knows from elsewhere: definitions, role maps, a kept checkpoint, and the
//! previous period.

use std::io;

use super::chain::Predecessor;
use super::contents::Contents;
use super::log::Roots;
use super::times::proved_root;
use super::trust::{Pins, Trust};
use super::verdict::{Check, Fault, Finding};
use crate::bundle::{Scope, definition_path, role_map_path};
use crate::checkpoint::Checkpoint;

pub(super) fn pins(
    contents: &Contents<'_>,
    newest: &Checkpoint,
    trust: &Trust,
    roots: &Roots,
    faults: &mut Vec<Fault>,
) -> io::Result<Finding<Check>> {
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
        faults.extend(super::role_maps::without_map(contents)?);
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
    match after.as_ref().map(|after| follows(after, contents, roots)) {
        None => {}
        Some(Ok(())) => agreed.push("previous period"),
        Some(Err(fault)) => faults.push(fault),
    }
    let check = Check::Pins;
    Ok(match (faults.len() > before, open.is_empty()) {
        (true, _) => Finding::fails(check, "see the faults"),
        (false, true) => Finding::holds(check, format!("{} as given", agreed.join(", "))),
        (false, false) if agreed.is_empty() => Finding::not_checked(check, open.join("; ")),
        (false, false) => Finding::not_checked(check, format!("{} as given; {}", agreed.join(", "), open.join("; "))),
    })
}

/// Whether this bundle begins where the previous one ended, in the same log.
fn follows(previous: &Predecessor, contents: &Contents<'_>, roots: &Roots) -> Result<(), Fault> {
    let wrong = |what: String| Fault::new(Check::Pins, "chain", what);
    let end = previous.end;
    match contents.manifest.scope {
        Scope::Item(_) => return Err(wrong("a bundle about an item does not follow a period".into())),
        Scope::Period { first, .. } if first != end => {
            return Err(wrong(format!("the previous period ends before entry {end}, and this one begins at {first}")));
        }
        Scope::Period { .. } => {}
    }
    for (size, root) in previous.roots() {
        if roots.get(&size).is_some_and(|found| *found != root) {
            return Err(wrong(format!(
                "the previous period is of another history: its root at {size} entries differs"
            )));
        }
    }
    Ok(())
}
