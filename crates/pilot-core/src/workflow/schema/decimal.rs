//! Numbers as they are written, so that 0.3 is a multiple of 0.1 and 1.0 is the same as 1.

use std::cmp::Ordering;

use serde_json::Number;

use crate::certain::Certain as _;

const WRITTEN: &str = "a number of JSON is written in digits";

/// `digits` times ten to the `exponent`, without zeros at the end of the digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    pub(super) fn of(number: &Number) -> Decimal {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        whole.map_or_else(|| Decimal::read(&number.to_string()), |whole| Decimal::without_zeros(whole, 0))
    }

    fn read(text: &str) -> Decimal {
        let (written, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
        let digits = format!("{whole}{fraction}").parse().certain(WRITTEN);
        let power: i32 = power.parse().certain(WRITTEN);
        Decimal::without_zeros(digits, power - i32::try_from(fraction.len()).certain(WRITTEN))
    }

    fn without_zeros(mut digits: i128, mut exponent: i32) -> Decimal {
        if digits == 0 {
            exponent = 0;
        }
        while digits != 0 && digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        Decimal { digits, exponent }
    }

    pub(super) fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    /// For a whole number that is not negative. What fits nowhere is more than there is of anything.
    pub(super) fn as_count(self) -> Option<u64> {
        let zeros = u32::try_from(self.exponent).ok()?;
        let digits = u128::try_from(self.digits).ok()?;
        let whole = 10_u128.checked_pow(zeros).and_then(|power| power.checked_mul(digits));
        Some(whole.and_then(|whole| u64::try_from(whole).ok()).unwrap_or(u64::MAX))
    }

    pub(super) fn is_positive(self) -> bool {
        self.digits > 0
    }

    /// Whether this is a whole number of times `step`, which is positive.
    pub(super) fn is_multiple_of(self, step: Decimal) -> bool {
        let (digits, step_digits) = (self.digits.unsigned_abs(), step.digits.unsigned_abs());
        let zeros = self.exponent - step.exponent;
        match u32::try_from(-zeros).ok().filter(|_| zeros < 0) {
            // What is left over of 10 to the power of 600, which fits nowhere. Factors are below 2^64, so a product fits.
            None => (digits % step_digits * power_of_ten(zeros, step_digits)).is_multiple_of(step_digits),
            // A step that fits nowhere is larger than the number.
            Some(zeros) => {
                let step = 10_u128.checked_pow(zeros).and_then(|power| power.checked_mul(step_digits));
                digits == 0 || step.is_some_and(|step| digits.is_multiple_of(step))
            }
        }
    }

    /// How many digits there are before the point; less than 1 for small fractions.
    fn places(self) -> i64 {
        i64::from(self.digits.unsigned_abs().checked_ilog10().unwrap_or(0)) + i64::from(self.exponent)
    }

    /// The digits, with as many zeros as bring the exponent down to `exponent`.
    fn with_zeros(self, exponent: i32) -> i128 {
        self.digits * 10_i128.pow(u32::try_from(self.exponent - exponent).unwrap_or(0))
    }
}

/// What is left over when ten to the power of `zeros` is divided.
fn power_of_ten(zeros: i32, divisor: u128) -> u128 {
    let half = if zeros > 1 { power_of_ten(zeros / 2, divisor) } else { 1 };
    half * half % divisor * if zeros % 2 == 1 { 10 } else { 1 } % divisor
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let by_sign = self.digits.signum().cmp(&other.digits.signum());
        let by_places = self.places().cmp(&other.places());
        let by_places = if self.digits < 0 { by_places.reverse() } else { by_places };
        // With equally many places the zeros are fewer than the digits of the other number.
        by_sign.then(by_places).then_with(|| self.with_zeros(other.exponent).cmp(&other.with_zeros(self.exponent)))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal {
        Decimal::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn numbers_are_ordered_by_value_however_they_are_written() {
        let ascending = [
            "-1.7976931348623157e308",
            "-9007199254740991",
            "-100",
            "-99.5",
            "-0.02",
            "-1e-7",
            "-5e-324",
            "0",
            "5e-324",
            "1e-7",
            "0.1",
            "0.25",
            "1",
            "1.5",
            "9",
            "10",
            "10.000000000000002",
            "123456789.5",
            "9007199254740991",
            "18446744073709551615",
            "1e300",
        ];
        for (index, one) in ascending.iter().enumerate() {
            for (other_index, other) in ascending.iter().enumerate() {
                assert_eq!(read(one).cmp(&read(other)), index.cmp(&other_index), "{one} and {other}");
            }
        }
        for (one, other) in [("1.0", "1"), ("-0.0", "0"), ("1e2", "100"), ("0.10", "0.1"), ("2.50e1", "25")] {
            assert_eq!(read(one), read(other));
        }
    }

    #[test]
    fn a_multiple_is_exact_for_numbers_with_a_point_and_of_any_size() {
        for (number, step, is_multiple) in [
            ("0.3", "0.1", true),
            ("0.35", "0.1", false),
            ("19.99", "0.01", true),
            ("1070468.14", "0.01", true),
            ("0", "0.01", true),
            ("-4.5", "1.5", true),
            ("7", "2", false),
            ("1e300", "7", false),
            ("1e300", "1e-300", true),
            ("1e-300", "1e300", false),
            ("3", "1e300", false),
            ("9007199254740991", "0.5", true),
            ("4.5", "3", false),
        ] {
            assert_eq!(read(number).is_multiple_of(read(step)), is_multiple, "{number} of {step}");
        }
    }
}
