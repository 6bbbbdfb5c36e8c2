use super::*;
use expect_test::{Expect, expect};

/// What HAProxy 2.6, nginx 1.22, Caddy 2.6 and Envoy 1.40 really sent.
const RECORDED: &str = include_str!("recorded.txt");

/// The value of a recorded line: of this proxy, about this caller, under this name.
fn recorded(whose: &str, name: &str) -> &'static [u8] {
    let mut lines = RECORDED.lines().filter_map(|line| line.split_once(" | "));
    let of_this = |(found, line): (&str, &'static str)| {
        let (key, value) = line.split_once(": ")?;
        (found == whose && key.eq_ignore_ascii_case(name)).then_some(value.as_bytes())
    };
    lines.find_map(of_this).expect("a recorded line")
}

fn xfcc(whose: &str) -> &'static str {
    std::str::from_utf8(recorded(whose, "X-Forwarded-Client-Cert")).unwrap()
}

fn runner() -> Vec<u8> {
    read_byte_sequence(recorded("haproxy runner", "Client-Cert")).unwrap()
}

#[test]
fn all_four_proxies_pass_on_the_same_certificate() {
    let ours = runner();
    assert_eq!(read_byte_sequence(recorded("caddy runner", "Client-Cert")).as_ref(), Ok(&ours));
    assert_eq!(read_escaped_pem(recorded("nginx runner", "X-SSL-Client-Cert")), Ok(vec![ours.clone()]));
    let by_envoy = read_xfcc(xfcc("envoy runner").as_bytes()).unwrap();
    assert_eq!(by_envoy.first(), Some(&ours));
}

#[test]
fn a_chain_is_the_same_in_both_formats_that_have_one() {
    let certificate = read_byte_sequence(recorded("haproxy via-int", "Client-Cert")).unwrap();
    let chain = recorded("haproxy via-int", "Client-Cert-Chain");
    let others = read_byte_sequences([chain].into_iter()).unwrap();
    let by_envoy = read_xfcc(xfcc("envoy via-int").as_bytes()).unwrap();
    assert_eq!(by_envoy, [&[certificate.clone()][..], &others].concat());
    let by_nginx = read_escaped_pem(recorded("nginx via-int", "X-SSL-Client-Cert"));
    assert_eq!(by_nginx, Ok(vec![certificate]), "nginx has no chain");
}

#[test]
fn names_of_every_kind_do_not_disturb_the_reading() {
    let odd = read_escaped_pem(recorded("nginx odd", "X-SSL-Client-Cert")).unwrap();
    assert_eq!(read_xfcc(xfcc("envoy odd").as_bytes()).unwrap()[0], odd[0], "quotes and commas in the subject");
    assert!(read_xfcc(xfcc("envoy many").as_bytes()).is_ok(), "keys that repeat");
}

#[track_caller]
fn check_xfcc(line: &str, expected: &Expect) {
    let verdict = match read_xfcc(line.as_bytes()) {
        Ok(certificates) => format!("{} certificates", certificates.len()),
        Err(fault) => fault.to_string(),
    };
    expected.assert_eq(&verdict);
}

#[test]
fn a_certificate_cannot_make_its_owner_somebody_else() {
    let injected = xfcc("envoy inject");
    check_xfcc(
        injected,
        &expect!["has more than one element, so more than one proxy wrote it or a certificate forged it"],
    );
    let (within_one_element, _) = injected.split_once(",By=evil").unwrap();
    check_xfcc(within_one_element, &expect!["must have exactly one `Cert`"]);
    // Envoy told to write no `Cert`: then the only one is the forged one, and the hash is still Envoy's.
    let ana = pair_of("envoy odd", "Cert");
    let (hash, _) = injected.split_once(';').unwrap();
    check_xfcc(
        &format!("{hash};URI=spiffe://example.org/a;{ana}"),
        &expect!["has a `Hash` that is not the SHA-256 of its `Cert`"],
    );
    let (other, _) = xfcc("envoy odd").split_once(';').unwrap();
    check_xfcc(&format!("{hash};URI=spiffe://example.org/a;{ana};{other}"), &expect!["must have exactly one `Hash`"]);
    check_xfcc(&format!("{hash};URI=a\"b;{ana}"), &expect!["is not a list of keys and values as Envoy writes it"]);
}

#[test]
fn what_two_proxies_wrote_is_refused() {
    check_xfcc(
        xfcc("envoy two-hops runner"),
        &expect!["has more than one element, so more than one proxy wrote it or a certificate forged it"],
    );
    // One that only the second proxy wrote is about the first, and looks like any other: see the operators' page.
    check_xfcc(xfcc("envoy two-hops none"), &expect!["1 certificates"]);
}

/// `Cert="…"` or another pair of a recorded line.
fn pair_of(whose: &str, key: &str) -> &'static str {
    let start = xfcc(whose).find(&format!("{key}=\"")).unwrap();
    let rest = &xfcc(whose)[start..];
    &rest[..=rest.find("\";").unwrap()]
}

#[test]
fn an_element_needs_one_certificate_in_quotes_with_its_hash() {
    let whole = xfcc("envoy runner");
    let (hash, _) = whole.split_once(';').unwrap();
    let cert = pair_of("envoy runner", "Cert");
    let chain = pair_of("envoy runner", "Chain");
    check_xfcc(&format!("{hash};{cert};{chain}"), &expect!["2 certificates"]);
    check_xfcc(&format!("{hash};{cert}"), &expect!["1 certificates"]);
    check_xfcc(hash, &expect!["must have exactly one `Cert`"]);
    check_xfcc(cert, &expect!["must have exactly one `Hash`"]);
    check_xfcc(&format!("{hash};{cert};{cert}"), &expect!["must have exactly one `Cert`"]);
    check_xfcc(&format!("{hash};{cert};{chain};{chain}"), &expect!["must have exactly one `Chain`"]);
    check_xfcc(
        &format!("{hash};{}", cert.replace('"', "")),
        &expect!["must have its `Cert` as URL-encoded PEM, in quotes"],
    );
    check_xfcc(&format!("{hash};Cert=\"\""), &expect!["must have its `Cert` as URL-encoded PEM, in quotes"]);
    let two = cert.replacen("Cert=\"", &format!("Cert=\"{}", &cert[6..cert.len() - 1]), 1);
    check_xfcc(&format!("{hash};{two}"), &expect!["must have its `Cert` as URL-encoded PEM, in quotes"]);
    let others = pair_of("envoy odd", "Chain");
    check_xfcc(&format!("{hash};{cert};{others}"), &expect!["has a `Chain` that does not begin with its `Cert`"]);
    check_xfcc(&format!("{hash};{cert};Chain=\"\""), &expect!["has a `Chain` that does not begin with its `Cert`"]);
    let long = format!("Chain=\"{}\"", cert[6..cert.len() - 1].repeat(CHAIN_MAX + 2));
    check_xfcc(&format!("{hash};{cert};{long}"), &expect!["has more than 8 certificates after the caller's own"]);
    for wrong in [
        "",
        ";",
        "Hash",
        &format!("{hash};{cert};"),
        &format!("{hash};{cert};;{chain}"),
        &format!("{hash}; {cert}"),
        &format!("{hash};{cert}x"),
        &format!("{hash};{}", cert.trim_end_matches('"')),
        &format!("{hash};{}\\\"", cert.trim_end_matches('"')),
        &format!("{hash};{}", cert.replacen("Cert", "cert", 1)),
        &format!("{hash};{cert};Other=1"),
    ] {
        let expected = expect!["is not a list of keys and values as Envoy writes it"];
        check_xfcc(wrong, &expected);
    }
}

#[test]
fn of_nginx_only_its_own_way_of_writing_is_read() {
    let line = std::str::from_utf8(recorded("nginx runner", "X-SSL-Client-Cert")).unwrap();
    for (wrong, why) in [
        ("", "nothing"),
        (&line[..line.len() - 3], "without the last line's end"),
        (&format!("{line}%0A"), "a further line"),
        (&format!("{line} "), "a space"),
        (&format!("{line}{line}"), "two certificates"),
        (&line.replace("%2B", "+"), "not escaped"),
        (&line.replace("%2F", "%2f"), "escaped in lower case"),
        (&line.replacen('M', "%4D", 1), "a letter that needs no escape"),
        (&line.replacen("%0A", "%0D%0A", 1), "another end of the line"),
        (&line.replacen("%0A", "", 2), "a line that is too long"),
        (&line.replacen("%0A", "%0A%0A", 1), "an empty line"),
        (&line.replace("%20", "+"), "another escape of the space"),
        (&line.replace("CERTIFICATE", "TRUSTED%20CERTIFICATE"), "another kind"),
        (&line.replace("%3D", ""), "without the padding"),
        ("-----BEGIN%20CERTIFICATE-----%0A-----END%20CERTIFICATE-----%0A", "an empty one"),
        ("-----BEGIN%20CERTIFICATE-----%0A", "cut off"),
        ("-----BEGIN%20CERTIFICATE-----%0AMA", "cut off in a line"),
        ("-----BEGIN%20CERTIFICATE-----%0AMA%", "cut off in an escape"),
        ("MIIB", "no PEM"),
    ] {
        assert_eq!(read_escaped_pem(wrong.as_bytes()), Err(Fault::NotEscapedPem), "{why}");
    }
}

#[test]
fn a_byte_sequence_stands_between_colons_and_a_chain_is_bounded() {
    assert_eq!(read_byte_sequence(b":MAA=:"), Ok(vec![0x30, 0]));
    for wrong in
        ["", ":", "::", "MAA=", ":MAA=", ":MAA:", ":MAB=:", ":MAA=: ", ":M-A_:", ":MAA=:;a=1", ":{placeholder}:"]
    {
        assert_eq!(read_byte_sequence(wrong.as_bytes()), Err(Fault::NotByteSequence), "{wrong}");
    }
    let chain = |lines: &[&str]| read_byte_sequences(lines.iter().map(|line| line.as_bytes()));
    assert_eq!(chain(&[":MQA=:, :MgA=:", ":MwA=:"]).map(|found| found.len()), Ok(3));
    assert_eq!(chain(&[]), Ok(vec![]));
    assert_eq!(chain(&["MQA="]), Err(Fault::NotByteSequence));
    assert_eq!(chain(&[&[":MQA=:"; CHAIN_MAX].join(",")]).map(|found| found.len()), Ok(CHAIN_MAX));
    assert_eq!(chain(&[&[":MQA=:"; CHAIN_MAX + 1].join(",")]), Err(Fault::LongChain));
    let large = format!(":{}:", "A".repeat(HEADER_BLOCK_BYTES_MAX));
    assert_eq!(chain(&[&large]), Err(Fault::TooLong));
    assert_eq!(only([large.as_bytes()].into_iter()), Err(Fault::TooLong));
    assert_eq!(only([&b"a"[..], b"a"].into_iter()), Err(Fault::Repeated));
    assert_eq!(only(std::iter::empty()), Ok(None));
}
