//! `pilot workflow`: proves, draws and explains a definition.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use pilot_core::item::WorkflowRef;
use pilot_core::limits::PRIVATE_FILE_BYTES_MAX;
use pilot_core::workflow::report::report;
use pilot_core::workflow::{Definition, builtin};
use pilot_explain::graph::{dot, mermaid, svg};
use pilot_explain::report::to_text;
use pilot_explain::words::explain;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::read_role_map;
use crate::output::{Output, OutputArguments, print, print_coloured, print_json};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Prove that a definition keeps duties apart, or show the shortest path that breaks it
    Check(CheckArguments),
    /// Draw a definition
    Graph(GraphArguments),
    /// Explain in words who may do what
    Explain(ExplainArguments),
}

#[derive(clap::Args)]
pub(crate) struct WhichArguments {
    /// A definition's file, or the name of a built-in: controlled-operation, emergency-operation
    #[arg(value_name = "FILE or NAME")]
    which: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    which: WhichArguments,
    /// Also check the people in this role map: are there enough, how few could collude, who is indispensable
    #[arg(long, value_name = "FILE")]
    role_map: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct GraphArguments {
    #[command(flatten)]
    which: WhichArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: GraphFormat,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(clap::Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    which: WhichArguments,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum, Default)]
enum GraphFormat {
    #[default]
    Svg,
    Mermaid,
    Dot,
}

pub(crate) fn run(command: &Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Check(arguments) => check(arguments, environment),
        Command::Graph(arguments) => {
            let definition = arguments.which.definition()?;
            let (format, drawing) = match arguments.format {
                GraphFormat::Svg => ("svg", svg(&definition, None)),
                GraphFormat::Mermaid => ("mermaid", mermaid(&definition)),
                GraphFormat::Dot => ("dot", dot(&definition)),
            };
            tell(
                &definition,
                arguments.output.output,
                drawing,
                &|drawing| json!({ "format": format, "graph": drawing }),
            )
        }
        Command::Explain(arguments) => {
            let definition = arguments.which.definition()?;
            tell(&definition, arguments.output.output, explain(&definition), &|text| json!({ "explanation": text }))
        }
    }
}

/// For people, only the text; for programs, a member next to the definition it is about.
fn tell(
    definition: &Definition,
    output: Output,
    text: String,
    member: &dyn Fn(String) -> Value,
) -> Result<(), Failure> {
    if output == Output::Table {
        return print(&text);
    }
    let mut view = json!({ "workflow": WorkflowRef::from(definition) });
    if let (Some(view), Value::Object(mut member)) = (view.as_object_mut(), member(text)) {
        view.append(&mut member);
    }
    print_json(&view)
}

impl WhichArguments {
    fn name(&self) -> String {
        self.which.display().to_string()
    }

    /// A file of that name takes precedence over a built-in definition.
    fn text(&self) -> Result<String, Failure> {
        if !self.which.exists() {
            match self.which.to_str() {
                Some("controlled-operation") => return Ok(builtin::CONTROLLED_OPERATION.to_owned()),
                Some("emergency-operation") => return Ok(builtin::EMERGENCY_OPERATION.to_owned()),
                _ => {}
            }
        }
        let failed = |error| Failure::environment(self.name(), error);
        let size = std::fs::metadata(&self.which).map_err(failed)?.len();
        if size > PRIVATE_FILE_BYTES_MAX {
            return Err(Failure::Usage(format!("{}: is too large to be a definition", self.name())));
        }
        std::fs::read_to_string(&self.which).map_err(failed)
    }

    fn definition(&self) -> Result<Arc<Definition>, Failure> {
        let parsed = Definition::parse(&self.text()?);
        parsed
            .map(Arc::new)
            .map_err(|flaws| Failure::Refused(pilot_explain::flaws::render(&flaws, &self.name(), false)))
    }
}

fn check(arguments: &CheckArguments, environment: &Environment) -> Result<(), Failure> {
    let role_map = arguments.role_map.as_deref().map(read_role_map).transpose()?;
    let text = arguments.which.text()?;
    let report = report(&text, role_map.as_ref());
    match arguments.output.output {
        Output::Json => print_json(&report)?,
        Output::Table => {
            let name = arguments.which.name();
            // A definition that itself contains escape sequences, for example to conceal text, gets no colours at all.
            let is_ours = !text.contains('\u{1b}') && !name.contains('\u{1b}');
            let colour = is_ours && std::io::stdout().is_terminal() && environment.get("NO_COLOR").is_none();
            let text = to_text(&report, &name, colour);
            if colour { print_coloured(&text)? } else { print(&text)? }
        }
    }
    if report.is_sound() {
        return Ok(());
    }
    let why = match Definition::parse(&text) {
        Ok(_) => "is sound, but the role map has too few people for it",
        Err(_) => "is not proved; the service would not load it",
    };
    Err(Failure::Refused(format!("{} {why}", arguments.which.name())))
}
