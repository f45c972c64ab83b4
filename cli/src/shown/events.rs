//! The events of a trace, one a line, as text or as JSON.

use std::io::Write;

use serde_json::{Map, Value};
use trace_format::{Block, Event, Item, Pc, Seq, SyncFunction, ThreadExit, ThreadId, Trace, names};

/// Which events are wanted: those of these names, or of functions of these names; all where there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    /// What was typed.
    ///
    /// # Errors
    /// When an event or function is not known.
    pub(crate) fn new(names: &[String]) -> Result<Wanted, String> {
        let functions = SyncFunction::ALL.map(|function| format!("{function:?}"));
        let events = trace_format::EVENT_CODES.map(|(name, ..)| name);
        let is_known = |name: &String| events.contains(&name.as_str()) || functions.contains(name);
        match names.iter().find(|name| !is_known(name)) {
            Some(unknown) => Err(format!(
                "there is no event and no function `{unknown}`: name some of {}, or a function from \
                 docs/trace-format.md, such as MutexLock",
                events.join(", ")
            )),
            None => Ok(Wanted(names.to_vec())),
        }
    }

    fn has(&self, told: &Told) -> bool {
        let function = told.values.iter().find(|(name, _)| *name == "function");
        let is_function = |name: &String| function.is_some_and(|(_, value)| value == name);
        self.0.is_empty() || self.0.iter().any(|name| name == told.name || is_function(name))
    }
}

/// An event, as its name and its fields.
struct Told {
    name: &'static str,
    values: Vec<(&'static str, Value)>,
}

/// Writes the events of all threads, thread by thread, in their order.
///
/// # Errors
/// When the trace cannot be read, or `out` written.
pub(crate) fn write(trace: &Trace, wanted: &Wanted, as_json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    for thread in trace.threads() {
        let (mut stream, mut before) = (trace.stream(thread.id), 0u64);
        while let Some(item) = stream.next()? {
            let told = match item {
                Item::Block { block, .. } => {
                    before += length(&trace.blocks()[block]);
                    continue;
                }
                Item::Partial { block, executed, .. } => told(Event::Partial { block, executed }),
                Item::Event(event) => told(event),
            };
            if wanted.has(&told) {
                line(trace, thread.id, before, &told, as_json, out)?;
            }
            if let Item::Partial { executed, .. } = item {
                before += u64::from(executed);
            }
        }
    }
    Ok(())
}

fn length(block: &Block) -> u64 {
    block.instructions.len() as u64
}

/// An event of a thread that has run so many instructions before it.
fn line(
    trace: &Trace,
    thread: ThreadId,
    before: u64,
    told: &Told,
    as_json: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let symbol = symbol(trace, told);
    if as_json {
        let mut object = Map::new();
        object.insert("thread".into(), thread.0.into());
        object.insert("instructions".into(), before.into());
        object.insert("event".into(), told.name.into());
        object.extend(told.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        object.extend(symbol.map(|name| ("symbol".to_owned(), name.into())));
        serde_json::to_writer(&mut *out, &object)?;
        return writeln!(out);
    }
    write!(out, "{:>3} {before:>12} {}", thread.0, told.name)?;
    for (name, value) in &told.values {
        match value {
            Value::String(text) => write!(out, " {name}={text}")?,
            Value::Null => write!(out, " {name}=none")?,
            other => write!(out, " {name}={other}")?,
        }
    }
    match symbol {
        Some(name) => writeln!(out, " ({name})"),
        None => writeln!(out),
    }
}

/// The function at the code that an event names, if it names some.
fn symbol(trace: &Trace, told: &Told) -> Option<String> {
    let of_code = told.values.iter().find(|(name, _)| matches!(*name, "object" | "site" | "handler"))?;
    let address = of_code.1.as_str()?.strip_prefix("0x")?;
    let pc = Pc(u64::from_str_radix(address, 16).ok()?);
    let symbol = trace.symbol_of(pc)?;
    Some(names::demangled(&symbol.name).into_owned())
}

fn address(value: u64) -> Value {
    format!("{value:#x}").into()
}

fn seq(seq: Seq) -> (&'static str, Value) {
    ("seq", seq.0.into())
}

fn thread(thread: Option<ThreadId>) -> Value {
    thread.map_or(Value::Null, |thread| thread.0.into())
}

fn function(function: SyncFunction) -> (&'static str, Value) {
    ("function", format!("{function:?}").into())
}

fn told(event: Event) -> Told {
    let (name, values) = match event {
        Event::ThreadStart { parent, os_tid, sp, seq: at } => {
            ("ThreadStart", vec![("parent", thread(parent)), ("os_tid", os_tid.into()), ("sp", address(sp)), seq(at)])
        }
        Event::ThreadEnd { exit, seq: at } => {
            let (how, number) = match exit {
                ThreadExit::Exited(status) => ("Exited", Some(("status", status.into()))),
                ThreadExit::Killed(signal) => ("Killed", Some(("signal", signal.into()))),
                ThreadExit::Replaced => ("Replaced", None),
                ThreadExit::StillRunning => ("StillRunning", None),
            };
            ("ThreadEnd", [("exit", how.into())].into_iter().chain(number).chain([seq(at)]).collect())
        }
        Event::SetSp(sp) => ("SetSp", vec![("sp", address(sp))]),
        Event::Partial { block, executed } => {
            ("Partial", vec![("block", block.0.into()), ("executed", executed.into())])
        }
        Event::Enter { function: which, object, argument, seq: at } => {
            let values = vec![function(which), ("object", address(object)), ("argument", address(argument)), seq(at)];
            ("Enter", values)
        }
        Event::Leave { function: which, result, seq: at } => {
            ("Leave", vec![function(which), ("result", address(result)), seq(at)])
        }
        Event::WarpBarrier => ("WarpBarrier", vec![]),
        Event::FutexWait { address: at, seq: when } => ("FutexWait", vec![("address", address(at)), seq(when)]),
        Event::Signal { number, handler } => {
            ("Signal", vec![("number", number.into()), ("handler", address(handler.0))])
        }
        Event::SignalReturn => ("SignalReturn", vec![]),
        Event::ModuleLoaded(module) => ("ModuleLoaded", vec![("module", module.0.into())]),
        Event::ModuleUnloaded(module) => ("ModuleUnloaded", vec![("module", module.0.into())]),
        Event::Fork { child, thread: made } => ("Fork", vec![("child", child.into()), ("thread_made", thread(made))]),
        Event::Exec => ("Exec", vec![]),
        Event::Gap => ("Gap", vec![]),
        Event::Chunk(chunk) => {
            let site = ("site", address(chunk.site.0));
            let numbers =
                [("lower", chunk.lower), ("upper", chunk.upper), ("step", chunk.step), ("stride", chunk.stride)];
            ("Chunk", [site].into_iter().chain(numbers.map(|(name, number)| (name, number.into()))).collect())
        }
    };
    Told { name, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_known_by_event_or_function() {
        let names = |names: &[&str]| Wanted::new(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert!(names(&["Enters"]).unwrap_err().contains("ThreadStart"));
        let enter = |which| told(Event::Enter { function: which, object: 1, argument: 0, seq: Seq(3) });
        let [task, lock] = [SyncFunction::TaskBody, SyncFunction::MutexLock].map(enter);
        let of = |wanted: &[&str]| [&task, &lock].map(|told| names(wanted).unwrap().has(told));
        assert_eq!(of(&[]), [true, true]);
        assert_eq!(of(&["TaskBody", "Chunk"]), [true, false]);
        assert_eq!(of(&["Enter"]), [true, true]);
        assert_eq!(of(&["Leave"]), [false, false]);
    }

    #[test]
    fn each_event_has_its_own_name_and_a_fork_s_thread_another_than_its_own() {
        let event = told(Event::Fork { child: 4, thread: Some(ThreadId(2)) });
        assert!(event.name == "Fork" && event.values.iter().all(|(name, _)| *name != "thread"));
        for (name, ..) in trace_format::EVENT_CODES {
            assert!(Wanted::new(&[name.to_owned()]).is_ok());
        }
    }
}
