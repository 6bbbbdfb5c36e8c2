//! Verifies a bundle for `bench export`, and says when each stage begins and how much memory it took: `judge BUNDLE KEY`.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use pilot_evidence::bundle::source::Source;
use pilot_evidence::note::VerifierKey;
use pilot_evidence::verify::{Trust, verify_from};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [path, key] = arguments.as_slice() else { return Err("usage: judge BUNDLE KEY".into()) };
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let read_at = move |at: u64, buffer: &mut [u8]| file.read_exact_at(buffer, at);
    let (source, mut last) = (Source::Elsewhere { length, read_at: Box::new(read_at) }, None);
    let mut watch = |stage, _, _| {
        if last.replace(stage) != Some(stage) {
            let _ = writeln!(std::io::stdout(), "{stage:?}");
        }
    };
    let verdict = verify_from(&source, &Trust::log(VerifierKey::parse(key)?), &mut watch)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let most = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    writeln!(std::io::stdout(), "{most}\n{}", verdict.sentence())?;
    Ok(())
}
