//! Permits at the target: whether an effect was begun by the rules, checked without the service.
//!
//! [`verify`] is all that a caller with a permit in memory needs. What it cannot know is said in [`LIMITS`].

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use pilot_core::limits::PERMIT_BYTES_MAX;
use pilot_core::time::Time;
use pilot_evidence::permit::{Permit, PermitError};
use pilot_evidence::policy::Policy;
use pilot_setup::private_file::{self, FileError, Others};

use crate::exit::Failure;

pub(crate) mod fresh;
pub(crate) mod spent;

/// For the help of every command that takes a permit.
pub(crate) const LIMITS: &str = "A permit shows what had happened when it was made. It cannot show what came later: a hold, a \
lost lease, a failed attempt, a revoked credential. So permits that are too old are refused: --max-age counts from the \
cosignatures of the policy's quorum of witnesses; if the policy says `quorum none`, from the time the service itself \
wrote into the permit, and then only the service vouches for it. Where the service can be reached, --fresh asks it.";

/// Checks a permit as of now. The one call for those who have it in memory.
pub(crate) fn verify(bundle: &[u8], policy: &Policy, age_max: Duration) -> Result<Permit, Failure> {
    let now = now()?;
    let permit = Permit::open(bundle, policy).map_err(|error| refused(&error))?;
    permit.check_at(now, age_max).map_err(|error| refused(&error))?;
    Ok(permit)
}

fn refused(error: &PermitError) -> Failure {
    let text = format!("the permit is refused: {error}");
    if error.is_partial() { Failure::NotAllChecked(text) } else { Failure::Refused(text) }
}

pub(crate) fn now() -> Result<Time, Failure> {
    let since = pilot_wire::clock::since_1970();
    let micros = since.and_then(|since| i64::try_from(since.as_micros()).ok()).map(Time::from_unix_micros);
    micros.ok_or_else(|| Failure::Environment("the machine's clock is before 1970; set it, then try again".into()))
}

/// The policy decides whom to trust, so only root and the user who runs this may be able to write to it.
pub(crate) fn read_policy(path: &Path) -> Result<Policy, Failure> {
    let file = private_file::read(path, Others::MayRead).map_err(|error| match &error {
        FileError::Open { source, .. } | FileError::Read { source, .. } => Failure::environment(&error, source),
        _ => Failure::Usage(format!("--policy: {error}")),
    })?;
    Policy::parse(&file.bytes).map_err(|error| Failure::Usage(format!("--policy: {}: {error}", path.display())))
}

/// A permit from a file, or from standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::environment(path.display(), error);
    let mut bytes = Vec::new();
    let max = PERMIT_BYTES_MAX as u64 + 1;
    if path.as_os_str() == "-" {
        std::io::stdin().take(max).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        // Without O_NONBLOCK, a pipe in place of the file would block for as long as nobody writes to it.
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Failure::Usage(format!("{}: is not a regular file; give the permit's file", path.display())));
        }
        file.take(max).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() > PERMIT_BYTES_MAX {
        let mib = PERMIT_BYTES_MAX / 1024 / 1024;
        return Err(Failure::Refused(format!("{}: is larger than {mib} MiB, so it is not a permit", path.display())));
    }
    Ok(bytes)
}
