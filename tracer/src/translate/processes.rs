//! The processes that are recorded, and the memory they run in.

use rustc_hash::FxHashMap;

use super::expand::{Clock, Expander};
use super::signals::Action;
use super::thread::Thread;
use super::translator::Translator;
use crate::ptrace::Tid;

/// The number of an address space, given anew for each program that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceId(u32);

/// Memory of the program with what was translated of it. Its threads may belong to several processes.
pub struct AddressSpace {
    /// What was translated.
    pub translator: Translator,
    /// What its records stand for.
    pub expander: Expander,
    /// How many stops were handled since translations were thrown away.
    pub stops_since: usize,
    /// How many processes run in it.
    users: u32,
}

/// A process: threads that the kernel stops, ends and sends signals to together.
struct Process {
    space: SpaceId,
    /// What it does at signals.
    actions: FxHashMap<i32, Action>,
}

/// All of them.
#[derive(Default)]
pub struct Processes {
    processes: FxHashMap<Tid, Process>,
    spaces: FxHashMap<SpaceId, AddressSpace>,
    /// How many address spaces there have been.
    made: u32,
}

impl Processes {
    /// A program begins in a process, in memory of its own.
    pub fn begin(&mut self, process: Tid, translator: Translator, clock: Clock) -> SpaceId {
        self.end(process);
        let id = SpaceId(self.made);
        self.made += 1;
        let space = AddressSpace { translator, expander: Expander::new(clock), stops_since: 0, users: 1 };
        self.spaces.insert(id, space);
        self.processes.insert(process, Process { space: id, actions: FxHashMap::default() });
        id
    }

    /// A process is gone, or becomes another program. Memory that nobody else runs in goes with it.
    pub fn end(&mut self, process: Tid) {
        let Some(Process { space, .. }) = self.processes.remove(&process) else { return };
        if let Some(left) = self.spaces.get_mut(&space) {
            left.users -= 1;
            if left.users == 0 {
                self.spaces.remove(&space);
            }
        }
    }

    /// The address space of that number; none when it is gone.
    #[must_use]
    pub fn space(&self, id: SpaceId) -> Option<&AddressSpace> {
        self.spaces.get(&id)
    }

    /// The same, to be changed.
    pub fn space_mut(&mut self, id: SpaceId) -> Option<&mut AddressSpace> {
        self.spaces.get_mut(&id)
    }

    /// The numbers of all address spaces.
    pub fn spaces(&self) -> impl Iterator<Item = SpaceId> {
        self.spaces.keys().copied()
    }

    /// All address spaces.
    pub fn spaces_mut(&mut self) -> impl Iterator<Item = &mut AddressSpace> {
        self.spaces.values_mut()
    }

    /// The memory of one of the processes that there are.
    #[must_use]
    pub fn last(&self) -> Option<(SpaceId, &Translator)> {
        self.spaces.iter().next().map(|(&id, space)| (id, &space.translator))
    }

    /// What the process does at a signal, where it has said so.
    #[must_use]
    pub fn action(&self, process: Tid, signal: i32) -> Option<Action> {
        self.processes.get(&process)?.actions.get(&signal).copied()
    }

    /// The process says what it does at a signal from now on; `None`: what the kernel does by default.
    pub fn set_action(&mut self, process: Tid, signal: i32, action: Option<Action>) {
        let Some(process) = self.processes.get_mut(&process) else { return };
        match action {
            Some(action) => process.actions.insert(signal, action),
            None => process.actions.remove(&signal),
        };
    }
}

/// A thread, and the translations that it runs. None when one of both is gone.
pub fn running<'a>(
    threads: &'a mut FxHashMap<Tid, Thread>,
    processes: &'a mut Processes,
    tid: Tid,
) -> Option<(&'a mut Thread, &'a mut Translator)> {
    let thread = threads.get_mut(&tid)?;
    let space = processes.spaces.get_mut(&thread.space)?;
    Some((thread, &mut space.translator))
}
