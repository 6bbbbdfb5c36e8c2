//! An issuer of certificates, and an installation that has everything production needs.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SanType,
    SerialNumber, date_time_ymd,
};

use pilot_core::time::Time;

use crate::support::harness::{Installation, TOKEN, credential_file, expiring_credential_file, role_map};

pub const OTHER: &str = "fedcba9876543210fedcba9876543210";

pub struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// The authority's own certificate, as if it were a service's.
    pub fn itself(&self) -> Pair {
        Pair { certificate: self.pem.clone(), key: self.issuer.key().serialize_pem() }
    }

    /// For a service at these names and addresses.
    pub fn issue(&self, names: &[&str], serial: u64) -> Pair {
        self.sign(names, serial, 2099)
    }

    /// One that is valid until the first day of a year.
    pub fn issue_until(&self, names: &[&str], year: i32) -> Pair {
        self.sign(names, 1, year)
    }

    /// One that is valid from now on, or in a moment.
    pub fn issue_from(&self, names: &[&str], from: Time) -> Pair {
        self.sign_from(names, 1, from, 2099)
    }

    fn sign(&self, names: &[&str], serial: u64, until: i32) -> Pair {
        self.sign_from(names, serial, "2023-01-01T00:00:00Z".parse().unwrap(), until)
    }

    fn sign_from(&self, names: &[&str], serial: u64, from: Time, until: i32) -> Pair {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        params.not_before = date_time_ymd(1970, 1, 1) + from.since(Time::EPOCH);
        params.not_after = date_time_ymd(until, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// For a caller with this subject or this SPIFFE ID, until then.
    pub fn issue_client(&self, subject: &[(DnType, &str)], spiffe: Option<&str>, serial: u64, until: Time) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.subject_alt_names = spiffe.iter().map(|id| SanType::URI((*id).try_into().unwrap())).collect();
        params.serial_number = Some(SerialNumber::from(serial));
        params.not_before = date_time_ymd(2023, 1, 1);
        params.not_after = date_time_ymd(1970, 1, 1) + until.since(Time::EPOCH);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// A list that revokes these.
    pub fn revoke(&self, serials: &[u64]) -> String {
        self.revoke_in(2024, serials)
    }

    /// The same, made in this year.
    pub fn revoke_in(&self, year: i32, serials: &[u64]) -> String {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(year, 1, 1),
            next_update: date_time_ymd(2099, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

pub const TLS: &str = "[tls]\ncertificate = 'tls.pem'\nkey = 'tls.key'\n";
pub const MESH: &str = "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']\n";
pub const ROLE_MAP: &str = "[credentials]\nrole_map = 'role-map.json'\n";
pub const RATE_LIMITS: &str = "[rate_limits]\n";
pub const IDENTITY: &str = "[identity]\nmechanism = 'credential_file'\n";

/// Ana, an initiator, and ben, an approver; a pair for 127.0.0.1; and these sections.
pub fn installation(profile: &str, sections: &[&str]) -> (Installation, Authority) {
    let authority = Authority::new("Test Authority");
    let installation = Installation::with(&[]);
    let entries = [("ana", "initiator", TOKEN), ("ben", "approver", OTHER)];
    let credentials = match profile {
        "production" => expiring_credential_file(&entries, "2090-01-01T00:00:00Z"),
        _ => credential_file(&entries),
    };
    installation.write("credentials.json", &credentials);
    installation.write("role-map.json", &role_map(&[("ana", "initiator"), ("ben", "approver")]));
    installation.write("ca.pem", &authority.pem);
    install(&installation, &authority.issue(&["127.0.0.1", "localhost"], 1));
    configure(&installation, profile, sections);
    (installation, authority)
}

pub fn configure(installation: &Installation, profile: &str, sections: &[&str]) {
    let head = format!("profile = '{profile}'\nlisten = '127.0.0.1:0'\n");
    installation.write("pilot.toml", &(head + &sections.concat()));
}

pub fn install(installation: &Installation, pair: &Pair) {
    installation.write("tls.pem", &pair.certificate);
    installation.write("tls.key", &pair.key);
}
