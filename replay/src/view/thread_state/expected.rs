//! What the replay makes of the stream that it gets: the stack pointer and call level that it expects, and the controls
//! that set it right before a kept segment.

use crate::{Batch, Code, Control};

/// What the replay expects of a thread: what it was told, and what it follows from the stream by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) struct Expected {
    /// The stack pointer that the replay expects.
    pub sp: u64,
    /// The call level that it expects, 1 and up.
    pub level: u32,
}

impl Default for Expected {
    fn default() -> Expected {
        Expected { sp: 0, level: 1 }
    }
}

impl Expected {
    /// A call is kept.
    #[inline]
    pub fn call(&mut self) {
        self.level += 1;
    }

    /// The call kept last, before which the stack pointer was this, is none for the replay after all.
    pub fn elide_call(&mut self, sp: u64) {
        (self.sp, self.level) = (sp, self.level - 1);
    }

    /// A return is kept.
    #[inline]
    pub fn return_(&mut self) {
        self.level = self.level.saturating_sub(1).max(1);
    }

    /// Before a kept segment, with this stack pointer, relative to what counts as 0, and at this level: tells the
    /// replay what it cannot know.
    #[inline]
    pub fn correct(&mut self, sp: u64, base: u64, level: u32, batch: &mut Batch) {
        if self.sp != sp {
            push_control(batch, Control::Sp(sp.wrapping_sub(base) as i64));
            self.sp = sp;
        }
        if self.level != level {
            self.level = level;
            push_control(batch, Control::Level(level));
        }
    }
}

pub(in crate::view) fn push_control(batch: &mut Batch, control: Control) {
    batch.codes.push(Code::control(batch.controls.len()));
    batch.controls.push(control);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn correct(expected: &mut Expected, sp: u64, level: u32) -> Vec<Control> {
        let mut batch = Batch::default();
        expected.correct(sp, 100, level, &mut batch);
        assert_eq!(batch.codes.len(), batch.controls.len());
        batch.controls
    }

    #[test]
    fn only_what_the_replay_cannot_know_is_told_and_once() {
        let mut expected = Expected { sp: 92, ..Expected::default() };
        expected.call();
        assert_eq!(correct(&mut expected, 92, 2), []);
        assert_eq!(correct(&mut expected, 84, 3), [Control::Sp(-16), Control::Level(3)]);
        assert_eq!(correct(&mut expected, 84, 3), []);
    }

    #[test]
    fn a_call_of_what_is_not_kept_changes_nothing() {
        let mut expected = Expected { sp: 100, level: 1 };
        expected.sp = 92;
        expected.call();
        expected.elide_call(100);
        assert_eq!(expected, Expected { sp: 100, level: 1 });
        expected.return_();
        assert_eq!(expected.level, 1, "the outermost function is level 1, also where it returns");
    }
}
