//! What became of a thread's instructions.

/// Why an instruction is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Reason {
    OutsideRegion,
    OutsideMain,
    SyncRuntime,
    Mathematics,
    Critical,
}

/// Instructions by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::view) struct Counts {
    pub kept: u64,
    pub outside_region: u64,
    pub outside_main: u64,
    pub sync_runtime: u64,
    pub mathematics: u64,
    pub critical: u64,
    pub spin: u64,
    /// Not instructions: how often the thread waited in the kernel outside of all known functions.
    pub own_waits: u64,
}

impl Counts {
    /// How much was added since then.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        Counts {
            kept: self.kept - before.kept,
            outside_region: self.outside_region - before.outside_region,
            outside_main: self.outside_main - before.outside_main,
            sync_runtime: self.sync_runtime - before.sync_runtime,
            mathematics: self.mathematics - before.mathematics,
            critical: self.critical - before.critical,
            spin: self.spin - before.spin,
            own_waits: self.own_waits - before.own_waits,
        }
    }

    pub(super) fn add(&mut self, more: &Counts) {
        self.kept += more.kept;
        self.outside_region += more.outside_region;
        self.outside_main += more.outside_main;
        self.sync_runtime += more.sync_runtime;
        self.mathematics += more.mathematics;
        self.critical += more.critical;
        self.spin += more.spin;
        self.own_waits += more.own_waits;
    }

    pub(super) fn multiply(&mut self, by: u64) {
        self.kept *= by;
        self.outside_region *= by;
        self.outside_main *= by;
        self.sync_runtime *= by;
        self.mathematics *= by;
        self.critical *= by;
        self.spin *= by;
        self.own_waits *= by;
    }

    pub(super) fn drop(&mut self, reason: Reason, instructions: u64) {
        *match reason {
            Reason::OutsideRegion => &mut self.outside_region,
            Reason::OutsideMain => &mut self.outside_main,
            Reason::SyncRuntime => &mut self.sync_runtime,
            Reason::Mathematics => &mut self.mathematics,
            Reason::Critical => &mut self.critical,
        } += instructions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_since_can_be_counted_several_times() {
        let mut counts = Counts { kept: 5, ..Counts::default() };
        let before = counts;
        counts.kept += 2;
        let reasons =
            [Reason::OutsideRegion, Reason::OutsideMain, Reason::SyncRuntime, Reason::Critical, Reason::Mathematics];
        for (n, reason) in (1..).zip(reasons) {
            counts.drop(reason, n);
        }
        (counts.spin, counts.own_waits) = (7, 1);
        let turn = Counts {
            kept: 2,
            outside_region: 1,
            outside_main: 2,
            sync_runtime: 3,
            mathematics: 5,
            critical: 4,
            spin: 7,
            own_waits: 1,
        };
        let mut more = counts.since(&before);
        assert_eq!(more, turn);
        more.multiply(3);
        let mut all = counts;
        all.add(&more);
        assert_eq!((all.kept, all.outside_region, all.critical, all.spin), (5 + 4 * 2, 4, 16, 28));
    }
}
