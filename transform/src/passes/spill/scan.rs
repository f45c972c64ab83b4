//! Linear scan: which values are in registers, which are spilled.
//!
//! Intervals are taken in the order in which they begin. Where all registers are taken, the one of the living values
//! is spilled whose interval ends last. Source: Poletto, Sarkar, *Linear scan register allocation*, TOPLAS 21(5), 1999,
//! section 4.1.

use std::collections::BTreeSet;

use super::intervals::Interval;

/// Whether each interval, in order, is spilled with so many registers.
///
/// A spilled value needs a register where it is made and where it is used; those are not counted here. Where only
/// values that cannot be spilled are alive, there are more of them than registers.
pub(super) fn spilled(intervals: &[Interval<'_>], registers: usize) -> Vec<bool> {
    let mut spilled = vec![false; intervals.len()];
    // By where they end.
    let mut active: BTreeSet<(u32, usize)> = BTreeSet::new();
    for (i, interval) in intervals.iter().enumerate() {
        while let Some(&first) = active.first().filter(|(to, _)| *to < interval.from) {
            active.remove(&first);
        }
        active.insert((interval.to, i));
        if active.len() > registers {
            let last = active.iter().rev().find(|(_, i)| intervals[*i].can_spill).copied();
            if let Some(last) = last {
                active.remove(&last);
                spilled[last.1] = true;
            }
        }
    }
    spilled
}

#[cfg(test)]
mod tests {
    use super::super::intervals;
    use super::*;
    use crate::flow::Flow;
    use crate::llvm::Module;

    /// The intervals of the first function's values by name, and which are spilled.
    fn scanned(ir: &str, registers: usize) -> Vec<(String, u32, u32, bool)> {
        let module = Module::parse(ir.as_bytes(), "scan.ll").unwrap();
        let intervals = intervals::of(&Flow::of(module.functions()[0]), None);
        let spilled = spilled(&intervals, registers);
        let named = intervals.iter().zip(spilled).map(|(i, spilled)| (i.value.name(), i.from, i.to, spilled));
        named.collect()
    }

    #[test]
    fn of_the_living_the_one_that_ends_last_is_spilled() {
        let ir = "define i32 @f(i32 %a, i32 %b) {
  %c = add i32 %a, %b
  %d = mul i32 %c, %c
  %e = sub i32 %d, %a
  ret i32 %e
}";
        let all = scanned(ir, 1);
        let spilled: Vec<&str> = all.iter().filter(|(.., s)| *s).map(|(name, ..)| name.as_str()).collect();
        assert_eq!(spilled, ["a"], "{all:?}");
        assert!(scanned(ir, 2).iter().all(|(.., spilled)| !spilled), "two registers do");
    }

    #[test]
    fn what_is_used_in_a_loop_lives_until_its_end() {
        let ir = "define i32 @f(i32 %n, i32 %k) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %j = add i32 %i, %k
  %c = icmp slt i32 %j, %n
  br i1 %c, label %loop, label %end
end:
  ret i32 %j
}";
        let all = scanned(ir, 8);
        let to = |name: &str| all.iter().find(|(n, ..)| n == name).map(|(_, _, to, _)| *to).unwrap();
        assert_eq!(to("k"), to("n"), "{all:?}");
        assert!(to("k") > to("i"), "{all:?}");
    }
}
