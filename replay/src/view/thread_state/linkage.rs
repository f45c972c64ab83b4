//! Whether a thread is in a stub of the linkage table, or in the loader that binds one: a small machine beside the
//! frames.
//!
//! A stub is code of a form that other code may have, too: it counts where a call sent the thread there, or where the
//! symbols say so. What it leads to was called by the call before it; where that is not kept, the stub's frame goes.
//! While the loader binds the stub's slot, nothing is kept, and the function that it jumps on to opens the frame.

/// Where a thread stands in the linkage of its calls.
#[derive(Debug, Default)]
pub(super) struct Linkage {
    /// Whether the last thing that happened sent the thread to a function, or it is in a stub to which it was sent.
    sent: bool,
    /// The stack pointer at the first instruction of the stub in which the thread is, if `sent`, and if it was called:
    /// where its frame began.
    stub: Option<u64>,
    /// The same while the loader binds the stub's slot: it jumps on to the function with that stack pointer.
    binding: Option<u64>,
}

impl Linkage {
    /// The first instruction of an extent comes: who called it does not matter.
    pub fn begin(&mut self) {
        (self.sent, self.binding) = (false, None);
    }

    /// A call, or a signal, sent the thread to kept code, with this stack pointer.
    pub fn send(&mut self, sp: u64) {
        (self.sent, self.stub) = (true, Some(sp));
    }

    /// Kept code ran that is no stub.
    #[inline]
    pub fn run(&mut self) {
        self.sent = false;
    }

    /// Whether the thread was just sent to a function.
    #[inline]
    pub fn is_sent(&self) -> bool {
        self.sent
    }

    /// Whether the loader binds a slot for code whose stack pointer is above this one.
    #[inline]
    pub fn binds_above(&self, sp: u64) -> bool {
        self.binding.is_some_and(|binding| sp < binding)
    }

    /// Kept code runs of a stub's form, or of another: whether it is one, as a thread that was sent there makes it, or
    /// its name.
    pub fn run_stub(&mut self, has_form: bool, is_named: bool) -> bool {
        let was_sent = std::mem::replace(&mut self.sent, false);
        if !has_form || !(was_sent || is_named) {
            return false;
        }
        if !was_sent {
            self.stub = None;
        }
        self.sent = true;
        true
    }

    /// What comes now is not kept; `runtime`, since it is a part of the synchronisation and thread runtime, as the
    /// loader is. The frame of the stub that led there, which is to be closed.
    pub fn leave(&mut self, runtime: bool) -> Option<u64> {
        let led = std::mem::replace(&mut self.sent, false);
        let frame = self.stub.filter(|_| led);
        if frame.is_some() {
            self.binding = frame;
        }
        if !runtime {
            self.binding = None;
        }
        frame
    }

    /// A function of a thread runtime begins: if the loader bound a stub to it, it is done. The function may call back
    /// what is kept.
    pub fn reach_runtime(&mut self) {
        self.binding = None;
    }

    /// What comes now is kept: the frame that it opens where it is the function that the loader has bound a stub to.
    #[inline]
    pub fn come_from_loader(&mut self, sp: u64) -> Option<u64> {
        let bound = self.binding.take_if(|binding| *binding <= sp)?;
        (bound == sp).then_some(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_stubs_form_is_one_where_a_call_or_its_name_says_so() {
        let mut linkage = Linkage::default();
        assert!(!linkage.run_stub(true, false), "nobody called it");
        linkage.send(80);
        assert!(linkage.is_sent() && linkage.run_stub(true, false) && linkage.is_sent());
        assert!(linkage.run_stub(true, false), "a stub of two segments");
        assert!(!linkage.run_stub(false, false) && !linkage.is_sent(), "the function that it leads to");
        assert!(linkage.run_stub(true, true));
        linkage.send(80);
        linkage.run();
        assert!(!linkage.run_stub(true, false));
    }

    #[test]
    fn a_stub_that_leads_out_of_the_replay_loses_its_frame() {
        let mut linkage = Linkage::default();
        linkage.send(80);
        linkage.run_stub(true, false);
        assert_eq!(linkage.leave(false), Some(80));
        assert_eq!((linkage.leave(false), linkage.come_from_loader(80)), (None, None));
        // One that is known by its name alone was not called: it has none.
        linkage.run_stub(true, true);
        assert_eq!(linkage.leave(true), None);
    }

    #[test]
    fn the_function_that_the_loader_binds_opens_the_frame() {
        let mut linkage = Linkage::default();
        linkage.send(80);
        linkage.run_stub(true, false);
        assert_eq!(linkage.leave(true), Some(80));
        assert!(linkage.binds_above(72) && !linkage.binds_above(80));
        assert_eq!(linkage.come_from_loader(72), None, "the loader is not done");
        assert_eq!(linkage.come_from_loader(80), Some(80));
        assert_eq!(linkage.come_from_loader(80), None);
        // What is kept first above it is not that function.
        linkage.send(80);
        linkage.leave(true);
        assert_eq!(linkage.come_from_loader(88), None);
        // What a runtime's function calls back runs below it.
        linkage.send(80);
        linkage.run_stub(true, false);
        linkage.leave(true);
        linkage.reach_runtime();
        assert!(!linkage.binds_above(72));
        assert!(!linkage.binds_above(0));
    }
}
