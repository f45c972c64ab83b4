//! Which rows are wanted: `program=fft`.

use std::str::FromStr;

/// A column and a value that it must have.
///
/// Conditions of one column are alternatives (`program=fft`, `program=radix`: either); those of different columns must
/// all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column's name, as the header has it.
    pub column: String,
    /// The value, as the rows have it.
    pub value: String,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.trim().is_empty() => {
                Ok(Condition { column: column.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("{text:?} is not a condition: write COLUMN=VALUE, as in heuristic=minpc")),
        }
    }
}

/// Whether a record meets the conditions, each given with its column's value in the record.
pub(crate) fn met<'a>(conditions: &'a [Condition], value_of: impl Fn(&'a str) -> &'a str) -> bool {
    conditions.iter().all(|one| conditions.iter().any(|c| c.column == one.column && c.value == value_of(&one.column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(conditions: &[&str]) -> bool {
        let conditions: Vec<Condition> = conditions.iter().map(|c| c.parse().unwrap()).collect();
        met(&conditions, |column| match column {
            "program" => "fft",
            "repeat" => "2",
            _ => "",
        })
    }

    #[test]
    fn one_column_may_have_any_of_its_values_and_all_columns_must_hold() {
        assert!(holds(&[]));
        assert!(holds(&["program=radix", "program=fft", "repeat=2"]));
        assert!(!holds(&["program=fft", "repeat=1"]));
        assert!(!holds(&["program=radix"]));
    }

    #[test]
    fn a_condition_without_a_column_is_refused() {
        assert!("fft".parse::<Condition>().unwrap_err().contains("COLUMN=VALUE"));
        assert!("=fft".parse::<Condition>().is_err());
        assert!("input=".parse::<Condition>().is_ok());
    }
}
