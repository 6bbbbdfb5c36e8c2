"""The small formats everything else is made of: strict and canonical JSON, times, numbers, digests."""

import base64
import binascii
import hashlib
import json
import re
from decimal import Decimal

SECOND = 1_000_000
# What Unicode calls White_Space. Python's own strip() also takes four control characters.
WHITE_SPACE = ("\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
               "\u202f\u205f\u3000")
ROLES = ("initiator", "approver", "security_admin", "executor", "auditor")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
DIGEST = "sha256:[0-9a-f]{64}"
ACTOR = "[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,127}"


def strict_json(data):
    """Reads JSON of which there is only one reading: no repeated members, no half characters, no numbers that a double
    cannot hold. Raises ValueError."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unrepeated, parse_int=parse_integer,
                           parse_float=parse_double, parse_constant=parse_double)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if depth(value) > 127:
        raise ValueError("it is nested too deep")
    return value


def unrepeated(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is given more than once")
    return members


def parse_integer(text):
    """Integers of 64 bits are exact; longer ones, and -0, are doubles."""
    number = int(text)
    return parse_double(text) if text == "-0" or not -(2**63) <= number < 2**64 else number


def parse_double(text):
    number = float(text)
    if number in (float("inf"), float("-inf")) or number != number:
        raise ValueError("a number is out of range")
    return number


def depth(value):
    """How deep arrays and objects are nested."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def canonical(value):
    """The text of a value by RFC 8785: members sorted by their UTF-16 code units, numbers as ECMAScript writes them."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return canonical_number(float(value))


def canonical_number(number):
    """The shortest digits that give this double again, with an exponent only below 1e-6 and from 1e21 on."""
    if number == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    point = len(digits) + exponent
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{point - 1:+d}"
    return "-" * sign + text


def same(one, other):
    """Whether two JSON values are equal. 1 and 1.0 are; 1 and true are not."""
    return canonical(one) == canonical(other)


def sha256(data):
    return hashlib.sha256(data).digest()


def parse_number(text):
    """A whole number of 64 bits without sign or leading zeros, or None."""
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,19}", text) and int(text) < 2**64 else None


def is_number(value, bits=64):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**bits


def decode_base64(text):
    """Standard base64 in its only spelling: another spelling could carry bytes that nobody signed."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        return None
    return data if base64.b64encode(data).decode() == text else None


def parse_hash(line):
    data = decode_base64(line)
    return data if data is not None and len(data) == 32 else None


TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,9}))?"
                  r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))")
TIME_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]\.[0-9]{6}Z")
TIME_LATEST = 253_402_207_200 * SECOND - 1


def parse_time(text):
    """RFC 3339, in microseconds since 1970; None if it is not that. Digits beyond the sixth decimal are cut off."""
    found = TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    days_of_month = (31, 28 + (year % 4 == 0 and year % 100 != 0 or year % 400 == 0), 31, 30, 31, 30, 31, 31, 30, 31,
                     30, 31)
    if not (1 <= month <= 12 and 1 <= day <= days_of_month[month - 1] and hour <= 23 and minute <= 59 and second <= 60):
        return None
    years = year - 1
    days = 365 * year + years // 4 - years // 100 + years // 400 + sum(days_of_month[: month - 1]) + day - 719_528
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + min(second, 59)
    fraction, sign, hours, minutes = found.groups()[6:]
    if sign:
        if int(hours) > 25 or int(minutes) > 59:
            return None
        offset = int(hours) * 3_600 + int(minutes) * 60
        seconds += offset if sign == "-" else -offset
    micros = seconds * SECOND + int(((fraction or "") + "000000")[:6])
    return micros if micros <= TIME_LATEST else None


def parse_span(text):
    """A length of time such as 72h."""
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[text[-1]] * SECOND


def later(time, span):
    """Times end with the year 9999, and so do sums."""
    return min(time + parse_span(span), TIME_LATEST)


def written_time(text):
    """A time as Pilot writes it, with six decimals; None for every other spelling."""
    return parse_time(text) if isinstance(text, str) and TIME_WRITTEN.fullmatch(text) else None


def matches(pattern):
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def is_text(value):
    return isinstance(value, str)


def is_list(of):
    return lambda value: isinstance(value, list) and all(of(one) for one in value)


def is_table(required, optional):
    """An object with these members. Optional ones are never written with the value they have when they are absent."""

    def fits(value):
        return (isinstance(value, dict) and set(required) <= set(value) <= set(required) | set(optional)
                and all((required | optional)[name](member) for name, member in value.items())
                and not any(value[name] in ("", []) for name in optional if name in value))

    return fits
