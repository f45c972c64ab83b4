//! A stream on its way through a thread, and the lane that is written of it: where the thread stands, and what the
//! replay makes of the lane's own stream. Where the two differ before a segment, a control sets the replay right.

use super::rows::Total;
use super::store::{Store, Writer};
use crate::lanes::kept::Keeper;
use crate::{Code, Control, Result};

/// A lane that is being written.
pub(super) struct Lane {
    /// Its last stretch.
    stretch: u32,
    /// The stack pointer and level that count as 0 and 1 in it; none before its first segment, if that has them.
    zero: Option<(i64, u32)>,
    /// The stack pointer and level that the replay expects.
    expected: (i64, u32),
    /// Whether it has not been told yet where the stack lies.
    stack_is_due: bool,
}

/// Follows a stream and writes lanes of it.
pub(super) struct Track<'k> {
    writer: Writer<'k>,
    sp: i64,
    level: u32,
    stack: Option<(u64, u32)>,
    lane: Option<Lane>,
}

impl<'k> Track<'k> {
    pub(super) fn new(keeper: &'k Keeper) -> Track<'k> {
        Track { writer: Writer::new(keeper), sp: 0, level: 1, stack: None, lane: None }
    }

    /// Another stream begins.
    pub(super) fn restart(&mut self) {
        (self.sp, self.level, self.stack, self.lane) = (0, 1, None, None);
    }

    /// The call level of the next segment.
    #[inline]
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// The level below which the lane's own sinks no further; that of the thread where no lane has begun.
    #[inline]
    pub(super) fn base(&self) -> u32 {
        self.lane.as_ref().and_then(|lane| lane.zero).map_or(self.level, |(_, base)| base)
    }

    /// Takes what a control says about where the thread stands.
    pub(super) fn stand(&mut self, control: Control) {
        match control {
            Control::Sp(sp) => self.sp = sp,
            Control::Level(level) => self.level = level,
            Control::Stack { zero, above } => {
                self.stack = Some((zero, above));
                if let Some(lane) = &mut self.lane {
                    lane.stack_is_due = true;
                }
            }
            _ => {}
        }
    }

    /// A lane begins, with this stretch. Its stack pointer and level count from these; from those of its first segment,
    /// where none are given.
    pub(super) fn begin(&mut self, zero: Option<(i64, u32)>) -> Result<u32> {
        let stretch = self.writer.begin()?;
        self.lane = Some(Lane { stretch, zero, expected: (0, 1), stack_is_due: true });
        Ok(stretch)
    }

    /// The lane ends.
    pub(super) fn end(&mut self) {
        self.lane = None;
    }

    /// The lane is left for another one.
    pub(super) fn leave(&mut self) -> Option<Lane> {
        let lane = self.lane.take()?;
        Some(Lane { stretch: self.writer.leave(lane.stretch), ..lane })
    }

    /// A lane that was left goes on.
    pub(super) fn go_on(&mut self, lane: Lane) -> Result<()> {
        let stretch = self.writer.go_on(lane.stretch)?;
        self.lane = Some(Lane { stretch, ..lane });
        Ok(())
    }

    /// The lane that has begun goes on with another one of any thread, whatever stood there last.
    pub(super) fn is_further(&mut self) {
        if let Some(lane) = &mut self.lane {
            lane.expected = (i64::MIN, 0);
        }
    }

    /// The lane ends, and was none.
    pub(super) fn take_back(&mut self) {
        self.lane = None;
        self.writer.take_back();
    }

    /// A control comes next in the lane.
    pub(super) fn control(&mut self, control: Control) {
        self.writer.control(control);
    }

    /// The lane will not be taken back any more.
    #[inline]
    pub(super) fn is_sure(&mut self) -> Result<()> {
        self.writer.is_sure()
    }

    /// The thread runs so many segments, for which the code stands, in a lane if one is open. Takes their part of the
    /// recorded stack pointers and addresses; returns the addresses.
    #[inline]
    pub(super) fn run<'a>(
        &mut self,
        (code, segments): (Code, usize),
        total: &Total,
        sps: &mut &[i64],
        addresses: &mut &'a [u64],
    ) -> &'a [u64] {
        let (recorded, accessed);
        (recorded, *sps) = sps.split_at((total.recorded as usize).min(sps.len()));
        (accessed, *addresses) = addresses.split_at(total.addresses as usize);
        if let Some(lane) = &mut self.lane {
            let (zero, base) = *lane.zero.get_or_insert((self.sp, self.level));
            if std::mem::take(&mut lane.stack_is_due)
                && let Some((address, above)) = self.stack
            {
                let above = above.saturating_add(u32::try_from(-zero).unwrap_or(0));
                self.writer.control(Control::Stack { zero: address.wrapping_add_signed(zero), above });
            }
            let here = (self.sp - zero, (self.level + 1).saturating_sub(base).max(1));
            if here.0 != lane.expected.0 {
                self.writer.control(Control::Sp(here.0));
            }
            if here.1 != lane.expected.1 {
                self.writer.control(Control::Level(here.1));
            }
            self.writer.ran(code, segments, recorded.iter().map(|sp| sp - zero), accessed);
            let sp = recorded.last().map_or(here.0, |sp| sp - zero) + total.sp;
            lane.expected = (sp, after(here.1, total.level));
        }
        self.sp = recorded.last().copied().unwrap_or(self.sp) + total.sp;
        self.level = after(self.level, total.level);
        accessed
    }

    /// All lanes.
    pub(super) fn finish(self) -> Result<Store> {
        self.writer.finish()
    }
}

/// The call level after what adds so much to it.
pub(super) fn after(level: u32, more: i32) -> u32 {
    level.saturating_add_signed(more).max(1)
}
