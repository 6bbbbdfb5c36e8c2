//! `pilot evidence export`: takes a bundle from the service, piece by piece.

use std::path::PathBuf;

use serde_json::json;

use crate::client::query::encode;
use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, ProgressLine, print, print_json};
use crate::part::Part;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Everything about one item
    #[arg(long, value_name = "ID", conflicts_with_all = ["from", "to"], required_unless_present = "from")]
    item: Option<String>,
    /// Everything from this time on, complete and gap-free: 2026-11-01T00:00:00Z
    #[arg(long, value_name = "TIME", requires = "to")]
    from: Option<String>,
    /// And before this time
    #[arg(long, value_name = "TIME", requires = "from")]
    to: Option<String>,
    /// Leave out what people wrote; the proof remains valid
    #[arg(long)]
    without_documents: bool,
    /// The size of a checkpoint you kept: the bundle then contains the proof that the log continues it
    #[arg(long, value_name = "ENTRIES")]
    kept: Option<u64>,
    /// Where to write the bundle [default: evidence-….zip, here]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let (path, name) = request(arguments);
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(name));
    if out.exists() {
        return Err(Failure::Usage(format!("{}: already exists; choose another name with --out", out.display())));
    }
    let client = Client::new(&arguments.client, environment)?;
    let mut part = Part::create(&out)?;
    let (mut progress, line) = (Progress::default(), ProgressLine::default());
    client.download(&path, |header, bytes| {
        progress.of = header("evidence-entries").and_then(|number| number.parse().ok()).unwrap_or(0);
        progress.read(bytes);
        line.show(&progress.in_words());
        part.write(bytes)
    })?;
    drop(line);
    part.finish(&out)?;
    let Progress { bytes, entries, .. } = progress;
    match arguments.output.output {
        Output::Json => print_json(&json!({ "bundle": out, "bytes": bytes, "entries": entries })),
        Output::Table => print(&format!(
            "{}: {entries} entries, {bytes} bytes\ncheck it, on any machine and without the service:\n  pilot evidence verify {} --key KEY\nwhere KEY is the line that `pilot log key` prints, from someone you trust\n",
            out.display(),
            out.display()
        )),
    }
}

/// The path to request from the service, and a name for the file.
fn request(arguments: &Arguments) -> (String, String) {
    let documents = if arguments.without_documents { "none" } else { "all" };
    let kept = arguments.kept.map(|size| format!("&kept={size}")).unwrap_or_default();
    match (&arguments.item, &arguments.from, &arguments.to) {
        (Some(id), ..) => (
            format!("/v1/evidence?item={}&documents={documents}{kept}", encode(id)),
            format!("evidence-{}.zip", plain(id)),
        ),
        (None, from, to) => {
            let (from, to) = (from.as_deref().unwrap_or_default(), to.as_deref().unwrap_or_default());
            (
                format!("/v1/evidence?from={}&to={}&documents={documents}{kept}", encode(from), encode(to)),
                format!("evidence-{}-{}.zip", plain(from), plain(to)),
            )
        }
    }
}

/// Characters that are safe in a file name anywhere.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').take(64).collect()
}

/// Follows the container as it arrives: each file is preceded by its length, and each line of `entries/` is an entry.
#[derive(Default)]
struct Progress {
    bytes: u64,
    entries: u64,
    of: u64,
    header: Vec<u8>,
    /// How much of the current file is still to come.
    left: u64,
    counts: bool,
    /// There are no more files; the rest belongs to the container itself.
    is_over: bool,
}

const LOCAL_HEADER: [u8; 4] = *b"PK\x03\x04";
const LOCAL_HEADER_BYTES: usize = 30;

impl Progress {
    fn read(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() && !self.is_over {
            if self.left > 0 {
                let taken = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let (file, rest) = bytes.split_at(taken);
                if self.counts {
                    self.entries += file.split(|byte| *byte == b'\n').count().saturating_sub(1) as u64;
                }
                self.left -= taken as u64;
                bytes = rest;
            } else if let Some((byte, rest)) = bytes.split_first() {
                self.header.push(*byte);
                bytes = rest;
                self.open();
            }
        }
    }

    /// Checks whether a header is complete: 30 bytes, which include the lengths of content, name and extra field.
    fn open(&mut self) {
        let two = |at: usize| self.header.get(at..at + 2).and_then(|two| two.try_into().ok()).map(u16::from_le_bytes);
        let four =
            |at: usize| self.header.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
        if self.header.len() == LOCAL_HEADER.len() && self.header != LOCAL_HEADER {
            self.is_over = true;
            return;
        }
        let (Some(length), Some(name), Some(extra)) = (four(18), two(26), two(28)) else { return };
        if self.header.len() == LOCAL_HEADER_BYTES + usize::from(name) + usize::from(extra) {
            self.left = u64::from(length);
            self.counts = self.header.get(LOCAL_HEADER_BYTES..).is_some_and(|name| name.starts_with(b"entries/"));
            self.header.clear();
        }
    }

    fn in_words(&self) -> String {
        let (entries, of, kib) = (self.entries, self.of, self.bytes / 1024);
        format!("{entries} of {of} entries, {kib} KiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilot_evidence::bundle::zip::ZipWriter;

    #[test]
    fn entries_are_counted_however_the_bundle_is_cut_into_pieces() {
        let mut zip = ZipWriter::default();
        for (path, text) in
            [("checkpoint", "a\nb\n"), ("entries/000000000000.jsonl", "{}\n{}\n{}\n"), ("manifest", "\n")]
        {
            assert!(zip.add(path, text.as_bytes()));
        }
        let bundle = zip.finish();
        for size in [1, 2, 7, 30, 64, bundle.len()] {
            let mut progress = Progress::default();
            bundle.chunks(size).for_each(|piece| progress.read(piece));
            assert_eq!((progress.entries, progress.bytes), (3, bundle.len() as u64), "pieces of {size}");
        }
    }
}
