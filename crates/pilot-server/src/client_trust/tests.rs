use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa, KeyIdMethod,
    KeyPair, KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

use super::*;

type Ca = CertifiedIssuer<'static, KeyPair>;

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_after = date_time_ymd(2080, 1, 1);
    params
}

fn ca(name: &str) -> Ca {
    CertifiedIssuer::self_signed(params(name), KeyPair::generate().unwrap()).unwrap()
}

/// A list from the first day of one year to the first day of another.
fn list(by: &Ca, from: i32, to: i32) -> String {
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(from, 1, 1),
        next_update: date_time_ymd(to, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(by).unwrap().pem().unwrap()
}

fn at(year: i32) -> Time {
    format!("{year}-06-01T00:00:00Z").parse().unwrap()
}

fn map(actors: &str) -> RoleMap {
    let text = format!(r#"{{"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": [{actors}]}}"#);
    RoleMap::parse(text.as_bytes()).unwrap()
}

struct Files(TempDir);

impl Files {
    fn new(issuers: &[&Ca], lists: &[String]) -> Files {
        let files = Files(TempDir::new().unwrap());
        files.write(issuers, lists);
        files
    }

    fn write(&self, issuers: &[&Ca], lists: &[String]) {
        let pems: Vec<_> = issuers.iter().map(|issuer| issuer.pem()).collect();
        std::fs::write(self.0.path().join("clients.pem"), pems.concat()).unwrap();
        std::fs::write(self.0.path().join("clients.crl"), lists.concat()).unwrap();
    }

    fn named(&self, has_lists: bool) -> config::ClientTrust {
        let path = |name| self.0.path().join(name);
        config::ClientTrust { client_ca: path("clients.pem"), crl: has_lists.then(|| path("clients.crl")) }
    }

    fn load(&self, role_map: Option<&RoleMap>) -> Result<Trust, String> {
        Trust::load(&self.named(true), role_map).map_err(|error| self.said(&error))
    }

    /// Without the directory, which differs from run to run.
    fn said(&self, error: &TrustError) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn refused(outcome: Result<Trust, String>) -> String {
    outcome.err().expect("it must be refused")
}

#[test]
fn a_list_that_its_issuer_did_not_sign_is_refused() {
    let (ours, other) = (ca("Ours"), ca("Ours"));
    let files = Files::new(&[&ours], &[list(&other, 2024, 2099)]);
    assert_eq!(
        refused(files.load(None)),
        "clients.crl: the revocation list of `CN=Ours` is not signed with that issuer's key; fetch it again from the issuer"
    );
    files.write(&[&ours], &[list(&ours, 2024, 2099)]);
    assert!(files.load(None).is_ok());
}

#[test]
fn a_list_replaces_another_only_if_it_is_neither_older_nor_early_nor_missing() {
    let ours = ca("Ours");
    let files = Files::new(&[&ours], &[list(&ours, 2025, 2029)]);
    let former = files.load(None).unwrap();
    let after = |lists: &[String], now| {
        files.write(&[&ours], lists);
        let trust = files.load(None).unwrap();
        let path = Path::new("clients.crl");
        trust.check_after(&former, Some(path), now).map_err(|error| files.said(&error))
    };
    let fetch = "fetch a newer one";
    assert_eq!(after(&[list(&ours, 2025, 2028)], at(2026)), Ok(()));
    assert_eq!(
        after(&[list(&ours, 2024, 2028)], at(2026)),
        Err(format!(
            "clients.crl: the revocation list of `CN=Ours` was made at 2024-01-01T00:00:00.000000Z, before the one in force; {fetch}"
        ))
    );
    assert_eq!(after(&[list(&ours, 2026, 2027)], at(2028)), Ok(()), "it is overdue, and knows more");
    assert_eq!(
        after(&[list(&ours, 2027, 2028)], at(2026)),
        Err("clients.crl: the revocation list of `CN=Ours` is dated 2027-01-01T00:00:00.000000Z, which is in the future; it is tried again until then".to_owned())
    );
    assert_eq!(
        after(&[list(&ca("Other"), 2026, 2027)], at(2026)),
        Err("clients.crl: no longer contains a revocation list of `CN=Ours`, so all certificates of this issuer would be refused; add the list, or remove the issuer from client_ca".to_owned())
    );
}

#[test]
fn what_is_too_old_unverified_or_missing_is_said_and_nothing_else_is() {
    let (ours, partner, below) = (ca("Ours"), ca("Partner"), ca("Below"));
    let files = Files::new(&[&ours], &[list(&ours, 2024, 2027)]);
    assert_eq!(files.load(None).unwrap().warnings(None, at(2026)), Vec::<String>::new());
    files.write(&[&ours, &partner], &[list(&ours, 2024, 2027), list(&below, 2024, 2099)]);
    let warnings = files.load(None).unwrap().warnings(None, at(2081));
    let said = |parts: [&str; 2]| warnings.iter().any(|warning| parts.iter().all(|part| warning.contains(part)));
    assert!(said(["`CN=Ours` in client_ca expired at", "2080-01-01"]), "{warnings:#?}");
    assert!(said(["revocation list of `CN=Ours` should have been replaced by 2027-01-01", ""]), "{warnings:#?}");
    assert!(said(["`CN=Below` cannot be verified yet", ""]), "{warnings:#?}");
    assert!(said(["no revocation list of `CN=Partner`", "are refused"]), "{warnings:#?}");
    assert_eq!(warnings.len(), 5, "{warnings:#?}");
}

#[test]
fn of_two_lists_of_one_issuer_only_the_first_would_count_so_they_are_refused() {
    let ours = ca("Ours");
    let files = Files::new(&[&ours], &[list(&ours, 2024, 2099), list(&ours, 2025, 2099)]);
    let said = "clients.crl: contains two revocation lists of `CN=Ours`; keep only the newest";
    assert_eq!(refused(files.load(None)), said);
}

#[test]
fn a_certificate_that_may_not_issue_others_is_not_an_authority() {
    let ours = ca("Ours");
    let leaf = || {
        let mut params = params("ana");
        (params.is_ca, params.key_usages) = (IsCa::NoCa, Vec::new());
        params
    };
    let mut without_signing = params("Half");
    without_signing.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    for params in [leaf(), without_signing] {
        let wrong = CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &ours).unwrap();
        let files = Files::new(&[&ours, &wrong], &[list(&ours, 2024, 2099)]);
        let said = "clients.pem: contains a certificate that is not an issuer's (CA:TRUE, with a subject); remove it";
        assert_eq!(refused(files.load(None)), said);
    }
}

#[test]
fn an_authority_that_another_one_vouches_for_stays_an_authority_of_its_own() {
    let (ours, partner_key) = (ca("Ours"), KeyPair::generate().unwrap());
    let again = KeyPair::from_pem(&partner_key.serialize_pem()).unwrap();
    let partner = CertifiedIssuer::self_signed(params("Partner"), partner_key).unwrap();
    let vouched = CertifiedIssuer::signed_by(params("Partner"), again, &ours).unwrap();
    let names = |issuers: &[&Ca]| {
        let files = Files::new(issuers, &[]);
        let trust = Trust::load(&files.named(false), None).unwrap();
        trust.authorities.into_iter().map(|authority| (authority.name, authority.places)).collect::<Vec<_>>()
    };
    let apart = |name: &str, places: &[usize]| (name.to_owned(), places.to_vec());
    assert_eq!(names(&[&ours, &vouched, &partner]), [apart("CN=Ours", &[0]), apart("CN=Partner", &[1, 2])]);
    assert_eq!(names(&[&ours, &vouched]), [apart("CN=Ours", &[0, 1])], "without a root of its own it is ours");
}

#[test]
fn an_actor_whose_issuer_is_not_there_is_named_in_a_warning() {
    let ours = ca("Ours");
    let files = Files::new(&[&ours], &[list(&ours, 2024, 2099)]);
    let map = map(
        r#"{"actor_id": "ana", "role": "initiator", "issuer": "CN=Our"}, {"actor_id": "ben", "role": "approver", "issuer": ["CN=Ours", "CN=Ours 2"]}"#,
    );
    let warnings = files.load(Some(&map)).unwrap().warnings(Some(&map), at(2026));
    assert_eq!(
        warnings,
        ["the role map says that `CN=Our` names ana, but client_ca has no such issuer, so ana is locked out"]
    );
}

#[test]
fn with_several_issuers_the_role_map_says_which_one_names_whom() {
    let (ours, partner) = (ca("Ours"), ca("Partner"));
    let files = Files::new(&[&ours, &partner], &[]);
    let load = |map: &RoleMap| Trust::load(&files.named(false), Some(map)).map_err(|error| files.said(&error));
    let open = map(r#"{"actor_id": "ana", "role": "initiator"}, {"actor_id": "ben", "role": "approver"}"#);
    assert_eq!(
        refused(load(&open)),
        "clients.pem: has 2 issuers, and any of them could issue a certificate for ana, ben; add \"issuer\" to each of these actors in the role map: `CN=Ours` or `CN=Partner`"
    );
    let closed = map(r#"{"actor_id": "ana", "role": "initiator", "issuer": "CN=Ours"}"#);
    assert_eq!(load(&closed).unwrap().authorities.len(), 2);
    let twin = ca("Ours");
    files.write(&[&ours, &twin], &[]);
    assert_eq!(
        refused(load(&closed)),
        "clients.pem: two different issuers are called `CN=Ours`, so the role map cannot tell them apart; remove one of them"
    );
    files.write(&[&ours], &[]);
    assert!(load(&open).is_ok(), "a single issuer names everyone");
}

#[test]
fn an_issuer_that_another_one_in_the_file_issued_belongs_to_that_one() {
    let ours = ca("Ours");
    let below = CertifiedIssuer::signed_by(params("Below"), KeyPair::generate().unwrap(), &ours).unwrap();
    let files = Files::new(&[&below, &ours], &[]);
    let open = map(r#"{"actor_id": "ana", "role": "initiator"}"#);
    let names = |trust: Trust| trust.authorities.into_iter().map(|authority| authority.name).collect::<Vec<_>>();
    assert_eq!(names(Trust::load(&files.named(false), Some(&open)).unwrap()), ["CN=Ours"]);
    files.write(&[&below], &[]);
    assert_eq!(names(Trust::load(&files.named(false), Some(&open)).unwrap()), ["CN=Below"]);
}
