//! Whether the program is in its window: followed from gate to gate.
//!
//! Calls of a function are counted thread by thread, markers over all threads. A call that is left by `longjmp` or an
//! exception counts until its thread returns from a call further out, or ends.

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::ThreadId;

use crate::images::modules::Images;
use crate::window::{Gate, Window};

/// A thread that has reached a gate: the instruction there is next.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Who.
    pub thread: ThreadId,
    /// Where.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// What lies there: the return address, where a function is entered.
    pub top: u64,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Call {
    sp: u64,
    return_address: u64,
}

/// Whether the window is open.
#[derive(Debug)]
pub struct Switch {
    window: Window,
    open: bool,
    /// How many markers have begun more than have ended.
    begun: u64,
    /// The open calls of each thread that has any, outermost first.
    calls: FxHashMap<ThreadId, Vec<Call>>,
    /// Where calls may return to.
    returns: FxHashSet<u64>,
    has_started: bool,
    has_stopped: bool,
}

impl Switch {
    /// As it is when the program begins.
    #[must_use]
    pub fn new(window: &Window) -> Switch {
        Switch {
            open: window.is_open_at_first(),
            has_started: window.is_open_at_first(),
            window: window.clone(),
            begun: 0,
            calls: FxHashMap::default(),
            returns: FxHashSet::default(),
            has_stopped: false,
        }
    }

    /// Whether what runs now is recorded.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether there can be gates at all.
    #[must_use]
    pub fn has_gates(&self) -> bool {
        self.window != Window::Whole
    }

    /// Whether markers count.
    #[must_use]
    pub fn has_markers(&self) -> bool {
        self.window == Window::Markers
    }

    /// Whether reaching the gate would change anything.
    #[must_use]
    pub fn heeds(&self, gate: Gate) -> bool {
        match gate {
            Gate::Start => !self.open,
            Gate::Stop => self.open,
            Gate::Function | Gate::Return | Gate::Begin | Gate::End => true,
        }
    }

    /// Whether a call may return to this address.
    #[must_use]
    pub fn is_return(&self, pc: u64) -> bool {
        self.returns.contains(&pc)
    }

    /// A thread reaches a gate.
    pub fn arrive(&mut self, gate: Gate, at: Arrival) {
        match gate {
            Gate::Start => (self.open, self.has_started) = (true, true),
            Gate::Stop => (self.open, self.has_stopped) = (false, true),
            Gate::Function => {
                self.has_started = true;
                let calls = self.calls.entry(at.thread).or_default();
                // A function that jumps back to its first instruction is not called again.
                if let Some(same) = calls.iter().rposition(|call| call.sp == at.sp) {
                    calls.truncate(same);
                }
                self.returns.insert(at.top);
                calls.push(Call { sp: at.sp, return_address: at.top });
                self.open = true;
            }
            Gate::Return => {
                if let Some(calls) = self.calls.get_mut(&at.thread)
                    && let Some(left) = calls.iter().rposition(|c| c.return_address == at.pc && c.sp + 8 == at.sp)
                {
                    self.has_stopped = true;
                    calls.truncate(left);
                    self.forget_idle(at.thread);
                }
            }
            Gate::Begin => {
                self.begun += 1;
                (self.open, self.has_started) = (true, true);
            }
            Gate::End => {
                self.begun = self.begun.saturating_sub(1);
                (self.open, self.has_stopped) = (self.begun > 0, true);
            }
        }
    }

    /// A thread has ended, or runs another program now: none of its calls will return.
    pub fn calls_are_gone(&mut self, thread: ThreadId) {
        if let Some(calls) = self.calls.get_mut(&thread) {
            calls.clear();
            self.forget_idle(thread);
        }
    }

    fn forget_idle(&mut self, thread: ThreadId) {
        if self.calls.get(&thread).is_some_and(Vec::is_empty) {
            self.calls.remove(&thread);
            self.open = !self.calls.is_empty();
        }
    }

    /// Why nothing was recorded, if the window never began.
    #[must_use]
    pub fn never_began(&self, images: &Images) -> Option<String> {
        if self.has_started {
            return None;
        }
        Some(match self.window.functions().iter().find(|(_, gate)| matches!(gate, Gate::Start | Gate::Function)) {
            Some((name, _)) => never_met(name, images),
            None => "the program reached no LOCKSTEP_BEGIN of lockstep.h".to_owned(),
        })
    }

    /// A warning about an end that was never reached, though the window began.
    #[must_use]
    pub fn never_ended(&self, images: &Images) -> Option<String> {
        let (name, _) = self.window.functions().into_iter().find(|(_, gate)| *gate == Gate::Stop)?;
        let missing = self.has_started && !self.has_stopped;
        missing.then(|| format!("the recording went on to the end of the program: {}", never_met(name, images)))
    }
}

fn never_met(name: &str, images: &Images) -> String {
    if images.has_function(name) {
        return format!("the function {name} was never called");
    }
    let known = images.function_names();
    if known.is_empty() {
        return format!(
            "there is no function {name}: the program and its libraries have no function names (stripped?)"
        );
    }
    let similar = trace_format::names::similar(name, &known);
    let similar = if similar.is_empty() { String::new() } else { format!("; similar names: {}", similar.join(", ")) };
    format!("there is no function {name} in the program or the libraries that it loaded{similar}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(thread: u32, pc: u64, sp: u64, top: u64) -> Arrival {
        Arrival { thread: ThreadId(thread), pc, sp, top }
    }

    fn anywhere() -> Arrival {
        at(0, 0, 0, 0)
    }

    #[test]
    fn each_start_opens_and_each_stop_closes() {
        let mut switch = Switch::new(&Window::of(Some("f".into()), Some("g".into())));
        assert!(!switch.is_open() && switch.heeds(Gate::Start) && !switch.heeds(Gate::Stop));
        for _ in 0..2 {
            switch.arrive(Gate::Start, anywhere());
            assert!(switch.is_open() && !switch.heeds(Gate::Start));
            switch.arrive(Gate::Stop, anywhere());
            assert!(!switch.is_open());
        }
    }

    #[test]
    fn a_call_is_open_until_the_outermost_of_each_thread_returns() {
        let mut switch = Switch::new(&Window::Calls("f".into()));
        switch.arrive(Gate::Function, at(1, 0x10, 0x8000, 0x40));
        // It calls itself.
        switch.arrive(Gate::Function, at(1, 0x10, 0x7000, 0x18));
        switch.arrive(Gate::Function, at(2, 0x10, 0x9000, 0x40));
        assert!(switch.is_return(0x40) && switch.is_return(0x18) && !switch.is_return(0x10));
        switch.arrive(Gate::Return, at(1, 0x18, 0x7008, 0));
        switch.arrive(Gate::Return, at(1, 0x40, 0x8010, 0));
        assert!(switch.is_open(), "that was the return of something else");
        switch.arrive(Gate::Return, at(1, 0x40, 0x8008, 0));
        assert!(switch.is_open(), "the other thread is in it");
        switch.calls_are_gone(ThreadId(2));
        assert!(!switch.is_open());
    }

    #[test]
    fn a_jump_back_to_the_first_instruction_is_no_second_call() {
        let mut switch = Switch::new(&Window::Calls("f".into()));
        for _ in 0..3 {
            switch.arrive(Gate::Function, at(1, 0x10, 0x8000, 0x40));
        }
        switch.arrive(Gate::Return, at(1, 0x40, 0x8008, 0));
        assert!(!switch.is_open());
    }

    #[test]
    fn markers_nest() {
        let mut switch = Switch::new(&Window::Markers);
        let mut seen = Vec::new();
        for gate in [Gate::Begin, Gate::Begin, Gate::End, Gate::End, Gate::End, Gate::Begin] {
            switch.arrive(gate, anywhere());
            seen.push(switch.is_open());
        }
        assert_eq!(seen, [true, true, true, false, false, true]);
    }

    #[test]
    fn what_never_came_is_told() {
        let images = Images::default();
        let window = Window::of(Some("f".into()), Some("g".into()));
        let mut switch = Switch::new(&window);
        assert!(switch.never_began(&images).is_some_and(|why| why.contains("no function f")));
        assert_eq!(switch.never_ended(&images), None, "one fault at a time");
        switch.arrive(Gate::Start, anywhere());
        assert_eq!(switch.never_began(&images), None);
        assert!(switch.never_ended(&images).is_some_and(|why| why.contains("no function g")));
        assert!(Switch::new(&Window::Markers).never_began(&images).is_some_and(|why| why.contains("LOCKSTEP_BEGIN")));
    }
}
