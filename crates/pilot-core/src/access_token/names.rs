//! What providers call the same thing. Each list is fixed: a name that anyone could make up is one that nobody checked.

macro_rules! named {
    ($(#[$about:meta])* $kind:ident: $($(#[$of:meta])* $variant:ident = $name:literal,)+) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $kind { $($(#[$of])* $variant),+ }

        impl $kind {
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            pub const fn as_str(self) -> &'static str {
                match self { $($kind::$variant => $name),+ }
            }

            pub fn named(name: &str) -> Option<$kind> {
                match name { $($name => Some($kind::$variant),)+ _ => None }
            }
        }
    };
}

named! {
    /// What the header's `typ` may be.
    TokenType:
    AccessToken = "at+jwt",
    Okta = "okta-internal-at+jwt",
    /// ID tokens have it too.
    Jwt = "JWT",
    /// No `typ` at all, as in ID tokens of the same provider.
    Absent = "absent",
}

named! {
    /// Which claim names the client that a token was issued to.
    ClientClaim:
    ClientId = "client_id",
    Azp = "azp",
    Appid = "appid",
    Cid = "cid",
}

named! {
    /// Which claim says who the token speaks of. Each is unique, never changes and is never given to someone else.
    SubjectClaim:
    Sub = "sub",
    Oid = "oid",
    Uid = "uid",
}

named! {
    /// Which claim tells one token from another.
    TokenIdClaim:
    Jti = "jti",
    Uti = "uti",
    /// A digest of what was signed takes its place.
    Digest = "digest",
}

impl TokenType {
    /// Media types have no letter case, and may leave out `application/` (RFC 7515).
    pub fn of(typ: Option<&str>) -> Option<TokenType> {
        let Some(typ) = typ else { return Some(TokenType::Absent) };
        match typ.to_ascii_lowercase().as_str() {
            "at+jwt" | "application/at+jwt" => Some(TokenType::AccessToken),
            "okta-internal-at+jwt" | "application/okta-internal-at+jwt" => Some(TokenType::Okta),
            "jwt" => Some(TokenType::Jwt),
            _ => None,
        }
    }

    /// Whether the type by itself says that the token is one for access.
    pub const fn is_for_access(self) -> bool {
        match self {
            TokenType::AccessToken | TokenType::Okta => true,
            TokenType::Jwt | TokenType::Absent => false,
        }
    }
}
