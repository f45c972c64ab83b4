//! The value of a column: a number, a text, or several of them.

use std::fmt;

/// A column's value.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// There is none: after a deadlock, or where it was not asked for.
    #[default]
    None,
    /// A count.
    Count(u64),
    /// A quotient; finite.
    Quotient(f64),
    /// A text.
    Text(String),
    /// Counts in order.
    Counts(Vec<u64>),
    /// Counts by name, in the order of names.
    Named(Vec<(String, u64)>),
}

/// What the values of a column are, where there are some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counts.
    Count,
    /// Quotients.
    Quotient,
    /// Texts.
    Text,
    /// Several counts in order.
    Counts,
    /// Several counts by name.
    Named,
}

impl Kind {
    /// Whether a value is of this kind, or there is none.
    #[must_use]
    pub fn has(self, value: &Value) -> bool {
        match value {
            Value::None => true,
            Value::Count(_) => self == Kind::Count,
            Value::Quotient(_) => self == Kind::Quotient,
            Value::Text(_) => self == Kind::Text,
            Value::Counts(_) => self == Kind::Counts,
            Value::Named(_) => self == Kind::Named,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Value {
        Value::Count(count as u64)
    }
}

impl From<f64> for Value {
    fn from(quotient: f64) -> Value {
        if quotient.is_finite() { Value::Quotient(quotient) } else { Value::None }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<&[u64]> for Value {
    fn from(counts: &[u64]) -> Value {
        Value::Counts(counts.to_vec())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::None, Into::into)
    }
}

impl fmt::Display for Value {
    /// As CSV has it: nothing for none, spaces between several, `name:count` for named counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn spaced<T>(f: &mut fmt::Formatter<'_>, all: &[T], show: impl Fn(&T) -> String) -> fmt::Result {
            f.write_str(&all.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        match self {
            Value::None => Ok(()),
            Value::Count(count) => write!(f, "{count}"),
            // As JSON has it: a quotient keeps its point, and can be read back to the last bit.
            Value::Quotient(quotient) => write!(f, "{quotient:?}"),
            Value::Text(text) => f.write_str(text),
            Value::Counts(counts) => spaced(f, counts, u64::to_string),
            Value::Named(counts) => spaced(f, counts, |(name, count)| format!("{name}:{count}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_csv_has_them() {
        let written = |value: Value| value.to_string();
        assert_eq!([written(1.0.into()), written(0.1.into()), written(f64::NAN.into())], ["1.0", "0.1", ""]);
        assert_eq!(written(Value::from([1, 0, 2].as_slice())), "1 0 2");
        assert_eq!(written(Value::Named(vec![("8".to_owned(), 3), ("others".to_owned(), 1)])), "8:3 others:1");
        assert_eq!(written(Option::<u64>::None.into()), "");
    }
}
