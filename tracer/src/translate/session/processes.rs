//! The processes that are recorded, and the memory they run in.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::handlers::actions::Action;
use super::thread::{SpaceId, Thread};
use crate::engine::TranslationLimits;
use crate::kernel::ptrace::Tid;
use crate::translate::expand::{Clock, Expander};
use crate::translate::translator::Translator;

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
    /// Whether the kernel may be told of our entry for handlers.
    may_be_direct: bool,
    /// What it does at signals: also for those that share it.
    actions: Rc<RefCell<FxHashMap<i32, Answer>>>,
}

/// What a process does at a signal.
#[derive(Clone, Copy)]
struct Answer {
    action: Action,
    /// How often the signal was delivered so far.
    delivered: u32,
    /// Whether the kernel knows our entry for handlers in place of the handler.
    direct: bool,
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
        let id = self.add(translator, Expander::new(clock));
        self.processes.insert(process, Process { space: id, may_be_direct: true, actions: Rc::default() });
        id
    }

    fn add(&mut self, translator: Translator, expander: Expander) -> SpaceId {
        let id = SpaceId(self.made);
        self.made += 1;
        self.spaces.insert(id, AddressSpace { translator, expander, stops_since: 0, users: 1 });
        id
    }

    /// A process has made another, with a copy of its memory and its translations, or with the same where there is no
    /// copy. `same_actions` tells whether one also says for the other what to do at signals. None when the maker is
    /// gone.
    pub fn fork(&mut self, maker: Tid, child: Tid, copy: Option<Translator>, same_actions: bool) -> Option<SpaceId> {
        let Process { space, may_be_direct, actions } = self.processes.get(&maker)?;
        let (space, may_be_direct, mut actions) = (*space, *may_be_direct, actions.clone());
        if !same_actions {
            let copied = actions.borrow().clone();
            actions = Rc::new(RefCell::new(copied));
        }
        let theirs = self.spaces.get_mut(&space)?;
        let space = match copy {
            Some(translator) => {
                let expander = theirs.expander.clone();
                self.add(translator, expander)
            }
            None => {
                theirs.users += 1;
                space
            }
        };
        self.processes.insert(child, Process { space, may_be_direct, actions });
        Some(space)
    }

    /// Whether this process runs in an address space, and no other does.
    #[must_use]
    pub fn is_only_user(&self, process: Tid, space: SpaceId) -> bool {
        let runs_in_it = self.processes.get(&process).is_some_and(|process| process.space == space);
        runs_in_it && self.space(space).is_some_and(|space| space.users == 1)
    }

    /// Bytes of translated code, and of bookkeeping, in all address spaces together.
    #[must_use]
    pub fn held(&self) -> [u64; 2] {
        let each = self.spaces.values().map(|space| space.translator.takes());
        each.fold([0; 2], |sum, each| [sum[0] + each[0], sum[1] + each[1]])
    }

    /// Whether this address space takes its part of more than all may take.
    #[must_use]
    pub fn takes_too_much(&self, id: SpaceId, limits: TranslationLimits) -> bool {
        let Some(space) = self.space(id) else { return false };
        let (own, all, count) = (space.translator.takes(), self.held(), self.spaces.len() as u64);
        let limits = [limits.code, limits.bookkeeping];
        (0..2).any(|kind| all[kind] >= limits[kind] && own[kind] >= limits[kind] / count)
    }

    /// The address space of a process that no other runs in.
    #[must_use]
    pub fn last_in(&self, process: Tid) -> Option<SpaceId> {
        let space = self.processes.get(&process)?.space;
        self.is_only_user(process, space).then_some(space)
    }

    /// Keeps an address space, whatever becomes of its processes.
    pub fn keep(&mut self, space: SpaceId) {
        if let Some(space) = self.spaces.get_mut(&space) {
            space.users += 1;
        }
    }

    /// The address space whose slots are the memory file of that number.
    #[must_use]
    pub fn space_with(&self, inode: u64) -> Option<SpaceId> {
        self.spaces.iter().find(|(_, space)| space.translator.space.inode() == inode).map(|(&id, _)| id)
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

    /// That of a process.
    #[must_use]
    pub fn space_of(&self, process: Tid) -> Option<&AddressSpace> {
        self.space(self.processes.get(&process)?.space)
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

    /// What the process does at a signal, where it has said so.
    #[must_use]
    pub fn action(&self, process: Tid, signal: i32) -> Option<Action> {
        self.processes.get(&process)?.actions.borrow().get(&signal).map(|answer| answer.action)
    }

    /// Whether the kernel lets handlers of this signal begin at our entry.
    #[must_use]
    pub fn is_direct(&self, process: Tid, signal: i32) -> bool {
        let process = self.processes.get(&process);
        process.is_some_and(|process| process.actions.borrow().get(&signal).is_some_and(|answer| answer.direct))
    }

    /// From now on it does, or no longer.
    pub fn set_direct(&self, process: Tid, signal: i32, direct: bool) {
        if let Some(process) = self.processes.get(&process)
            && let Some(answer) = process.actions.borrow_mut().get_mut(&signal)
        {
            answer.direct = direct;
        }
    }

    /// The signals whose handlers the kernel lets begin at our entry, and what the process says to do.
    #[must_use]
    pub fn direct(&self, process: Tid) -> Vec<(i32, Action)> {
        let Some(process) = self.processes.get(&process) else { return Vec::new() };
        let actions = process.actions.borrow();
        actions.iter().filter(|(_, answer)| answer.direct).map(|(&signal, answer)| (signal, answer.action)).collect()
    }

    /// A process that goes on by itself says together with this one what to do at signals: the kernel is told about the
    /// handlers from now on.
    pub fn leave_handlers(&mut self, process: Tid) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.may_be_direct = false;
        }
    }

    /// A signal is delivered to its handler. How often it was before; 0 where the kernel is to be told about the
    /// handler.
    pub fn count_delivery(&self, process: Tid, signal: i32) -> u32 {
        let Some(process) = self.processes.get(&process).filter(|process| process.may_be_direct) else { return 0 };
        let mut actions = process.actions.borrow_mut();
        let Some(answer) = actions.get_mut(&signal) else { return 0 };
        let before = answer.delivered;
        answer.delivered = before.saturating_add(1);
        before
    }

    /// The process says what it does at a signal from now on; `None`: what the kernel does by default.
    pub fn set_action(&mut self, process: Tid, signal: i32, action: Option<Action>) {
        let Some(process) = self.processes.get(&process) else { return };
        let mut actions = process.actions.borrow_mut();
        match action {
            Some(action) => actions.insert(signal, Answer { action, delivered: 0, direct: false }),
            None => actions.remove(&signal),
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
