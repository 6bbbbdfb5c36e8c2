//! The guard of requests to addresses that someone else chose: each target with its verdict.

use std::net::IpAddr;

use pilot_wire::outgoing::{Reach, Target, why_forbidden};

/// What is written in a configuration, and why it is refused.
#[rustfmt::skip]
const FORBIDDEN: &[(&str, &str)] = &[
    ("https://0.0.0.0/", "leads to 0.0.0.0, which is not allowed: this network"),
    ("https://0.1.2.3/", "leads to 0.1.2.3, which is not allowed: this network"),
    ("https://0.255.255.255/", "leads to 0.255.255.255, which is not allowed: this network"),
    ("https://10.0.0.1/", "leads to 10.0.0.1, which is not allowed: private"),
    ("https://10.255.255.255/", "leads to 10.255.255.255, which is not allowed: private"),
    ("https://100.64.0.1/", "leads to 100.64.0.1, which is not allowed: shared by a carrier"),
    ("https://100.100.100.200/", "leads to 100.100.100.200, which is not allowed: shared by a carrier"),
    ("https://100.127.255.255/", "leads to 100.127.255.255, which is not allowed: shared by a carrier"),
    ("https://127.0.0.1/", "leads to 127.0.0.1, which is not allowed: loopback"),
    ("https://127.1.2.3/", "leads to 127.1.2.3, which is not allowed: loopback"),
    ("https://127.255.255.254/", "leads to 127.255.255.254, which is not allowed: loopback"),
    ("https://168.63.129.16/", "leads to 168.63.129.16, which is not allowed: the platform of a cloud"),
    ("https://169.254.0.1/", "leads to 169.254.0.1, which is not allowed: link-local"),
    ("https://169.254.169.254/", "leads to 169.254.169.254, which is not allowed: link-local"),
    ("https://169.254.170.2/", "leads to 169.254.170.2, which is not allowed: link-local"),
    ("https://169.254.255.255/", "leads to 169.254.255.255, which is not allowed: link-local"),
    ("https://172.16.0.1/", "leads to 172.16.0.1, which is not allowed: private"),
    ("https://172.17.0.1/", "leads to 172.17.0.1, which is not allowed: private"),
    ("https://172.31.255.255/", "leads to 172.31.255.255, which is not allowed: private"),
    ("https://192.0.0.1/", "leads to 192.0.0.1, which is not allowed: for protocols"),
    ("https://192.0.0.192/", "leads to 192.0.0.192, which is not allowed: for protocols"),
    ("https://192.0.2.1/", "leads to 192.0.2.1, which is not allowed: for documentation"),
    ("https://192.88.99.1/", "leads to 192.88.99.1, which is not allowed: a relay to IPv6"),
    ("https://192.168.0.1/", "leads to 192.168.0.1, which is not allowed: private"),
    ("https://192.168.255.255/", "leads to 192.168.255.255, which is not allowed: private"),
    ("https://198.18.0.1/", "leads to 198.18.0.1, which is not allowed: for benchmarks"),
    ("https://198.19.255.255/", "leads to 198.19.255.255, which is not allowed: for benchmarks"),
    ("https://198.51.100.7/", "leads to 198.51.100.7, which is not allowed: for documentation"),
    ("https://203.0.113.9/", "leads to 203.0.113.9, which is not allowed: for documentation"),
    ("https://224.0.0.1/", "leads to 224.0.0.1, which is not allowed: multicast"),
    ("https://239.255.255.250/", "leads to 239.255.255.250, which is not allowed: multicast"),
    ("https://240.0.0.1/", "leads to 240.0.0.1, which is not allowed: reserved"),
    ("https://254.1.2.3/", "leads to 254.1.2.3, which is not allowed: reserved"),
    ("https://255.255.255.255/", "leads to 255.255.255.255, which is not allowed: broadcast"),
    ("https://[::]/", "leads to ::, which is not allowed: unspecified"),
    ("https://[::1]/", "leads to ::1, which is not allowed: loopback"),
    ("https://[0:0:0:0:0:0:0:1]/", "leads to ::1, which is not allowed: loopback"),
    ("https://[0000::0001]/", "leads to ::1, which is not allowed: loopback"),
    ("https://[::ffff:127.0.0.1]/", "leads to ::ffff:127.0.0.1, which is not allowed: IPv4 in IPv6"),
    ("https://[::ffff:7f00:1]/", "leads to ::ffff:127.0.0.1, which is not allowed: IPv4 in IPv6"),
    ("https://[::FFFF:10.0.0.1]/", "leads to ::ffff:10.0.0.1, which is not allowed: IPv4 in IPv6"),
    ("https://[::ffff:169.254.169.254]/", "leads to ::ffff:169.254.169.254, which is not allowed: IPv4 in IPv6"),
    ("https://[::ffff:8.8.8.8]/", "leads to ::ffff:8.8.8.8, which is not allowed: IPv4 in IPv6"),
    ("https://[0:0:0:0:0:ffff:c0a8:1]/", "leads to ::ffff:192.168.0.1, which is not allowed: IPv4 in IPv6"),
    ("https://[::127.0.0.1]/", "leads to ::7f00:1, which is not allowed: IPv4 in IPv6"),
    ("https://[::7f00:1]/", "leads to ::7f00:1, which is not allowed: IPv4 in IPv6"),
    ("https://[::a9fe:a9fe]/", "leads to ::a9fe:a9fe, which is not allowed: IPv4 in IPv6"),
    ("https://[::ffff:0:127.0.0.1]/", "leads to ::ffff:0:7f00:1, which is not allowed: translated to IPv4"),
    ("https://[64:ff9b::7f00:1]/", "leads to 64:ff9b::7f00:1, which is not allowed: translated to IPv4"),
    ("https://[64:ff9b::169.254.169.254]/", "leads to 64:ff9b::a9fe:a9fe, which is not allowed: translated to IPv4"),
    ("https://[64:ff9b::10.0.0.1]/", "leads to 64:ff9b::a00:1, which is not allowed: translated to IPv4"),
    ("https://[64:ff9b:1::1]/", "leads to 64:ff9b:1::1, which is not allowed: translated to IPv4"),
    ("https://[64:ff9b:1:ffff::a9fe:a9fe]/", "leads to 64:ff9b:1:ffff::a9fe:a9fe, which is not allowed: translated to IPv4"),
    ("https://[100::1]/", "leads to 100::1, which is not allowed: discarded"),
    ("https://[100:0:0:1::1]/", "leads to 100:0:0:1::1, which is not allowed: not public"),
    ("https://[2001::1]/", "leads to 2001::1, which is not allowed: tunnelled to IPv4"),
    ("https://[2001:0:53aa:64c:0:7fff:5692:e11d]/", "leads to 2001:0:53aa:64c:0:7fff:5692:e11d, which is not allowed: tunnelled to IPv4"),
    ("https://[2001:2::1]/", "leads to 2001:2::1, which is not allowed: for benchmarks"),
    ("https://[2001:10::1]/", "leads to 2001:10::1, which is not allowed: for protocols"),
    ("https://[2001:20::1]/", "leads to 2001:20::1, which is not allowed: for protocols"),
    ("https://[2001:1ff:ffff::1]/", "leads to 2001:1ff:ffff::1, which is not allowed: for protocols"),
    ("https://[2001:db8::1]/", "leads to 2001:db8::1, which is not allowed: for documentation"),
    ("https://[2001:db8:ffff::a]/", "leads to 2001:db8:ffff::a, which is not allowed: for documentation"),
    ("https://[2002:7f00:1::]/", "leads to 2002:7f00:1::, which is not allowed: tunnelled to IPv4"),
    ("https://[2002:7f00:1::1]/", "leads to 2002:7f00:1::1, which is not allowed: tunnelled to IPv4"),
    ("https://[2002:a9fe:a9fe::1]/", "leads to 2002:a9fe:a9fe::1, which is not allowed: tunnelled to IPv4"),
    ("https://[2002:c0a8:1::1]/", "leads to 2002:c0a8:1::1, which is not allowed: tunnelled to IPv4"),
    ("https://[3fff::1]/", "leads to 3fff::1, which is not allowed: for documentation"),
    ("https://[3fff:fff:ffff::1]/", "leads to 3fff:fff:ffff::1, which is not allowed: for documentation"),
    ("https://[4000::1]/", "leads to 4000::1, which is not allowed: not public"),
    ("https://[5f00::1]/", "leads to 5f00::1, which is not allowed: not public"),
    ("https://[fc00::1]/", "leads to fc00::1, which is not allowed: private"),
    ("https://[fd00::1]/", "leads to fd00::1, which is not allowed: private"),
    ("https://[fd00:ec2::254]/", "leads to fd00:ec2::254, which is not allowed: private"),
    ("https://[fd20:ce::254]/", "leads to fd20:ce::254, which is not allowed: private"),
    ("https://[fdff:ffff::1]/", "leads to fdff:ffff::1, which is not allowed: private"),
    ("https://[fe00::1]/", "leads to fe00::1, which is not allowed: not public"),
    ("https://[fe80::1]/", "leads to fe80::1, which is not allowed: link-local"),
    ("https://[febf::1]/", "leads to febf::1, which is not allowed: link-local"),
    ("https://[fec0::1]/", "leads to fec0::1, which is not allowed: site-local"),
    ("https://[feff::1]/", "leads to feff::1, which is not allowed: site-local"),
    ("https://[ff02::1]/", "leads to ff02::1, which is not allowed: multicast"),
    ("https://[ff0e::1]/", "leads to ff0e::1, which is not allowed: multicast"),
    ("https://[ffff::1]/", "leads to ffff::1, which is not allowed: multicast"),
    ("https://[1::1]/", "leads to 1::1, which is not allowed: not public"),
    ("https://[1fff::1]/", "leads to 1fff::1, which is not allowed: not public"),
    ("https://2130706433/", "has a host that is neither a name nor an address in its usual form"),
    ("https://017700000001/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0x7f000001/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0x7f.0x0.0x0.0x1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0177.0.0.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://127.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://127.0.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0127.0.0.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://00.0.0.0/", "has a host that is neither a name nor an address in its usual form"),
    ("https://127.0.0.01/", "has a host that is neither a name nor an address in its usual form"),
    ("https://010.0.0.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://169.254.43518/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0xa9fea9fe/", "has a host that is neither a name nor an address in its usual form"),
    ("https://2852039166/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0xA9.254.0251.254/", "has a host that is neither a name nor an address in its usual form"),
    ("https://1.2.3.4.5/", "has a host that is neither a name nor an address in its usual form"),
    ("https://256.0.0.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://127.0.0.1./", "has a host that is neither a name nor an address in its usual form"),
    ("https://localhost./", "has a host that is neither a name nor an address in its usual form"),
    ("https://example.com./", "has a host that is neither a name nor an address in its usual form"),
    ("https://example..com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://.example.com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://-example.com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://example-.com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://a%20b.example/", "has a host that is neither a name nor an address in its usual form"),
    ("https://%31%32%37.0.0.1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://127.0.0.1%00.example.com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[::1%25lo]/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[fe80::1%25eth0]/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[fe80::1%eth0]/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[127.0.0.1]/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[::ffff:0177.0.0.1]/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[v1.fe80::a]/", "has a host that is neither a name nor an address in its usual form"),
    ("https:///", "has a host that is neither a name nor an address in its usual form"),
    ("https://1/", "has a host that is neither a name nor an address in its usual form"),
    ("https://0/", "has a host that is neither a name nor an address in its usual form"),
    ("https://example.0x7f/", "has a host that is neither a name nor an address in its usual form"),
    ("https://example.123/", "has a host that is neither a name nor an address in its usual form"),
    ("https://exa!mple.com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://exam*ple.com/", "has a host that is neither a name nor an address in its usual form"),
    ("https://[::1]x/", "has a host that is neither a name nor an address in its usual form"),
    ("https://x[::1]/", "has a host that is neither a name nor an address in its usual form"),
    ("https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example/", "has a host that is neither a name nor an address in its usual form"),
    ("", "is not an address such as https://host/path"),
    ("example.com", "is not an address such as https://host/path"),
    ("//example.com/", "is not an address such as https://host/path"),
    ("https:/example.com", "is not an address such as https://host/path"),
    ("https:example.com/", "is not an address such as https://host/path"),
    ("https://example.com\\@127.0.0.1/", "is not an address such as https://host/path"),
    ("https:\\\\example.com/", "is not an address such as https://host/path"),
    (" https://example.com/", "is not an address such as https://host/path"),
    ("https://exa mple.com/", "is not an address such as https://host/path"),
    ("https://example.com/\t", "is not an address such as https://host/path"),
    ("https://example.com/\n", "is not an address such as https://host/path"),
    ("https://ex\u{430}mple.com/", "is not an address such as https://host/path"),
    ("https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", "is not an address such as https://host/path"),
    ("https://127\u{3002}0\u{3002}0\u{3002}1/", "is not an address such as https://host/path"),
    ("https://example.com/\u{e9}", "is not an address such as https://host/path"),
    ("https://example.com:/", "is not an address such as https://host/path"),
    ("https://example.com:x/", "is not an address such as https://host/path"),
    ("https://example.com:0443/", "is not an address such as https://host/path"),
    ("https://example.com:443:80/", "is not an address such as https://host/path"),
    ("https://example.com:65536/", "is not an address such as https://host/path"),
    ("https://example.com:-1/", "is not an address such as https://host/path"),
    ("https://example.com:+443/", "is not an address such as https://host/path"),
    ("https://[::1]:/", "is not an address such as https://host/path"),
    ("https://[::1/", "is not an address such as https://host/path"),
    ("https://::1/", "is not an address such as https://host/path"),
    ("https://user@example.com/", "must not contain a user or a password"),
    ("https://user:word@example.com/", "must not contain a user or a password"),
    ("https://example.com@127.0.0.1/", "must not contain a user or a password"),
    ("https://127.0.0.1:443@example.com/", "must not contain a user or a password"),
    ("https://@example.com/", "must not contain a user or a password"),
    ("https://example.com%40x@127.0.0.1/", "must not contain a user or a password"),
    ("http://example.com/", "must begin with https://"),
    ("HTTP://example.com/", "must begin with https://"),
    ("http://127.0.0.1/", "must begin with https://"),
    ("ftp://example.com/", "must begin with https://"),
    ("file:///a", "must begin with https://"),
    ("gopher://127.0.0.1:25/", "must begin with https://"),
    ("ws://example.com/", "must begin with https://"),
    ("wss://example.com/", "must begin with https://"),
    ("javascript://example.com/", "must begin with https://"),
    ("unix:///run/x.sock", "must begin with https://"),
    ("://example.com/", "must begin with https://"),
    ("http+unix://%2Frun%2Fx/", "must begin with https://"),
    ("httpss://example.com/", "must begin with https://"),
    ("https://example.com/#x", "must not contain a fragment"),
    ("https://example.com#@127.0.0.1/", "must not contain a fragment"),
    ("https://example.com:1/", "uses port 1, which is not allowed"),
    ("https://example.com:22/", "uses port 22, which is not allowed"),
    ("https://example.com:25/", "uses port 25, which is not allowed"),
    ("https://example.com:80/", "uses port 80, which is not allowed"),
    ("https://example.com:444/", "uses port 444, which is not allowed"),
    ("https://example.com:2375/", "uses port 2375, which is not allowed"),
    ("https://example.com:6379/", "uses port 6379, which is not allowed"),
    ("https://example.com:7450/", "uses port 7450, which is not allowed"),
    ("https://example.com:8080/", "uses port 8080, which is not allowed"),
    ("https://example.com:8443/", "uses port 8443, which is not allowed"),
    ("https://example.com:9200/", "uses port 9200, which is not allowed"),
    ("https://example.com:10250/", "uses port 10250, which is not allowed"),
    ("https://example.com:65535/", "uses port 65535, which is not allowed"),
];

/// To what a name leads, and why nothing is sent there.
const RESOLVED: &[(&[&str], &str)] = &[
    (&["127.0.0.1"], "leads to 127.0.0.1, which is not allowed: loopback"),
    (&["::1"], "leads to ::1, which is not allowed: loopback"),
    (&["93.184.216.34", "10.0.0.1"], "leads to 10.0.0.1, which is not allowed: private"),
    (&["10.0.0.1", "93.184.216.34"], "leads to 10.0.0.1, which is not allowed: private"),
    (&["2606:2800:220:1::1", "fd00:ec2::254"], "leads to fd00:ec2::254, which is not allowed: private"),
    (
        &["2606:2800:220:1::1", "93.184.216.34", "169.254.169.254"],
        "leads to 169.254.169.254, which is not allowed: link-local",
    ),
    (&["::ffff:93.184.216.34"], "leads to ::ffff:93.184.216.34, which is not allowed: IPv4 in IPv6"),
    (&[], "leads to no address"),
];

fn verdict(text: &str, reach: &Reach) -> String {
    Target::parse(text, reach).map_or_else(|error| error.to_string(), |target| format!("ok {}", target.shown()))
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn every_forbidden_target_is_refused_with_its_reason() {
    assert!(FORBIDDEN.len() >= 120, "{}", FORBIDDEN.len());
    for (text, why) in FORBIDDEN {
        assert_eq!(verdict(text, &Reach::public()), *why, "{text}");
    }
}

#[test]
fn a_name_is_refused_if_any_of_its_addresses_is_forbidden() {
    let target = Target::parse("https://receiver.example/", &Reach::public()).unwrap();
    for (found, why) in RESOLVED {
        assert_eq!(target.check(&addresses(found), &Reach::public()).unwrap_err().to_string(), *why, "{found:?}");
    }
    let public = addresses(&["93.184.216.34", "2606:2800:220:1::1"]);
    assert_eq!(target.check(&public, &Reach::public()), Ok(()));
}

#[test]
fn public_targets_by_https_pass_and_are_shown_without_their_path() {
    for (text, shown) in [
        ("https://example.com/hooks/secret?key=1", "example.com"),
        ("https://example.com", "example.com"),
        ("https://example.com?x", "example.com"),
        ("HTTPS://Example.COM:443/x", "example.com"),
        ("https://receiver/x", "receiver"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("https://1.1.1.1/x", "1.1.1.1"),
        ("https://9.255.255.255/", "9.255.255.255"),
        ("https://11.0.0.0/", "11.0.0.0"),
        ("https://100.63.255.255/", "100.63.255.255"),
        ("https://100.128.0.0/", "100.128.0.0"),
        ("https://172.15.255.255/", "172.15.255.255"),
        ("https://172.32.0.0/", "172.32.0.0"),
        ("https://198.17.255.255/", "198.17.255.255"),
        ("https://198.20.0.0/", "198.20.0.0"),
        ("https://223.255.255.255/", "223.255.255.255"),
        ("https://[2606:4700::1111]/", "[2606:4700::1111]"),
        ("https://[2001:200::1]:443/", "[2001:200::1]"),
        ("https://[2003::1]/", "[2003::1]"),
        ("https://[3ffe::1]/", "[3ffe::1]"),
    ] {
        assert_eq!(verdict(text, &Reach::public()), format!("ok {shown}"), "{text}");
    }
}

#[test]
fn what_is_opened_can_be_reached_and_nothing_else() {
    let opened: IpAddr = "10.1.2.3".parse().unwrap();
    let reach =
        Reach { allows: Box::new(move |address| address.to_canonical() == opened), ports: vec![8443], http: true };
    for (text, expected) in [
        ("https://10.1.2.3/", "ok 10.1.2.3"),
        ("https://10.1.2.3:8443/", "ok 10.1.2.3:8443"),
        ("http://10.1.2.3/", "ok 10.1.2.3:80"),
        ("http://10.1.2.3:8443/", "ok 10.1.2.3:8443"),
        ("http://10.1.2.3:8080/", "uses port 8080, which is not allowed"),
        ("https://10.1.2.3:80/", "uses port 80, which is not allowed"),
        ("https://10.1.2.4/", "leads to 10.1.2.4, which is not allowed: private"),
        ("https://10.1.2.3:8444/", "uses port 8444, which is not allowed"),
        ("http://1.1.1.1/", "leads to 1.1.1.1, which must not be reached without TLS"),
        ("https://1.1.1.1/", "ok 1.1.1.1"),
        ("https://[::ffff:10.1.2.3]/", "leads to ::ffff:10.1.2.3, which is not allowed: IPv4 in IPv6"),
        ("ftp://10.1.2.3/", "must begin with https://"),
    ] {
        assert_eq!(verdict(text, &reach), expected, "{text}");
    }
    let name = Target::parse("http://receiver.example/", &reach).unwrap();
    assert_eq!(name.check(&[opened], &reach), Ok(()));
    assert!(name.check(&addresses(&["10.1.2.3", "1.1.1.1"]), &reach).is_err(), "no plain text to a public address");
}

#[test]
fn no_reason_shows_the_path() {
    for (text, _) in FORBIDDEN.iter().filter(|(text, _)| text.ends_with('/')) {
        let said = verdict(&format!("{text}hidden?also-hidden"), &Reach::public());
        assert!(!said.contains("hidden"), "{said}");
    }
}

#[test]
fn what_is_forbidden_agrees_with_the_standard_library_where_it_says_something() {
    for number in 0..=u16::MAX {
        let [a, b] = number.to_be_bytes();
        let address = std::net::Ipv4Addr::new(a, b, 77, 1);
        let is_special = address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_unspecified();
        assert!(!is_special || why_forbidden(address.into()).is_some(), "{address}");
    }
}
