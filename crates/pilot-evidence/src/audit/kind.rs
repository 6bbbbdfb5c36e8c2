//! The kinds of exceptions: what an auditor looks at one by one.

/// The names are part of the format of the tables: they are added, never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The verdict has a fault.
    Fault,
    /// Attempts that the service refused for role, ownership or separation of duties.
    RefusedAttempt,
    TokenExposed,
    CredentialRevoked,
    /// A credential was used after its end, and refused.
    EndedCredentialUsed,
    /// After a loss, an operator accepted credentials that may have been revoked.
    CredentialsTrusted,
    /// An effect began although no votes had let the item pass: an emergency.
    EffectWithoutVotes,
    /// Such an effect, and no votes have judged it since.
    NotJudged,
    /// Such an effect, and votes found it not justified.
    Condemned,
    Hold,
    Release,
    ExecutionFailed,
    /// A retry or a roll-back.
    EffectAgain,
    /// Time ran out while something was being carried out.
    EffectTimedOut,
    /// Someone said that nobody knows how an execution ended.
    OutcomeUnknown,
    /// Someone settled how it ended.
    OutcomeSettled,
    /// A deadline passed, and ended the item.
    Expired,
    /// Ended by someone after votes had let it pass, and before anything was carried out.
    StoppedAfterVotes,
    DocumentsErased,
    ClockAccepted,
    LedgerRestored,
    LossAccepted,
    RoleMapChanged,
    DefinitionsChanged,
    NoRoleMap,
    /// An entry whose details this program cannot read.
    Unreadable,
}

impl Kind {
    pub const ALL: [Kind; 26] = [
        Kind::Fault,
        Kind::RefusedAttempt,
        Kind::TokenExposed,
        Kind::CredentialRevoked,
        Kind::EndedCredentialUsed,
        Kind::CredentialsTrusted,
        Kind::EffectWithoutVotes,
        Kind::NotJudged,
        Kind::Condemned,
        Kind::Hold,
        Kind::Release,
        Kind::ExecutionFailed,
        Kind::EffectAgain,
        Kind::EffectTimedOut,
        Kind::OutcomeUnknown,
        Kind::OutcomeSettled,
        Kind::Expired,
        Kind::StoppedAfterVotes,
        Kind::DocumentsErased,
        Kind::ClockAccepted,
        Kind::LedgerRestored,
        Kind::LossAccepted,
        Kind::RoleMapChanged,
        Kind::DefinitionsChanged,
        Kind::NoRoleMap,
        Kind::Unreadable,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Fault => "fault",
            Kind::RefusedAttempt => "refused_attempt",
            Kind::TokenExposed => "token_exposed",
            Kind::CredentialRevoked => "credential_revoked",
            Kind::EndedCredentialUsed => "ended_credential_used",
            Kind::CredentialsTrusted => "credentials_trusted",
            Kind::EffectWithoutVotes => "effect_without_votes",
            Kind::NotJudged => "not_judged",
            Kind::Condemned => "condemned",
            Kind::Hold => "hold",
            Kind::Release => "release",
            Kind::ExecutionFailed => "execution_failed",
            Kind::EffectAgain => "effect_again",
            Kind::EffectTimedOut => "effect_timed_out",
            Kind::OutcomeUnknown => "outcome_unknown",
            Kind::OutcomeSettled => "outcome_settled",
            Kind::Expired => "expired",
            Kind::StoppedAfterVotes => "stopped_after_votes",
            Kind::DocumentsErased => "documents_erased",
            Kind::ClockAccepted => "clock_accepted",
            Kind::LedgerRestored => "ledger_restored",
            Kind::LossAccepted => "loss_accepted",
            Kind::RoleMapChanged => "role_map_changed",
            Kind::DefinitionsChanged => "definitions_changed",
            Kind::NoRoleMap => "no_role_map",
            Kind::Unreadable => "unreadable",
        }
    }
}
