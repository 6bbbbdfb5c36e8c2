//! How the errors of the crates below are shown to a caller.

use std::time::Duration;

use pilot_core::fault::Fault;
use pilot_core::limits::{
    ACTOR_BYTES_HELD_MAX, ACTOR_LONG_TASKS_WAITING_MAX, BYTES_HELD_MAX, EXPORT_ENTRIES_MAX, EXPORT_RETRY,
    SHARE_DEADLINE,
};
use pilot_core::refusal::{Refusal, RefusalCode};
use pilot_ledger::evidence::{Busy, EvidenceError};
use pilot_ledger::register::RevokeError;
use pilot_ledger::settle::{NotNow, SettleError};
use pilot_ledger::signer::SignError;
use pilot_ledger::witnesses::CoverError;
use pilot_ledger::workflows::MissingDefinition;
use pilot_store::StoreError;
use pilot_wire::caps::Cap;
use pilot_wire::framing::Malformed;

use super::{Code, Problem};
use crate::budget::Exhausted;
use crate::workshop::WorkshopError;

/// When a caller with too much in progress may try again.
const CROWDED_RETRY: Duration = Duration::from_secs(1);
/// How long to wait for witnesses before another attempt is worthwhile.
const COVER_RETRY: Duration = Duration::from_secs(5);

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Framing(detail) => Problem::framing(detail),
            Malformed::UrlTooLong => Problem::url_too_long(),
            Malformed::HeadersTooLarge => Problem::headers_too_large(),
        }
    }
}

impl From<Exhausted> for Problem {
    fn from(Exhausted: Exhausted) -> Self {
        let detail = format!(
            "Too many bytes of requests and answers are in flight: at most {} MiB per actor and {} MiB in total. Let \
             some of yours finish, then try again.",
            ACTOR_BYTES_HELD_MAX >> 20,
            BYTES_HELD_MAX >> 20
        );
        Problem::new(Code::Unavailable, detail).retry_after(SHARE_DEADLINE).beyond(Cap::HeldBytes)
    }
}

impl From<WorkshopError> for Problem {
    fn from(error: WorkshopError) -> Self {
        match error {
            WorkshopError::Failed => Problem::internal(&error),
            WorkshopError::Crowded => {
                let detail = format!(
                    "At most {ACTOR_LONG_TASKS_WAITING_MAX} long-running requests per caller may wait for their turn, \
                     and that many of yours are waiting. Let them finish first."
                );
                Problem::new(Code::RateLimited, detail).retry_after(CROWDED_RETRY).beyond(Cap::LongTasks)
            }
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let errors = refusal.errors();
        match Code::from(refusal.code()) {
            Code::InvalidRequest => Problem::invalid(errors),
            code => Problem { errors, ..Problem::new(code, refusal.to_string()) },
        }
    }
}

impl From<RefusalCode> for Code {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::UnknownAction => Code::UnknownAction,
            RefusalCode::RoleForbidden => Code::RoleForbidden,
            RefusalCode::SeparationOfDuties => Code::SeparationOfDuties,
            RefusalCode::NotOwner => Code::NotOwner,
            RefusalCode::InvalidRequest => Code::InvalidRequest,
            RefusalCode::StateConflict => Code::StateConflict,
            RefusalCode::AlreadyDecided => Code::AlreadyDecided,
            RefusalCode::ItemHeld => Code::ItemHeld,
            RefusalCode::OutsideWindow => Code::OutsideWindow,
            RefusalCode::VersionMismatch => Code::VersionMismatch,
            RefusalCode::ContentChanged => Code::ContentChanged,
            RefusalCode::TooManyOpen => Code::TooManyOpen,
            RefusalCode::Unavailable => Code::Unavailable,
        }
    }
}

impl From<NotNow> for Problem {
    fn from(reason: NotNow) -> Self {
        let detail = match reason {
            NotNow::ClockAhead(ahead) => {
                let detail = format!(
                    "The machine's clock has jumped {} s ahead. Writes are refused until it is right again or an operator \
                     accepts it; reads still work.",
                    ahead.as_secs()
                );
                return Problem::new(Code::Unavailable, detail);
            }
            NotNow::DiskNearlyFull => {
                "The disk is nearly full. Writes are refused until there is space again; reads still work."
            }
            NotNow::NoCheckpoint => {
                "The log's checkpoint cannot be signed or saved, so writes are refused until it can; reads still work."
            }
        };
        Problem::new(Code::Unavailable, detail)
    }
}

impl From<SettleError> for Problem {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::NotNow(reason) => reason.into(),
            SettleError::Store(error) => error.into(),
            SettleError::Refused(refusal) => refusal.into(),
            SettleError::NoSuchItem => Problem::no_such_item(),
            SettleError::KeyReused => Problem::key_reused(),
            SettleError::Unreadable => Problem::internal(&"a stored answer cannot be read"),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let detail = match error {
            StoreError::Damaged(_) => {
                "The stored data is damaged, so the service stops. An operator has to look first; retry after that, with \
                 the same Idempotency-Key if you sent one."
            }
            StoreError::DiskFailed(_) => {
                "The disk failed, so this was not acknowledged. Whether it was recorded is known only after the service \
                 restarts; retry then, with the same Idempotency-Key if you sent one."
            }
            StoreError::Hangs(_) => {
                "The disk is not responding, so this was not acknowledged. It may still have been recorded; retry with \
                 the same Idempotency-Key; without one, look at the item first."
            }
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Refused(_) => {
                "This was not acknowledged. Retry with the same Idempotency-Key; without one, look at the item first."
            }
        };
        Problem::unavailable(detail, &error)
    }
}

impl From<MissingDefinition> for Problem {
    fn from(missing: MissingDefinition) -> Self {
        Problem::internal(&missing)
    }
}

impl From<SignError> for Problem {
    fn from(error: SignError) -> Self {
        Problem::unavailable("The log's key cannot sign right now. Try again in a moment.", &error)
    }
}

impl From<CoverError> for Problem {
    fn from(error: CoverError) -> Self {
        match error {
            CoverError::Sign(error) => error.into(),
            CoverError::NotCovered { .. } => {
                Problem::new(Code::Unavailable, error.to_string()).retry_after(COVER_RETRY)
            }
        }
    }
}

impl From<RevokeError> for Problem {
    fn from(error: RevokeError) -> Self {
        match error {
            RevokeError::Store(error) => error.into(),
            RevokeError::KeyReused => Problem::key_reused(),
            RevokeError::Outside(_) => {
                let detail = "The credential is no longer accepted, but the file that keeps revocations outside the \
                              ledger cannot be written. Retry, with the same Idempotency-Key if you sent one.";
                Problem::unavailable(detail, &error)
            }
            RevokeError::Failed(_) => Problem::internal(&error),
        }
    }
}

impl From<Busy> for Problem {
    fn from(busy: Busy) -> Self {
        let problem = Problem::new(Code::Unavailable, busy.to_string()).retry_after(EXPORT_RETRY);
        Problem { is_slowed: matches!(busy, Busy::ForActor(_)), ..problem }
    }
}

impl From<EvidenceError> for Problem {
    fn from(error: EvidenceError) -> Self {
        match error {
            EvidenceError::NoSuchItem => Problem::no_such_item(),
            EvidenceError::TooMany(entries) => {
                let detail = format!(
                    "would give {entries} entries, and a bundle can hold at most {EXPORT_ENTRIES_MAX}; ask for less"
                );
                Problem::invalid(vec![Fault::new("/query", detail)])
            }
            EvidenceError::NotThatLong { .. } => Problem::invalid(vec![Fault::new("/query/kept", error.to_string())]),
            EvidenceError::Store(error) => error.into(),
            EvidenceError::Sign(error) => error.into(),
            other => Problem::internal(&other),
        }
    }
}
