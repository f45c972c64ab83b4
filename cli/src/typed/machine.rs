//! `--machine`: a machine's name, as it was typed.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use verdict::Machine;

/// Reads the name of a machine.
pub(crate) fn parser() -> impl TypedValueParser<Value = Machine> {
    let of_name = |name: String| Machine::named(&name).expect("only names of machines are possible");
    PossibleValuesParser::new(Machine::ALL.map(Machine::name)).map(of_name)
}
