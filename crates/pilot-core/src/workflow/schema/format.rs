//! The formats that are checked. A format that is not here is refused in a definition: it would let everything pass.

mod ecma;
mod uri;

use core::net::{Ipv4Addr, Ipv6Addr};

pub(super) type Check = fn(&str) -> bool;

const FORMATS: [(&str, Check); 14] = [
    ("date", is_date),
    ("date-time", is_date_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hostname", is_hostname),
    ("ipv4", is_ipv4),
    ("ipv6", is_ipv6),
    ("json-pointer", is_json_pointer),
    ("regex", ecma::is_regex),
    ("relative-json-pointer", is_relative_json_pointer),
    ("time", is_time),
    ("uri", uri::is_uri),
    ("uri-reference", uri::is_uri_reference),
    ("uuid", is_uuid),
];

pub(super) fn find(name: &str) -> Option<Check> {
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

pub(super) fn names() -> String {
    FORMATS.map(|(name, _)| name).join(", ")
}

/// The number that so many digits make.
fn digits(text: Option<&str>, length: usize) -> Option<i32> {
    text.filter(|text| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// Three numbers with a sign between them.
fn three(text: &str, between: char, lengths: [usize; 3]) -> Option<[i32; 3]> {
    let mut parts = text.split(between);
    let [first, second, third] = lengths.map(|length| digits(parts.next(), length));
    if parts.next().is_none() { Some([first?, second?, third?]) } else { None }
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = three(text, '-', [4, 2, 2]) else { return false };
    let is_leap_year = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let days = match month {
        2 if is_leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let Some([hour, minute, second]) = three(clock, ':', [2, 2, 2]) else { return false };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|sign: char| sign.is_ascii_digit());
            if rest.len() == fraction.len() {
                return false;
            }
            rest
        }
        None => rest,
    };
    let Some(offset) = offset_minutes(rest) else { return false };
    // A leap second is the last one of a day in UTC.
    let is_last_minute = (hour * 60 + minute - offset).rem_euclid(24 * 60) == 24 * 60 - 1;
    hour <= 23 && minute <= 59 && (second <= 59 || second == 60 && is_last_minute)
}

fn offset_minutes(text: &str) -> Option<i32> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, clock) = text.split_at_checked(1)?;
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes) = (digits(Some(hours), 2)?, digits(Some(minutes), 2)?);
    let offset = if hours <= 23 && minutes <= 59 { hours * 60 + minutes } else { return None };
    match sign {
        "+" => Some(offset),
        "-" => Some(-offset),
        _ => None,
    }
}

fn is_date_time(text: &str) -> bool {
    text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// RFC 3339, appendix A: weeks stand alone, and between two units none may be missing.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    match rest.split_once('T') {
        Some((date, time)) => (date.is_empty() || are_units(date, "YMD")) && are_units(time, "HMS"),
        None => are_units(rest, "YMD") || are_units(rest, "W"),
    }
}

/// One or more numbers, each with its unit; the units follow each other as they do in `order`.
fn are_units(text: &str, order: &str) -> bool {
    let (mut rest, mut order) = (text, order);
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let mut after = unit.chars();
        let Some(at) = after.next().filter(|_| unit.len() < rest.len()).and_then(|unit| order.find(unit)) else {
            return false;
        };
        // Only the first may leave out those before it.
        if at > 0 && rest.len() < text.len() {
            return false;
        }
        order = order.get(at + 1..).unwrap_or_default();
        rest = after.as_str();
    }
    !text.is_empty()
}

/// RFC 5321, and a name before the address in angle brackets.
fn is_email(text: &str) -> bool {
    let address = match text.rsplit_once(" <") {
        Some((_, address)) => address.trim().strip_suffix('>'),
        None => Some(text),
    };
    let Some((local, domain)) = address.and_then(|address| address.rsplit_once('@')) else { return false };
    is_local_part(local) && is_mail_domain(domain)
}

fn is_local_part(local: &str) -> bool {
    const SIGNS: &str = "!#$%&'*+-/=?^_`{|}~";
    let is_atom =
        |atom: &str| !atom.is_empty() && atom.chars().all(|sign| sign.is_ascii_alphanumeric() || SIGNS.contains(sign));
    let quoted = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    local.len() <= 64 && quoted.map_or_else(|| local.split('.').all(is_atom), is_quoted_content)
}

fn is_quoted_content(text: &str) -> bool {
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        let is_allowed = match sign {
            '\\' => signs.next().is_some_and(|sign| sign.is_ascii_graphic()),
            '"' => false,
            sign => sign == ' ' || sign == '\t' || sign.is_ascii_graphic(),
        };
        if !is_allowed {
            return false;
        }
    }
    true
}

fn is_mail_domain(domain: &str) -> bool {
    let Some(literal) = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return is_hostname(domain);
    };
    match literal.split_at_checked(5) {
        Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => is_ipv6(address),
        _ => is_ipv4(literal),
    }
}

/// RFC 1123. What a label in Punycode decodes to is not looked at: that would need the tables of IDNA.
fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        let has_signs = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_reserved = label.get(2..4) == Some("--") && !label.starts_with("xn");
        let is_whole = !label.starts_with('-') && !label.ends_with('-');
        (1..=63).contains(&label.len()) && has_signs && is_whole && !is_reserved
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_json_pointer(text: &str) -> bool {
    let is_escaped = |rest: &str| rest.starts_with(['0', '1']);
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(is_escaped)
}

fn is_relative_json_pointer(text: &str) -> bool {
    let rest = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let levels = text.len() - rest.len();
    let is_number = levels == 1 || levels > 1 && !text.starts_with('0');
    is_number && (rest == "#" || is_json_pointer(rest))
}

fn is_uuid(text: &str) -> bool {
    let is_part = |(part, length): (&str, usize)| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split('-').count() == 5 && text.split('-').zip([8, 4, 4, 4, 12]).all(is_part)
}
