//! The options that ask a replay for measures, made from the registry of measures.

use std::ops::Range;

use attribution::Source;
use clap::builder::{RangedU64ValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use replay::metrics::Measure;
use replay::registry::{Entry, Switch, measures};

/// The measures that were asked for by their own options.
#[derive(Clone, Default)]
pub(crate) struct Measures {
    asked: Vec<(&'static Entry, u32)>,
}

impl Measures {
    /// Whether an option of this name was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.asked.iter().any(|(entry, _)| entry.switch.is_some_and(|s| s.name == name))
    }

    /// Asks for those of this option, which another implies.
    pub(crate) fn imply(&mut self, name: &str) {
        if !self.has(name) {
            self.asked.extend(of_switch(name).map(|entry| (entry, 0)));
        }
    }

    /// Takes back those of this option: something else asks for the measure.
    pub(crate) fn take_back(&mut self, name: &str) {
        self.asked.retain(|(entry, _)| entry.switch.is_none_or(|s| s.name != name));
    }

    /// Whether one of them needs a trace with memory addresses.
    pub(crate) fn need_addresses(&self) -> bool {
        self.asked.iter().any(|(entry, _)| entry.needs_addresses)
    }

    /// What the replay is asked for.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        self.asked.iter().filter_map(|(entry, number)| Some(entry.measure?(*number))).collect()
    }
}

/// The measures that share this option.
fn of_switch(name: &str) -> impl Iterator<Item = &'static Entry> {
    measures().filter(move |entry| entry.switch.is_some_and(|s| s.name == name))
}

/// Each option once, in order.
fn switches() -> Vec<&'static Switch> {
    let mut switches: Vec<&'static Switch> = Vec::new();
    for switch in measures().filter_map(|entry| entry.switch) {
        if !switches.contains(&switch) {
            switches.push(switch);
        }
    }
    switches
}

impl clap::Args for Measures {
    fn augment_args(command: Command) -> Command {
        let argument = |switch: &Switch| {
            let argument = Arg::new(switch.name).long(switch.name).help(switch.help);
            match switch.number {
                None => argument.action(ArgAction::SetTrue),
                Some((least, most)) => {
                    let number = RangedU64ValueParser::<u32>::new().range(u64::from(least)..=u64::from(most));
                    argument.value_name("N").value_parser(ValueParser::from(number))
                }
            }
        };
        command.args(switches().into_iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Measures::augment_args(command)
    }
}

impl FromArgMatches for Measures {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Measures, Error> {
        let mut asked = Vec::new();
        for entry in measures() {
            let number = match entry.switch {
                None => None,
                Some(Switch { name, number: None, .. }) => matches.get_flag(name).then_some(0),
                Some(Switch { name, .. }) => matches.get_one::<u32>(name).copied(),
            };
            asked.extend(number.map(|number| (entry, number)));
        }
        Ok(Measures { asked })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Measures::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Where the variables of these names lie.
///
/// # Errors
/// When no binary of the trace has one of such a name.
pub(crate) fn buffers(names: &[String], source: &Source) -> replay::Result<Vec<Range<u64>>> {
    let mut all = Vec::new();
    for name in names {
        let found = source.variables(name);
        if found.is_empty() {
            let text = format!(
                "--buffer {name}: no binary of the trace has a symbol for a variable of this name with a size; name \
                 another, or build without stripping symbols"
            );
            return Err(replay::Error::Request(text));
        }
        all.extend(found);
    }
    Ok(all)
}
