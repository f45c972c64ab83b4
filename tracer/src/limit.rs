//! How much is recorded at most.

use std::fmt;
use std::str::FromStr;

/// Where a recording ends; the program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After this many instructions, over all threads.
    Instructions(u64),
    /// When the trace has about this many bytes: what waits to be compressed is counted as if it shrank like what was
    /// written before.
    Bytes(u64),
}

/// A number with one of these behind it is a number of bytes.
const BYTE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];
/// With one of these, or none, it is a number of instructions.
const COUNT_UNITS: [(&str, u64); 5] =
    [("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("K", 1000), ("", 1)];

impl FromStr for Limit {
    type Err = String;

    /// `5000` and `100M` are instructions, `1GiB` and `500MB` bytes: a `B` at the end tells. Case does not matter.
    fn from_str(text: &str) -> Result<Limit, String> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let of = |units: &[(&str, u64)]| units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|u| u.1);
        let make: fn(u64) -> Limit = if of(&BYTE_UNITS).is_some() { Limit::Bytes } else { Limit::Instructions };
        let scale = of(&BYTE_UNITS).or_else(|| of(&COUNT_UNITS)).ok_or_else(|| {
            format!(
                "{text:?} is not a limit: write a number of instructions (5000, 100M, 2G) or of bytes (500MB, \
                 1GiB)"
            )
        })?;
        let number: u64 = number.parse().map_err(|_| format!("{text:?} does not start with a number below 2^64"))?;
        match number.checked_mul(scale) {
            Some(0) => Err("a limit of 0 would record nothing".to_owned()),
            Some(number) => Ok(make(number)),
            None => Err(format!("{text:?} is too large to count")),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Instructions(number) => write!(f, "the limit of {number} instructions"),
            Limit::Bytes(number) => write!(f, "the limit of {number} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_b_at_the_end_means_bytes() {
        for (text, limit) in [
            ("5000", Limit::Instructions(5000)),
            ("100M", Limit::Instructions(100_000_000)),
            ("2g", Limit::Instructions(2_000_000_000)),
            ("17B", Limit::Bytes(17)),
            ("500MB", Limit::Bytes(500_000_000)),
            ("1GiB", Limit::Bytes(1 << 30)),
            ("3kib", Limit::Bytes(3072)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
        }
    }

    #[test]
    fn what_is_no_limit_is_told_with_examples() {
        assert!("ten".parse::<Limit>().unwrap_err().contains("1GiB"));
        assert!("5X".parse::<Limit>().unwrap_err().contains("100M"));
        assert!("GiB".parse::<Limit>().unwrap_err().contains("does not start with a number"));
        assert!("0".parse::<Limit>().unwrap_err().contains("nothing"));
        assert!("99999999T".parse::<Limit>().unwrap_err().contains("too large to count"));
    }
}
