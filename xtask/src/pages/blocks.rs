//! The commands of a page, word for word. A block to run has a line `<!-- run: NAME -->` directly above its fence.

use std::fs;

use crate::step::{Failure, root};

/// The commands of a block in a documentation page, joined into one script. Lines of output are left out.
pub(super) fn script(page: &str, name: &str) -> Result<String, Failure> {
    let path = root().join(page);
    let text = fs::read_to_string(&path).map_err(|error| Failure::environment(format!("{page}: {error}")))?;
    let missing = || Failure::refuted(format!("{page} has no block `<!-- run: {name} -->` with root's commands"));
    let commands = commands(&text, name).filter(|commands| !commands.is_empty()).ok_or_else(missing)?;
    Ok(commands.join("\n"))
}

/// The names of all blocks to run.
pub(super) fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("<!-- run: ")?.strip_suffix(" -->")).collect()
}

/// What follows root's prompt, `# `, including the lines that a backslash at the end continues to.
fn commands(text: &str, name: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| *line != format!("<!-- run: {name} -->")).skip(1);
    lines.next().filter(|fence| *fence == "```console")?;
    let mut commands = Vec::new();
    let mut goes_on = false;
    for line in lines.take_while(|line| !line.starts_with("```")) {
        let command = line.strip_prefix("# ");
        if let Some(command) = command.or(Some(line).filter(|_| goes_on)) {
            goes_on = command.ends_with('\\');
            commands.push(command.to_owned());
        }
    }
    Some(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "text\n<!-- run: one -->\n```console\n# first \\\n    --more\noutput\n# second\n```\n\n\
                        ```console\n# not run\n```\n<!-- run: two -->\ntext\n";

    #[test]
    fn commands_of_root_are_run_and_output_is_not() {
        assert_eq!(commands(PAGE, "one").unwrap(), ["first \\", "    --more", "second"]);
        assert_eq!(names(PAGE), ["one", "two"]);
    }

    #[test]
    fn a_mark_without_a_block_under_it_is_no_block() {
        assert_eq!(commands(PAGE, "two"), None);
        assert_eq!(commands(PAGE, "three"), None);
    }
}
