//! The validity period and the name of a new credential.

use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::credentials::{Credential, CredentialId, Schema};
use pilot_core::time::Time;
use pilot_core::token::Token;

use crate::exit::Failure;

/// What schema_version 2 says in addition about a credential.
#[derive(clap::Args)]
pub(crate) struct LifeArguments {
    /// The credential's name [default: its fingerprint] (schema_version 2)
    #[arg(long = "id", value_name = "CREDENTIAL_ID")]
    id: Option<CredentialId>,
    /// After how many days it expires [default: 90] (schema_version 2)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    expires_in: Option<u32>,
}

const EXPIRES_IN_DAYS: u32 = 90;

impl LifeArguments {
    /// A credential for a file of this schema.
    pub(crate) fn credential(
        &self,
        schema: Schema,
        actor: Actor,
        token: &Token,
        now: Time,
    ) -> Result<Credential, Failure> {
        let plain = Credential::new(actor, token);
        match schema {
            Schema::One if self.id.is_some() || self.expires_in.is_some() => Err(Failure::Usage(
                "the credential file has schema_version 1, which supports neither --id nor --expires-in; `pilot \
                 credential convert` converts it to schema_version 2 and keeps the tokens"
                    .into(),
            )),
            Schema::One => Ok(plain),
            Schema::Two => Ok(Credential {
                id: self.id.clone().unwrap_or(plain.id),
                not_before: Some(now),
                expires_at: Some(end(self.expires_in, now)),
                ..plain
            }),
        }
    }

    /// The only format in which these options make sense.
    pub(super) fn schema(&self) -> Option<Schema> {
        (self.id.is_some() || self.expires_in.is_some()).then_some(Schema::Two)
    }
}

/// The expiry of a credential that begins now.
pub(super) fn end(days: Option<u32>, now: Time) -> Time {
    now.plus(Duration::from_hours(24 * u64::from(days.unwrap_or(EXPIRES_IN_DAYS))))
}
