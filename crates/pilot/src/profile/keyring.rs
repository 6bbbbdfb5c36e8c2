//! The kernel's session keyring: memory of the kernel that ends with the session, and that no other user can read.

use linux_keyutils::{Key, KeyError, KeyRing, KeyRingIdentifier};
use zeroize::Zeroizing;

/// As much as the kernel takes for one key.
const SECRET_BYTES_MAX: usize = 32_767;

/// Why the keyring cannot be used, in words.
#[derive(Debug)]
pub(crate) struct NoKeyring(pub String);

/// None if there is no such key.
pub(crate) fn read(name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, NoKeyring> {
    let Some(key) = find(name)? else { return Ok(None) };
    // Sized once: growing would leave copies of the secret behind.
    let mut secret = Zeroizing::new(vec![0; SECRET_BYTES_MAX]);
    let length = key.read(&mut *secret).map_err(no_keyring)?;
    secret.truncate(length);
    Ok(Some(secret))
}

/// Replaces what was kept under this name.
pub(crate) fn keep(name: &str, secret: &[u8]) -> Result<(), NoKeyring> {
    if secret.len() > SECRET_BYTES_MAX {
        return Err(NoKeyring(format!(
            "a key has at most {SECRET_BYTES_MAX} bytes, and this one has {}",
            secret.len()
        )));
    }
    ring()?.add_key(name, secret).map(drop).map_err(no_keyring)
}

/// Whether there was such a key.
pub(crate) fn remove(name: &str) -> Result<bool, NoKeyring> {
    let Some(key) = find(name)? else { return Ok(false) };
    // At once and for everyone, also where another keyring links to it.
    key.invalidate().map_err(no_keyring)?;
    Ok(true)
}

fn find(name: &str) -> Result<Option<Key>, NoKeyring> {
    match ring()?.search(name) {
        Ok(key) => Ok(Some(key)),
        Err(KeyError::KeyDoesNotExist | KeyError::KeyExpired | KeyError::KeyRevoked) => Ok(None),
        Err(error) => Err(no_keyring(error)),
    }
}

fn ring() -> Result<KeyRing, NoKeyring> {
    KeyRing::from_special_id(KeyRingIdentifier::Session, false).map_err(no_keyring)
}

fn no_keyring(error: KeyError) -> NoKeyring {
    NoKeyring(format!("the kernel's session keyring cannot be used here: {error}"))
}
