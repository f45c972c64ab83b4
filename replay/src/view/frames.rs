//! The call level of a lane: the frames that are open on its thread's stack.
//!
//! A frame is the stack pointer at a function's first instruction, where the return address lies. It is gone when the
//! stack pointer rises above that, be it by a return, `longjmp` or unwinding. Only frames whose first code is kept
//! are held: the others do not count. Frames of a signal handler end with the handler, and those of the interrupted
//! code wait: the handler may run on another stack.

/// A handler that is running.
#[derive(Clone, Copy, Debug)]
struct Handler {
    /// How many frames wait below it.
    floor: usize,
    /// The stack pointer of the interrupted code.
    interrupted: u64,
    /// The stack pointer at the handler's first instruction, once that is known.
    entry: Option<u64>,
}

/// How far above the interrupted code's stack pointer a `siglongjmp` out of a handler may lead, in bytes. Above that it
/// is taken for the handler's own stack; programs' alternate stacks are mapped further away.
const LEAP: u64 = 1 << 20;

impl Handler {
    fn is_left(self, sp: u64) -> bool {
        let near = |sp: u64| sp.wrapping_sub(self.interrupted) < LEAP;
        self.entry.is_some_and(|entry| near(sp) && !near(entry))
    }
}

/// The open frames, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    open: Vec<u64>,
    handlers: Vec<Handler>,
}

impl Frames {
    /// The call level: 1 outside of all frames.
    #[inline]
    pub fn level(&self) -> u32 {
        self.open.len() as u32 + 1
    }

    /// A function begins, at this stack pointer.
    #[inline]
    pub fn push(&mut self, sp: u64) {
        self.open.push(sp);
    }

    /// Closes the innermost frame, if it began at this stack pointer.
    pub fn close(&mut self, sp: u64) {
        if self.open.last() == Some(&sp) {
            self.open.pop();
        }
    }

    /// How many frames are open.
    #[inline]
    pub fn height(&self) -> usize {
        self.open.len()
    }

    /// Closes the innermost frame, if the stack pointer has risen above it: where it began.
    #[inline]
    pub fn close_one(&mut self, sp: u64) -> Option<u64> {
        self.open.pop_if(|frame| *frame < sp)
    }

    /// Closes all but so many frames, and opens these again, the outermost last.
    pub fn put_back(&mut self, height: usize, closed: &[u64]) {
        self.open.truncate(height);
        self.open.extend(closed.iter().rev());
    }

    /// Closes the frames that the stack pointer has risen above.
    pub fn settle(&mut self, sp: u64) {
        while self.handlers.last().is_some_and(|h| h.is_left(sp)) {
            self.handler_ends();
        }
        if let Some(handler) = self.handlers.last_mut() {
            handler.entry.get_or_insert(sp);
        }
        let floor = self.handlers.last().map_or(0, |h| h.floor);
        while self.open.len() > floor && self.open[self.open.len() - 1] < sp {
            self.open.pop();
        }
    }

    /// The highest stack pointer that closes no frame; 0 while a handler runs, where it has to be asked each time.
    #[inline]
    pub fn ceiling(&self) -> u64 {
        if self.handlers.is_empty() { self.open.last().copied().unwrap_or(u64::MAX) } else { 0 }
    }

    /// A signal handler begins; the interrupted code had this stack pointer.
    pub fn handler_begins(&mut self, interrupted: u64) {
        self.handlers.push(Handler { floor: self.open.len(), interrupted, entry: None });
    }

    /// The innermost handler has returned.
    pub fn handler_ends(&mut self) {
        if let Some(handler) = self.handlers.pop() {
            self.open.truncate(handler.floor);
        }
    }

    /// How many handlers are running.
    pub fn handlers(&self) -> usize {
        self.handlers.len()
    }

    /// Forgets the frames: the next instruction has level 1.
    pub fn restart(&mut self) {
        self.open.clear();
        for handler in &mut self.handlers {
            handler.floor = 0;
        }
    }

    /// Forgets frames and handlers.
    pub fn clear(&mut self) {
        self.open.clear();
        self.handlers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_frames(sps: &[u64]) -> Frames {
        let mut frames = Frames::default();
        sps.iter().for_each(|sp| frames.push(*sp));
        frames
    }

    #[test]
    fn a_return_closes_one_frame_and_a_long_jump_several() {
        let mut frames = in_frames(&[900, 800, 700]);
        frames.settle(700);
        assert_eq!(frames.level(), 4);
        frames.settle(708);
        assert_eq!(frames.level(), 3);
        frames.settle(950);
        assert_eq!(frames.level(), 1);
    }

    #[test]
    fn a_handler_on_a_higher_stack_leaves_the_interrupted_frames() {
        let mut frames = in_frames(&[900, 800]);
        frames.handler_begins(790);
        let other = 1 << 40;
        frames.settle(other);
        frames.push(other);
        assert_eq!(frames.level(), 4);
        frames.settle(other + 8);
        assert_eq!(frames.level(), 3);
        frames.handler_ends();
        frames.settle(790);
        assert_eq!((frames.level(), frames.handlers()), (3, 0));
    }

    #[test]
    fn a_long_jump_out_of_a_handler_ends_it() {
        let mut frames = in_frames(&[900, 800]);
        frames.handler_begins(790);
        frames.settle(400);
        frames.push(400);
        frames.settle(850);
        assert_eq!((frames.level(), frames.handlers()), (2, 0));
    }
}
