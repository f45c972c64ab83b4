//! Tasks of pools of threads.
//!
//! The threads of a pool are all started for the same: to take tasks as they come. What they work on are the tasks,
//! which the library runs through a function that the compiler makes for each type of task, told by its name:
//!
//! - rayon: `execute` of its jobs (`<rayon_core::job::StackJob<…> as rayon_core::job::Job>::execute`);
//! - oneTBB: `execute` of its tasks (`tbb::detail::d1::start_for<…>::execute`).
//!
//! A task lasts until its function returns; a task that runs another one meanwhile, as a pool's threads do while they
//! wait, holds that one.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use trace_format::{Block, Kind, ModuleRole, Pc, Trace};

use crate::view::first_look::callable::{hands_on, name_at};

/// What a thread ran of one function of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) struct Task {
    /// The function.
    pub function: u64,
    /// The first function of the program's own that one called.
    pub calls: Option<u64>,
    /// The thread instructions in them.
    pub instructions: u64,
}

/// Whether a function of this name runs a task of a pool.
fn runs_task(name: &str) -> bool {
    let is_rayon = name.contains("rayon_core") && name.contains("job") && name.contains("7execute");
    let is_tbb = name.starts_with("_ZN3tbb6detail2d1") && name.contains("7executeERNS1_14execution_data");
    is_rayon && !name.contains("JobRef") || is_tbb
}

/// Whether a function of this name is a part of a pool, or hands calls on.
fn is_of_pool(name: &str) -> bool {
    let path = rustc_demangle::try_demangle(name).map(|name| name.to_string()).unwrap_or_default();
    let path = path.trim_start_matches(['<', '&']);
    path.starts_with("rayon")
        || path.starts_with("crossbeam")
        || name.starts_with("_ZN3tbb")
        || name.starts_with("_ZNK3tbb")
        || hands_on(name)
}

/// The functions of a trace that run tasks.
pub(in crate::view) struct TaskFunctions(FxHashSet<Pc>);

impl TaskFunctions {
    /// Those that ran.
    pub(in crate::view) fn of(trace: &Trace) -> TaskFunctions {
        TaskFunctions(trace.symbols().iter().filter(|symbol| runs_task(&symbol.name)).map(|symbol| symbol.pc).collect())
    }

    /// To measure one thread.
    pub(in crate::view) fn meter<'t>(&'t self, trace: &'t Trace) -> TaskMeter<'t> {
        TaskMeter { functions: &self.0, trace, open: None, before: None, found: BTreeMap::new() }
    }
}

/// A task that runs.
#[derive(Clone, Copy, Debug)]
struct Open {
    function: Pc,
    /// How many calls deep in it the thread is.
    depth: u32,
    instructions: u64,
}

/// Counts the instructions in the tasks of one thread.
pub(in crate::view) struct TaskMeter<'t> {
    functions: &'t FxHashSet<Pc>,
    trace: &'t Trace,
    /// The task that runs.
    open: Option<Open>,
    /// How the last instruction transferred control.
    before: Option<Kind>,
    found: BTreeMap<u64, Task>,
}

impl TaskMeter<'_> {
    /// Whether there are functions that could be tasks.
    pub(in crate::view) fn is_watching(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The thread runs the first instructions of a block.
    pub(in crate::view) fn block(&mut self, block: &Block, executed: u32) {
        if self.is_watching() {
            self.follow(block, executed);
        }
    }

    fn follow(&mut self, block: &Block, executed: u32) {
        for instruction in &block.instructions[..executed as usize] {
            if let Some(kind) = self.before {
                self.go(kind, instruction.pc);
            }
            if let Some(open) = &mut self.open {
                open.instructions += 1;
            }
            self.before = instruction.kind.transfers_control().then_some(instruction.kind);
        }
    }

    /// What was found, by function.
    pub(in crate::view) fn finish(mut self) -> Vec<Task> {
        self.close();
        self.found.into_values().collect()
    }

    fn go(&mut self, kind: Kind, pc: Pc) {
        match &mut self.open {
            None if kind != Kind::Return && self.functions.contains(&pc) => {
                self.open = Some(Open { function: pc, depth: 0, instructions: 0 });
                self.found.entry(pc.0).or_insert(Task { function: pc.0, calls: None, instructions: 0 });
            }
            Some(open) if kind == Kind::Return && open.depth > 0 => open.depth -= 1,
            Some(_) if kind == Kind::Return => self.close(),
            Some(open) if kind.is_call() => {
                open.depth += 1;
                let function = open.function;
                self.called(function, pc);
            }
            _ => {}
        }
    }

    /// The task is over.
    fn close(&mut self) {
        if let Some(open) = self.open.take()
            && let Some(task) = self.found.get_mut(&open.function.0)
        {
            task.instructions += open.instructions;
        }
    }

    /// A task of this function calls another function.
    fn called(&mut self, function: Pc, pc: Pc) {
        let Some(task) = self.found.get_mut(&function.0).filter(|task| task.calls.is_none()) else { return };
        let is_own = self.trace.module_of(pc).is_some_and(|module| module.role == ModuleRole::Main);
        if is_own && name_at(self.trace, pc).is_some_and(|name| !is_of_pool(name) && !runs_task(name)) {
            task.calls = Some(pc.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_told_by_their_names() {
        let rayon = "_ZN83_$LT$rayon_core..job..StackJob$LT$L$C$F$C$R$GT$$u20$as$u20$rayon_core..job..Job$GT$7execute17h0123456789abcdefE";
        let tbb = "_ZN3tbb6detail2d19start_forINS1_13blocked_rangeIiEENS1_26parallel_for_body_wrapperIZ4mainEUliE_iEEKNS1_16auto_partitionerEE7executeERNS1_14execution_dataE";
        assert!(runs_task(rayon) && runs_task(tbb) && is_of_pool(rayon) && is_of_pool(tbb));
        assert!(
            !runs_task("_ZN3tbb6detail2r15spawnERNS0_2d14taskERNS2_18task_group_contextE") && !is_of_pool("_Z4worki")
        );
    }
}
