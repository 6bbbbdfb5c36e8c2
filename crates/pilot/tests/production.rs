//! The production profile from outside: what it insists on, TLS, the mesh, rate limits, and where credentials come from.

mod check_config;
mod client;
mod credentials;
mod gate;
mod https;
mod mesh;
mod mutual_tls;
mod proxies;
mod proxy;
mod rate;
mod rotation_evidence;
mod secrets;
mod sources;
mod tls;
mod unix_socket;
mod vault;
mod vault_double;
mod vault_server;
