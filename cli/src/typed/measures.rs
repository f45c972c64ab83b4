//! The options that ask a replay for measures, made from the registry of measures.

use std::ops::Range;

use attribution::Source;
use clap::builder::{RangedU64ValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use replay::metrics::Measure;
use replay::registry::{Entry, MEMORY, PARAMETERS, Parameter, Switch, measures};

/// What the options are for.
const HEADING: &str = "What is measured";

/// The measures that were asked for by their own options.
#[derive(Clone, Default)]
pub(crate) struct Measures {
    asked: Vec<(&'static Entry, u32)>,
    /// Options that name variables, with the names.
    named: Vec<(&'static Parameter, Vec<String>)>,
}

impl Measures {
    /// Asks for those of this option, which another implies.
    pub(crate) fn imply(&mut self, switch: &Switch) {
        let of_switch = measures().filter(|entry| entry.switch == Some(switch));
        let missing: Vec<&Entry> = of_switch.filter(|entry| !self.has(entry)).collect();
        self.asked.extend(missing.into_iter().map(|entry| (entry, 0)));
    }

    fn has(&self, entry: &Entry) -> bool {
        self.asked.iter().any(|(asked, _)| asked.name == entry.name)
    }

    /// Whether one of them needs a trace with memory addresses.
    pub(crate) fn need_addresses(&self) -> bool {
        let named = self.named.iter().map(|(parameter, _)| parameter.of);
        self.asked.iter().map(|(entry, _)| *entry).chain(named).any(|entry| entry.needs_addresses)
    }

    /// What the replay is asked for.
    ///
    /// # Errors
    /// When no binary of the trace has a variable that was named.
    pub(crate) fn measures(&self, source: &Source) -> replay::Result<Vec<Measure>> {
        let is_named = |entry: &Entry| self.named.iter().any(|(parameter, _)| parameter.of.name == entry.name);
        let plain = self.asked.iter().filter(|(entry, _)| !is_named(entry));
        let mut all: Vec<Measure> = plain.filter_map(|(entry, number)| Some(entry.measure?(*number))).collect();
        for (parameter, names) in &self.named {
            all.push((parameter.measure)(variables(parameter.name, names, source)?));
        }
        Ok(all)
    }
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
            let argument = Arg::new(switch.name)
                .long(switch.name)
                .help(switch.help)
                .help_heading(HEADING)
                .hide_short_help(switch.name != MEMORY.name);
            match switch.number {
                None => argument.action(ArgAction::SetTrue),
                Some((least, most)) => {
                    let number = RangedU64ValueParser::<u32>::new().range(u64::from(least)..=u64::from(most));
                    argument.value_name("N").value_parser(ValueParser::from(number))
                }
            }
        };
        let named = |parameter: &&Parameter| {
            Arg::new(parameter.name)
                .long(parameter.name)
                .help(parameter.help)
                .help_heading(HEADING)
                .hide_short_help(true)
                .value_name("NAME")
                .action(ArgAction::Append)
        };
        command.args(switches().into_iter().map(argument)).args(PARAMETERS.iter().map(named))
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
        let names = |parameter: &&'static Parameter| {
            let names = matches.get_many::<String>(parameter.name)?;
            Some((*parameter, names.cloned().collect()))
        };
        Ok(Measures { asked, named: PARAMETERS.iter().filter_map(names).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Measures::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Where the variables of these names lie, which this option named.
fn variables(option: &str, names: &[String], source: &Source) -> replay::Result<Vec<Range<u64>>> {
    let mut all = Vec::new();
    for name in names {
        let found = source.variables(name);
        if found.is_empty() {
            let text = format!(
                "--{option} {name}: no binary of the trace has a symbol for a variable of this name with a size; name \
                 another, or build without stripping symbols"
            );
            return Err(replay::Error::Request(text));
        }
        all.extend(found);
    }
    Ok(all)
}
