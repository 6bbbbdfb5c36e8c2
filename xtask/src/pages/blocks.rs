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

/// What follows root's prompt, `# `, including the lines that a backslash at the end continues to, and the text up to
/// the word after `<<`.
fn commands(text: &str, name: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| *line != format!("<!-- run: {name} -->")).skip(1);
    lines.next().filter(|fence| *fence == "```console")?;
    let mut commands = Vec::new();
    let (mut goes_on, mut until) = (false, None);
    for line in lines.take_while(|line| !line.starts_with("```")) {
        if until.is_some() {
            until = until.filter(|word| *word != line);
            commands.push(line.to_owned());
        } else if let Some(command) = line.strip_prefix("# ").or(Some(line).filter(|_| goes_on)) {
            goes_on = command.ends_with('\\');
            until = command.split_once("<<").map(|(_, word)| word.trim().trim_matches('\''));
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
    fn a_text_for_a_command_belongs_to_it_up_to_its_last_word() {
        let page = "<!-- run: text -->\n```console\n# cat > file <<'END'\n# one\ntwo\nEND\noutput\n# last\n```\n";
        assert_eq!(commands(page, "text").unwrap(), ["cat > file <<'END'", "# one", "two", "END", "last"]);
    }

    #[test]
    fn a_mark_without_a_block_under_it_is_no_block() {
        assert_eq!(commands(PAGE, "two"), None);
        assert_eq!(commands(PAGE, "three"), None);
    }
}
