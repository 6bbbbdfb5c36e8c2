//! `pilot help-pages`: manual pages and completions, generated from the commands themselves, for packagers.

use std::io;
use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::Failure;

/// Where each shell looks, relative to the directory, as packages install it.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions", "pilot"),
    (Shell::Zsh, "zsh/vendor-completions", "_pilot"),
    (Shell::Fish, "fish/vendor_completions.d", "pilot.fish"),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The directory to write to, laid out as below /usr/share
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, mut program: clap::Command) -> Result<(), Failure> {
    let failed = |error| Failure::environment(arguments.directory.display(), error);
    let pages = arguments.directory.join("man/man1");
    std::fs::create_dir_all(&pages).map_err(failed)?;
    // A page for each command, but none for the help about help.
    let mut documented = program.clone().disable_help_subcommand(true);
    documented.build();
    for (shell, directory, name) in SHELLS {
        let directory = arguments.directory.join(directory);
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut program, "pilot", &mut text);
        let text = live(shell, &String::from_utf8_lossy(&text));
        std::fs::create_dir_all(&directory).map_err(failed)?;
        std::fs::write(directory.join(name), text).map_err(failed)?;
    }
    write_pages(&documented, &pages).map_err(failed)
}

/// The script with items, actions and profiles in it: what `pilot complete` says comes first, and if it says nothing, the
/// script goes on as it would.
fn live(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{}{BASH}", script.replace("complete -F _pilot ", "complete -F _pilot_live ")),
        Shell::Zsh => {
            let (functions, end) = script.rsplit_once("\nif [ \"$funcstack[1]\"").unwrap_or((script, ""));
            let end = end
                .replace("    _pilot \"$@\"", "    _pilot_live \"$@\"")
                .replace("compdef _pilot ", "compdef _pilot_live ");
            format!("{functions}\n{ZSH}\nif [ \"$funcstack[1]\"{end}")
        }
        Shell::Fish => format!("{script}{FISH}"),
        _ => script.to_owned(),
    }
}

const BASH: &str = r#"
_pilot_live() {
    local -a found
    mapfile -t found < <("${COMP_WORDS[0]}" complete "${COMP_LINE:0:COMP_POINT}" 2>/dev/null | cut -f1)
    if [[ ${#found[@]} -gt 0 ]]; then
        COMPREPLY=( "${found[@]}" )
    else
        _pilot "$@"
    fi
}
"#;

const ZSH: &str = r#"_pilot_live() {
    local -a found
    found=("${(@f)$(${words[1]} complete "${words[1,CURRENT]}" 2>/dev/null | cut -f1)}")
    if [[ -n "$found[1]" ]]; then
        compadd -a found
    else
        _pilot "$@"
    fi
}
"#;

const FISH: &str = r#"
complete -c pilot -n "__fish_seen_subcommand_from item watch profile" -a "(pilot complete (commandline -cp) 2>/dev/null)"
"#;

fn write_pages(command: &clap::Command, directory: &Path) -> io::Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(command, directory)?;
    }
    // A blank date: the same program gives the same pages. An empty date would be left out of the line.
    let source = concat!("pilot ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).date(" ").source(source).manual("Pilot").generate_to(directory).map(drop)
}
