//! Why a token is not accepted.

/// Why a token is not accepted. For the log and the tests: the caller gets the same answer for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the token is not three parts in base64url")]
    Shape,
    #[error("the token's header is not one strict JSON object")]
    Header,
    #[error("the token's typ is not one of identity.oauth.token_types")]
    Type,
    #[error("the token's alg is not one of identity.oauth.algorithms")]
    Algorithm,
    #[error("the token's header uses an extension this service does not support")]
    Critical,
    #[error("the token's header contains or points to a key")]
    OwnKey,
    #[error("the token's kid is missing or malformed")]
    KeyId,
    #[error("the provider publishes no key with the token's kid")]
    UnknownKey,
    #[error("the key with the token's kid is for another algorithm")]
    OtherKey,
    #[error("the token's signature is not by the key it names")]
    Signature,
    #[error("the token's claims are not one strict JSON object")]
    Claims,
    #[error("the token's iss is not identity.oauth.issuer")]
    Issuer,
    #[error("the token's aud does not name identity.oauth.audience")]
    Audience,
    #[error("the token looks like an ID token or another token that is not for access")]
    NotForAccess,
    #[error("the token's sub, or the claim named by identity.oauth.subject_claim, is missing or malformed")]
    Subject,
    #[error("the claim named by identity.oauth.token_id_claim is missing or malformed")]
    TokenId,
    #[error("the claim named by identity.oauth.client_claim is missing or malformed, or another claim contradicts it")]
    Client,
    #[error("the token was issued to a client that is not one of identity.oauth.clients")]
    OtherClient,
    #[error("the token's scope or scp is malformed, or lacks one of identity.oauth.scopes_required")]
    Scope,
    #[error("the token's acr is not one of identity.oauth.acr_values")]
    Acr,
    #[error("the token's amr is malformed, or lacks one of identity.oauth.amr_required")]
    Amr,
    #[error("the claim named by identity.oauth.roles_claim is not a list of strings")]
    RolesClaim,
    #[error("the token has none of the values that identity.oauth.role_values requires for the actor's role")]
    RoleValue,
    #[error("the token's exp, iat or nbf is missing or not a whole number of seconds")]
    Times,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet, or was issued in the future; compare the clocks")]
    Early,
    #[error("the token lives longer than identity.oauth.lifetime_minutes_max")]
    LongLived,
    #[error("the token is bound to its holder's key (cnf), which a bearer token does not prove")]
    Bound,
    #[error("the token was delegated (act), and delegation is not supported")]
    Delegated,
}
