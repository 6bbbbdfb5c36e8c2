//! Whether a group belongs to this process, with nobody else in it as far as this machine knows.

use std::collections::BTreeSet;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Root needs no group to read a file, so for root, being in a group says nothing about who else is.
pub(super) fn is_ours_alone(group: u32) -> bool {
    let own_id = rustix::process::geteuid().as_raw();
    let is_ours = rustix::process::getegid().as_raw() == group
        || rustix::process::getgroups().is_ok_and(|groups| groups.iter().any(|found| found.as_raw() == group));
    // A container image without an operating system has neither file, and nobody else either.
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    own_id != 0 && group != 0 && is_ours && !has_others(group, own_id, &read(USERS), &read(GROUPS))
}

/// Whether this is the primary group of anyone but `own_id` and root, or lists anyone else. A listed name that is not a
/// user here counts too: it may be one elsewhere.
fn has_others(group: u32, own_id: u32, users: &str, groups: &str) -> bool {
    let mut own_names = BTreeSet::from(["root"]);
    for user in users.lines().map(fields) {
        let [name, _, id, of_user, ..] = user.as_slice() else { continue };
        match id.parse::<u32>() {
            Ok(id) if id == own_id || id == 0 => {
                own_names.insert(name);
            }
            _ if of_user.parse() == Ok(group) => return true,
            _ => {}
        }
    }
    let members = groups.lines().map(fields).filter_map(|line| match line.as_slice() {
        [_, _, id, members, ..] if id.parse() == Ok(group) => Some(*members),
        _ => None,
    });
    members.flat_map(|members| members.split(',')).any(|name| !name.is_empty() && !own_names.contains(name))
}

fn fields(line: &str) -> Vec<&str> {
    line.split(':').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u32 = 998;
    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\npilot:x:998:998::/var/lib/pilot:/usr/sbin/nologin\n\
                         eve:x:1000:1000::/srv/eve:/bin/sh\n";

    #[track_caller]
    fn check(users: &str, groups: &str, expected: bool) {
        assert_eq!(has_others(OURS, OURS, users, groups), expected, "{users}{groups}");
    }

    #[test]
    fn a_group_is_ours_alone_when_no_other_user_has_it_and_none_is_listed() {
        check("", "", false);
        check(USERS, "root:x:0:\npilot:x:998:\nusers:x:100:eve\n", false);
        check(USERS, "pilot:x:998:pilot,root\n", false);
    }

    #[test]
    fn anyone_else_in_the_group_makes_it_a_shared_one() {
        check(USERS, "pilot:x:998:eve\n", true);
        check(USERS, "pilot:x:998:pilot,eve\n", true);
        check(USERS, "pilot:x:998:\nalias:x:998:from-elsewhere\n", true);
        check(&format!("{USERS}backup:x:34:998::/:/bin/sh\n"), "pilot:x:998:\n", true);
    }

    #[test]
    fn a_user_with_a_faulty_number_is_somebody_else() {
        check("eve:x:what:998::/:/bin/sh\n", "", true);
    }

    #[test]
    fn root_has_no_group_of_its_own() {
        assert!(!is_ours_alone(0));
    }
}
