//! The identity mechanism `oauth` from outside, against a real identity provider that rotates its keys, is slow, and
//! is sometimes not there.

mod clients;
mod ends;
mod gate;
mod leaks;
mod login;
mod outage;
mod provider;
mod sign_in;
mod stage;
