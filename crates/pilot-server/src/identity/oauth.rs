//! Access tokens of one identity provider. The provider says who is calling; only the role map says which actor that
//! is, and in which role.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use pilot_api::access::ActorView;
use pilot_api::access::{CredentialView, State};
use pilot_core::access_token::{Claims, Fault, Rules, Unverified, Verified};
use pilot_core::actor::Actor;
use pilot_core::bearer::{Presented, presented_signed};
use pilot_core::credentials::CredentialId;
use pilot_core::limits::{
    ACCESS_TOKENS_EXPIRED_MAX, ACCESS_TOKENS_SEEN_MAX, CLIENT_SHOWN_CHARS_MAX, INTROSPECTION_KEPT, KEY_SET_PAUSE,
    KEY_SET_REFETCHED, KEY_SET_RETRIED,
};
use pilot_core::role_map::{MappedActor, RoleMap};
use pilot_core::time::Time;
use pilot_core::token::Token;
use pilot_ledger::clock::Clock;
use pilot_ledger::register::{Ended, KnownCredential, NamedCredential, Register, ShownCredential};
use pilot_setup::config::{Config, Introspection, Mechanism};
use pilot_setup::error::{StartError, with_cause};
use pilot_setup::private_file::{self, Others};
use pilot_wire::exposition::Exposition;
use sha2::Digest as _;
use zeroize::Zeroizing;

use super::denial::{Denial, Unknown};
use crate::caller::Caller;

pub mod discovery;
pub mod introspection;
pub mod provider;
pub mod resource;
pub mod signature;

use introspection::{Introspector, Question, Standing};
use provider::{Provider, Undecided};
use resource::Resource;

pub struct Oauth {
    pub provider: Arc<Provider>,
    pub resource: Resource,
    introspector: Option<Introspector>,
    rules: Rules,
    role_map: RoleMap,
    register: Arc<Register>,
    clock: Clock,
    /// Tokens that were shown and have not expired.
    seen: Mutex<HashMap<CredentialId, Seen>>,
    /// Tokens that were shown after they had expired, earliest expiry first.
    expired: Mutex<BTreeSet<(Time, CredentialId)>>,
}

struct Seen {
    actor: Actor,
    expires_at: Time,
    at: Time,
}

/// What is checked again as long as a feed is open under it.
pub enum Watch {
    Token(WatchedToken),
    /// There should be a token, but it could not be judged again: the feed must not continue unwatched.
    Lost,
}

pub struct WatchedToken {
    token: Token,
    id: CredentialId,
    verified: Verified,
}

/// A valid token, and whose it is.
struct Holder {
    actor: Actor,
    shown: ShownCredential,
}

impl Oauth {
    pub fn new(trusted: Trusted, role_map: RoleMap, register: Arc<Register>, clock: Clock) -> Oauth {
        let Trusted { provider, introspector } = trusted;
        Oauth {
            resource: Resource::new(provider.config()),
            rules: provider.config().rules(),
            provider: Arc::new(provider),
            introspector,
            role_map,
            register,
            clock,
            seen: Mutex::default(),
            expired: Mutex::default(),
        }
    }

    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller, Denial> {
        let lines = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let token = match presented_signed(lines) {
            Presented::Nothing => return Err(Unknown::Missing.into()),
            Presented::Malformed => return Err(Unknown::Malformed.into()),
            Presented::Token(token) => token,
        };
        let unverified = Unverified::read(token, &self.rules)?;
        let keys = self.provider.keys_with(&unverified.key_id).await?;
        let claims = signature::claims_of(unverified, &keys, &self.rules)?;
        let verified = claims.at(&self.rules, self.clock.now());
        let verified = verified.inspect_err(|fault| self.note_expired(&claims, *fault))?;
        let Holder { actor, shown } = self.holder(&verified)?;
        self.refuse_ended(&actor, &shown)?;
        if self.register.is_doubted(&shown.id, Some(claims.issued_at())) {
            return Err(self.refuse(&actor, &shown, Unknown::Doubted));
        }
        if let Some(introspector) = &self.introspector {
            if let Standing::Refused(cause) = self.standing(introspector, token, &verified).await? {
                // Everything else that is open under it ends too.
                self.register.end_here(&shown.id);
                return Err(Denial::because(Unknown::Revoked, cause));
            }
            // The token may have been revoked here while the provider was asked.
            self.refuse_ended(&actor, &shown)?;
        }
        self.note_seen(&actor, &shown);
        Ok(Caller {
            actor,
            credential: Arc::new(shown),
            client: Some(shown_client(&verified.client_id).into()),
            session: None,
            origin: None,
        })
    }

    /// Whether tokens can be judged at the moment.
    pub fn check(&self) -> Result<(), Undecided> {
        self.provider.check()?;
        self.introspector.as_ref().map_or(Ok(()), Introspector::check)
    }

    pub fn metrics(&self, text: &mut Exposition) {
        self.provider.metrics(text);
        if let Some(introspector) = &self.introspector {
            introspector.metrics(text);
        }
    }

    /// Keeps what is known of the provider fresh as long as the service runs.
    pub async fn follow(&self) {
        tokio::join!(self.provider.follow(), self.follow_introspection());
    }

    async fn follow_introspection(&self) {
        let Some(introspector) = &self.introspector else { return };
        loop {
            introspector.probe(self.provider.outgoing()).await;
            let pause = if introspector.check().is_ok() { KEY_SET_REFETCHED } else { KEY_SET_RETRIED };
            // Not at once: many callers may find out at the same time.
            tokio::time::sleep(KEY_SET_PAUSE).await;
            let _ = tokio::time::timeout(pause, introspector.is_doubted()).await;
        }
    }

    async fn standing(
        &self,
        introspector: &Introspector,
        token: &[u8],
        said: &Verified,
    ) -> Result<Standing, Undecided> {
        let Verified { sub, client_id, .. } = said;
        let question = Question { token, sub, client_id, demands: &self.rules.demands };
        introspector.standing(self.provider.outgoing(), question).await
    }

    /// The token of a request that will stay open for long, if the provider has to be asked about it again.
    pub fn watch(&self, headers: &HeaderMap) -> Option<Watch> {
        self.introspector.as_ref()?;
        Some(self.watched(headers).map_or(Watch::Lost, Watch::Token))
    }

    fn watched(&self, headers: &HeaderMap) -> Option<WatchedToken> {
        let lines = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let Presented::Token(token) = presented_signed(lines) else { return None };
        let keys = self.provider.keys().ok()?;
        let verified = signature::verify(token, &keys, &self.rules, self.clock.now()).ok()?;
        let text = Zeroizing::new(std::str::from_utf8(token).ok()?.to_owned());
        Some(WatchedToken { token: Token::parse(text).ok()?, id: credential_id(&verified.token_id), verified })
    }

    /// Returns when the provider no longer says that the token is active, or does not answer.
    pub async fn until_inactive(&self, watch: &Watch) {
        let Some(introspector) = &self.introspector else { return std::future::pending().await };
        let Watch::Token(watched) = watch else { return };
        loop {
            tokio::time::sleep(INTROSPECTION_KEPT).await;
            let header = watched.token.bearer();
            let token = header.strip_prefix("Bearer ").unwrap_or_default().as_bytes();
            match self.standing(introspector, token, &watched.verified).await {
                Ok(Standing::Active) => {}
                Ok(Standing::Refused(_)) => return self.register.end_here(&watched.id),
                Err(_) => return,
            }
        }
    }

    /// One actor, one role, as approved. What the token itself says about roles can keep the actor out, and no more.
    fn holder(&self, verified: &Verified) -> Result<Holder, Denial> {
        let stranger = || {
            let cause = "the token's subject is not in the role map, or another issuer names that actor";
            Denial::because(Unknown::Unrecognised, cause)
        };
        let mapped = self.actor_called(&verified.subject).ok_or_else(stranger)?;
        verified.suffices_for(mapped)?;
        let shown = ShownCredential::new(credential_id(&verified.token_id), Some(verified.expires_at));
        Ok(Holder { actor: mapped.actor.clone(), shown })
    }

    fn actor_called(&self, subject: &str) -> Option<&MappedActor> {
        self.role_map.actor_named(subject, &self.provider.config().issuer.text)
    }

    fn end_of(&self, id: &CredentialId, expires_at: Option<Time>) -> Option<Ended> {
        let is_expired = |at| {
            let expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
            !expired.is_empty() && expired.contains(&(at, id.clone()))
        };
        self.register.end_of(id).or_else(|| expires_at.filter(|at| is_expired(*at)).map(|_| Ended::Expired))
    }

    /// What has expired stays expired, whatever the clock says later. If there are too many, those are dropped for
    /// which the clock would have to be set back furthest.
    fn note_expired(&self, claims: &Claims, fault: Fault) {
        let said = claims.at_any_time();
        if fault != Fault::Expired || self.actor_called(&said.subject).is_none() {
            return;
        }
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        expired.insert((said.expires_at, credential_id(&said.token_id)));
        if expired.len() > ACCESS_TOKENS_EXPIRED_MAX {
            expired.pop_first();
        }
    }

    fn refuse_ended(&self, actor: &Actor, shown: &ShownCredential) -> Result<(), Denial> {
        let unknown = match self.end_of(&shown.id, shown.expires_at) {
            None => return Ok(()),
            Some(Ended::Revoked) => Unknown::Revoked,
            Some(Ended::Expired) => Unknown::Expired,
        };
        Err(self.refuse(actor, shown, unknown))
    }

    fn refuse(&self, actor: &Actor, shown: &ShownCredential, unknown: Unknown) -> Denial {
        let named = NamedCredential {
            actor_id: actor.actor_id.clone(),
            credential_id: None,
            expires_at: shown.expires_at,
            fingerprint: shown.id.clone(),
            role: actor.role,
        };
        self.register.note_refusal(&named, unknown.as_str());
        unknown.into()
    }

    fn note_seen(&self, actor: &Actor, shown: &ShownCredential) {
        let (now, Some(expires_at)) = (self.clock.now(), shown.expires_at) else { return };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = seen.get_mut(&shown.id) {
            known.at = now;
            return;
        }
        if seen.len() >= ACCESS_TOKENS_SEEN_MAX {
            seen.retain(|_, seen| seen.expires_at > now);
        }
        if seen.len() < ACCESS_TOKENS_SEEN_MAX {
            seen.insert(shown.id.clone(), Seen { actor: actor.clone(), expires_at, at: now });
        }
    }

    /// Whose token this is, if it would be accepted now, as far as is known without asking anyone.
    pub fn holder_of(&self, token: &[u8]) -> Option<(Actor, CredentialId)> {
        let keys = self.provider.keys().ok()?;
        let verified = signature::verify(token, &keys, &self.rules, self.clock.now()).ok()?;
        let Holder { actor, shown } = self.holder(&verified).ok()?;
        // The caller is about to end it, and has to say whose it was.
        self.note_seen(&actor, &shown);
        Some((actor, shown.id))
    }

    pub fn role_map(&self) -> &RoleMap {
        &self.role_map
    }

    pub fn actors(&self) -> Vec<ActorView> {
        let now = self.clock.now();
        // How many each actor has, and when the last was shown.
        let mut shown: HashMap<Actor, (usize, Time)> = HashMap::new();
        for seen in self.seen.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let is_live = usize::from(seen.expires_at > now);
            match shown.get_mut(&seen.actor) {
                Some((credentials, last)) => (*credentials, *last) = (*credentials + is_live, seen.at.max(*last)),
                None => drop(shown.insert(seen.actor.clone(), (is_live, seen.at))),
            }
        }
        let view = |mapped: &MappedActor| {
            let own = shown.get(&mapped.actor);
            ActorView {
                credentials: own.map_or(0, |(credentials, _)| *credentials),
                last_seen: own.map(|(_, last)| *last),
                ..ActorView::of(mapped)
            }
        };
        let mut actors: Vec<_> = self.role_map.actors.iter().map(view).collect();
        actors.sort_by(|one, other| one.actor_id.cmp(&other.actor_id));
        actors
    }

    /// Those that were shown since the start and have not expired.
    pub fn credentials(&self) -> Vec<CredentialView> {
        let now = self.clock.now();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let view = |(id, seen): (&CredentialId, &Seen)| CredentialView {
            credential_id: id.clone(),
            actor_id: Some(seen.actor.actor_id.clone()),
            role: Some(seen.actor.role),
            not_before: None,
            expires_at: Some(seen.expires_at),
            state: match self.end_of(id, Some(seen.expires_at)) {
                None => State::Live,
                Some(Ended::Expired) => State::Expired,
                Some(Ended::Revoked) => State::Revoked,
            },
            last_seen: Some(seen.at),
        };
        let mut views: Vec<_> = seen.iter().filter(|(_, seen)| seen.expires_at > now).map(view).collect();
        views.sort_by(|one, other| (&one.actor_id, &one.credential_id).cmp(&(&other.actor_id, &other.credential_id)));
        views
    }

    /// Any name may be that of a token: the provider chooses them, and one can be revoked before it is shown here.
    pub fn credential(&self, id: &CredentialId) -> Option<KnownCredential> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.get(id);
        // If it has been issued by now, give or take the leeway, it cannot live longer than this.
        let seconds = u64::from(self.rules.lifetime_seconds_max) + 2 * u64::from(self.rules.leeway_seconds);
        let latest = self.clock.now().plus(Duration::from_secs(seconds));
        Some(KnownCredential {
            id: id.clone(),
            actor: seen.map(|seen| seen.actor.clone()),
            fingerprint: None,
            forget_at: Some(seen.map_or(latest, |seen| seen.expires_at)),
        })
    }
}

/// The provider that the configuration trusts, with everything that can be known before asking it.
pub struct Trusted {
    pub provider: Provider,
    pub introspector: Option<Introspector>,
}

impl Trusted {
    /// `None` if another mechanism is active.
    pub fn open(config: &Config, clock: &Clock) -> Result<Option<Trusted>, StartError> {
        let section = config.identity.as_ref().filter(|identity| identity.mechanism == Mechanism::Oauth);
        let Some(oauth) = section.and_then(|identity| identity.oauth.as_ref()) else { return Ok(None) };
        let introspector = match &oauth.introspection {
            Some(section) => Some(introspector(section, config.others(), clock)?),
            None => None,
        };
        let provider = Provider::new(oauth.clone(), config.provider_path(), clock.clone());
        let provider =
            provider.map_err(|error| StartError::Refused(format!("identity.oauth: {}", with_cause(&error))))?;
        Ok(Some(Trusted { provider, introspector }))
    }
}

fn introspector(section: &Introspection, others: Others, clock: &Clock) -> Result<Introspector, StartError> {
    let file = private_file::read(&section.client_secret_file, others);
    let file = file.map_err(|error| StartError::Refused(with_cause(&error)))?;
    if let Some(exposed) = &file.exposed {
        tracing::warn!("{exposed}");
    }
    let secret = std::str::from_utf8(&file.bytes).map(str::trim_end).unwrap_or_default();
    if secret.is_empty() || secret.contains(char::is_control) {
        let path = section.client_secret_file.display();
        return Err(StartError::Refused(format!(
            "{path}: must contain the client's secret on one line, and nothing else"
        )));
    }
    Ok(Introspector::new(section.url.clone(), &section.client_id, secret, clock.clone()))
}

/// What a token is called here: its own id, or a digest of it if that does not have our format.
pub fn credential_id(token_id: &str) -> CredentialId {
    token_id.parse().unwrap_or_else(|_| CredentialId::from_digest("sha256", &short_digest(token_id)))
}

/// What a client is called in the log: its id at the provider, or a digest of it if that is long or could be mistaken for
/// something else.
pub fn shown_client(client_id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-".contains(&byte);
    let fits = client_id.len() <= CLIENT_SHOWN_CHARS_MAX && client_id.bytes().all(is_plain);
    if fits { client_id.to_owned() } else { format!("sha256:{}", short_digest(client_id)) }
}

fn short_digest(text: &str) -> String {
    HEXLOWER.encode(&sha2::Sha256::digest(text.as_bytes())).chars().take(32).collect()
}

impl From<Fault> for Denial {
    fn from(fault: Fault) -> Self {
        let unknown = match fault {
            Fault::Shape => Unknown::Malformed,
            Fault::Expired => Unknown::Expired,
            Fault::Early => Unknown::NotYet,
            _ => Unknown::Unrecognised,
        };
        Denial { unknown, cause: fault.to_string() }
    }
}

impl From<Undecided> for Denial {
    fn from(Undecided(cause): Undecided) -> Self {
        Denial { unknown: Unknown::Undecided, cause }
    }
}
