//! Loops in which lanes yield: those with an exit that hangs on what an atomic operation of the loop found.
//!
//! NVIDIA's `ptxas` puts a YIELD into such loops (a lock that is tried, a compare-and-swap that is tried again, a queue
//! whose next item is taken by an addition), so that the lanes for which the others wait can run. Lanes that stay in
//! the loop while others leave it have yielded, and are not waited for behind it: Diamos et al., *Execution of
//! divergent threads using a convergence barrier* (US patent 10,067,768, 2018).
//!
//! A loop with an atomic operation of its own gets a YIELD too where the loop calls a function, or code that comes
//! behind it does (without another turn of a loop around it). Most such functions are those of operands that are rare:
//! a division or a root has one ([`machine::Instruction::calls_on_gpu`]). Lanes that go round stop at the YIELD for
//! others to run. Those go round the loop around it until they come there as well, so lanes in different iterations
//! of the outer loop meet at the header. The rule is that of ptxas 13.5 for sm_90, in 110 of 120 random programs
//! (`scripts/yields-by-ptxas`). What comes of it, an H200 counted in three programs: without any other wait their
//! efficiencies were 29%, 20% and 54%, those with a wait of all lanes at the header 30%, 21% and 54%, and those of
//! lanes that wait for each other behind the inner loop would be 24%, 16% and 38%.
//!
//! What an atomic operation found is followed through registers, flags and slots of the frame, along all ways in the
//! loop. So is what was worked out from it, or loaded from an address that was.
//!
//! The locks of a C library, as of `malloc`, are no code that runs on a GPU: lanes do not yield there.
//!
//! *Limitation*: an atomic operation in a function that the loop calls is not seen, nor a division there, nor is a
//! constant that code chose by what the operation found, nor a plain load that spins. A GPU's compiler makes most calls
//! of the program's own functions part of the loop, so they count as none.

use flowgraph::{Graph, LoopId, Loops, NodeId};
use machine::{Instruction, Memory, Register, Registers};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::Kind;

use crate::{PlaceId, SegmentId, SegmentTable};

/// The loops of a program in which lanes yield.
#[derive(Debug)]
pub(crate) struct Yields {
    loops: Loops,
    /// By loop.
    yields: Vec<bool>,
    /// See [`Yields::meets`].
    meets: Vec<PlaceId>,
}

impl Yields {
    /// Those of a graph whose nodes are the places of these segments; none where there is no such loop.
    pub(crate) fn of(graph: &Graph, segments: &SegmentTable) -> Option<Yields> {
        let all = || segments.iter().map(|(id, segment)| (id, segment.place));
        let is_atomic = |id: SegmentId| {
            !segments.is_of_library(id) && segments.listing(id).iter().flatten().any(Instruction::is_atomic)
        };
        let atomic: Vec<PlaceId> = all().filter(|(id, _)| is_atomic(*id)).map(|(_, place)| place).collect();
        if atomic.is_empty() {
            return None;
        }
        let loops = Loops::of(graph);
        let mut of_place: Vec<Vec<SegmentId>> = vec![Vec::new(); segments.places()];
        all().for_each(|(id, place)| of_place[place.0 as usize].push(id));
        let holds_one = |id: LoopId| atomic.iter().any(|place| loops.contains(id, NodeId(place.0)));
        let code = Code { graph, segments, of_place: &of_place };
        let yields: Vec<bool> = loops.ids().map(|id| holds_one(id) && code.yields(&loops, id)).collect();
        let own = atomic.iter().filter_map(|place| loops.innermost(NodeId(place.0)));
        let own = own.filter(|id| !yields[id.index()] && loops.parent(*id).is_some() && code.calls(&loops, *id));
        let mut meets: Vec<PlaceId> = own.map(|id| PlaceId(loops.header(id).0)).collect();
        meets.sort_unstable();
        meets.dedup();
        (yields.contains(&true) || !meets.is_empty()).then_some(Yields { loops, yields, meets })
    }

    /// The headers of loops at which lanes that have yielded meet: with atomic operations that decide no exit, and a
    /// call in the loop or behind it, in another loop.
    pub(crate) fn meets(&self) -> &[PlaceId] {
        &self.meets
    }

    /// The loops around a place in which lanes yield, the innermost first.
    pub(crate) fn around(&self, place: PlaceId) -> impl Iterator<Item = LoopId> {
        let around = std::iter::successors(self.loops.innermost(NodeId(place.0)), |&id| self.loops.parent(id));
        around.filter(|id| self.yields[id.index()])
    }

    /// Where lanes come that go round the loop.
    pub(crate) fn header(&self, id: LoopId) -> PlaceId {
        PlaceId(self.loops.header(id).0)
    }

    /// Whether a place is in the loop.
    pub(crate) fn holds(&self, id: LoopId, place: PlaceId) -> bool {
        self.loops.contains(id, NodeId(place.0))
    }
}

/// What hangs on an atomic operation at a point of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hanging {
    registers: Registers,
    /// Slots of the frame: the register that they lie at, and how far from it.
    slots: Vec<(Register, i64)>,
}

/// Registers that a function may change: those that are not the caller's to rely on.
pub(crate) const CHANGED_BY_CALLS: Registers = {
    let kept = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;
    !kept
};

/// The slot of the frame that an access is of.
pub(crate) fn slot(memory: &Memory) -> Option<(Register, i64)> {
    memory.is_in_frame().then(|| memory.base.map(|base| (base.register, memory.displacement)))?
}

impl Hanging {
    /// Adds what hangs on it on another way; whether that was news.
    fn join(&mut self, other: &Hanging) -> bool {
        let before = (self.registers, self.slots.len());
        self.registers |= other.registers;
        other.slots.iter().for_each(|slot| self.hang(*slot));
        before != (self.registers, self.slots.len())
    }

    fn hang(&mut self, slot: (Register, i64)) {
        if !self.slots.contains(&slot) {
            self.slots.push(slot);
        }
    }

    /// After an instruction.
    fn pass(&mut self, instruction: Instruction) {
        if instruction.kind() == Kind::Call {
            self.registers &= !CHANGED_BY_CALLS;
            return;
        }
        let slots = |which: fn(&Memory) -> bool| instruction.memory().iter().filter(move |m| which(m)).filter_map(slot);
        let reads = instruction.reads() & self.registers != 0
            || slots(|memory| memory.access.reads).any(|slot| self.slots.contains(&slot));
        if instruction.is_atomic() || reads && !instruction.zeroes() {
            self.registers |= instruction.writes() & !Register::SP.bit();
            slots(|memory| memory.access.writes).for_each(|slot| self.hang(slot));
            return;
        }
        let whole = instruction.uses().iter().filter(|used| {
            used.access.writes && !used.access.may_keep && (!used.part.register.is_general() || used.part.size >= 4)
        });
        let replaced = whole.fold(instruction.flags_written(), |all, used| all | used.part.register.bit());
        self.registers &= !replaced;
        slots(|memory| memory.access.writes).for_each(|slot| self.slots.retain(|known| *known != slot));
    }
}

struct Code<'a> {
    graph: &'a Graph,
    segments: &'a SegmentTable,
    of_place: &'a [Vec<SegmentId>],
}

impl Code<'_> {
    /// Whether a GPU calls a function in the loop, or behind it before another turn of a loop around it.
    fn calls(&self, loops: &Loops, id: LoopId) -> bool {
        let mut next: Vec<NodeId> = loops.members(id).to_vec();
        let mut seen: FxHashSet<NodeId> = next.iter().copied().collect();
        while let Some(node) = next.pop() {
            let segments = self.of_place.get(node.index()).into_iter().flatten();
            if segments.flat_map(|id| self.segments.listing(*id).iter().flatten()).any(Instruction::calls_on_gpu) {
                return true;
            }
            let around = || std::iter::successors(loops.innermost(node), |&id| loops.parent(id));
            let goes_back = |to: &NodeId| around().any(|id| loops.header(id) == *to);
            let onward = self.graph.successors(node).iter().filter(|to| !goes_back(to));
            next.extend(onward.copied().filter(|to| seen.insert(*to)));
        }
        false
    }

    /// Whether a branch out of the loop hangs on an atomic operation in it.
    fn yields(&self, loops: &Loops, id: LoopId) -> bool {
        let members = loops.members(id);
        let mut before: FxHashMap<NodeId, Hanging> = FxHashMap::default();
        let mut next: Vec<NodeId> = members.to_vec();
        while let Some(node) = next.pop() {
            for segment in self.of_place.get(node.index()).into_iter().flatten() {
                let mut now = before.get(&node).cloned().unwrap_or_default();
                for instruction in self.segments.listing(*segment).iter().flatten() {
                    let is_exit = instruction.kind() == Kind::Branch
                        && self.graph.successors(node).iter().any(|to| !loops.contains(id, *to));
                    if is_exit && instruction.flags_read() & now.registers != 0 {
                        return true;
                    }
                    now.pass(instruction);
                }
                for to in self.graph.successors(node).iter().filter(|to| loops.contains(id, **to)) {
                    if before.entry(*to).or_default().join(&now) && !next.contains(to) {
                        next.push(*to);
                    }
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::control_flow;

    /// Whether the loop of a program has lanes yield: its instructions from 0x10 on, in blocks that end where control
    /// may go elsewhere; and the blocks in the order in which a lane runs them.
    fn yields(blocks: &[&[(&[u8], Kind)]], runs: &[usize]) -> bool {
        control_flow(blocks, runs).0.yields().is_some_and(|of| of.yields.contains(&true))
    }

    /// Where lanes meet that have yielded.
    fn meets(blocks: &[&[(&[u8], Kind)]], runs: &[usize]) -> Vec<u64> {
        control_flow(blocks, runs).0.meetings().iter().map(|(at, _)| at.0).collect()
    }

    const P: Kind = Kind::Plain;
    const B: Kind = Kind::Branch;
    const END: &[(&[u8], Kind)] = &[(&[0xC3], Kind::Return)];
    const XADD: (&[u8], Kind) = (&[0xF0, 0x0F, 0xC1, 0x07], P); // lock xadd [rdi], eax
    const ADD: (&[u8], Kind) = (&[0xF0, 0x01, 0x07], P); // lock add [rdi], eax
    const CMPXCHG: (&[u8], Kind) = (&[0xF0, 0x0F, 0xB1, 0x37], P); // lock cmpxchg [rdi], esi
    const CMP_EAX: (&[u8], Kind) = (&[0x83, 0xF8, 0xFF], P); // cmp eax, -1
    const BACK: (&[u8], Kind) = (&[0x75, 0x00], B); // jne, wherever

    #[test]
    fn a_loop_until_a_compare_and_swap_succeeds_yields() {
        assert!(yields(&[&[CMPXCHG, BACK], END], &[0, 0, 1]), "by its flags");
        assert!(yields(&[&[CMPXCHG, CMP_EAX, BACK], END], &[0, 0, 1]), "by what was there");
        assert!(!yields(&[&[CMPXCHG, BACK], END], &[0, 1]), "no loop");
    }

    #[test]
    fn a_loop_whose_exit_does_not_hang_on_the_atomic_does_not_yield() {
        let count: (&[u8], Kind) = (&[0xFF, 0xC9], P); // dec ecx
        assert!(!yields(&[&[ADD, count, BACK], END], &[0, 0, 1]));
        let overwritten: (&[u8], Kind) = (&[0x31, 0xC0], P); // xor eax, eax
        assert!(!yields(&[&[XADD, overwritten, CMP_EAX, BACK], END], &[0, 0, 1]));
    }

    #[test]
    fn lanes_meet_at_the_header_of_an_inner_loop_with_an_atomic_where_a_function_is_called_in_it_or_behind_it() {
        let count: (&[u8], Kind) = (&[0xFF, 0xC9], P); // dec ecx
        let outer: (&[u8], Kind) = (&[0x75, 0xF0], B); // jne, to the first block
        let root: (&[u8], Kind) = (&[0xF2, 0x0F, 0x51, 0xC0], P); // sqrtsd xmm0, xmm0
        let runs = [0, 1, 1, 2, 0, 1, 2, 3];
        let of = |first: &[_], inner: &[_], last: &[_]| meets(&[first, inner, last, END], &runs);
        const NONE: [u64; 0] = [];
        assert_eq!(of(&[count], &[ADD, root, count, BACK], &[outer]), [0x12]);
        assert_eq!(of(&[count], &[ADD, count, BACK], &[root, outer]), [0x12], "behind it");
        assert_eq!(of(&[root], &[ADD, count, BACK], &[outer]), NONE, "in the next turn of the outer loop");
        assert_eq!(of(&[count], &[ADD, count, BACK], &[outer]), NONE, "nowhere");
        assert_eq!(of(&[count], &[root, BACK], &[ADD, outer]), NONE, "the atomic is the outer loop's own");
        assert_eq!(of(&[count], &[CMPXCHG, root, BACK], &[outer]), NONE, "the exit hangs on it");
        assert_eq!(meets(&[&[ADD, root, count, BACK], END], &[0, 0, 1]), NONE, "it is in no other loop");
    }

    #[test]
    fn what_was_found_is_followed_through_a_slot_of_the_frame_and_to_what_it_is_the_address_of() {
        let store: (&[u8], Kind) = (&[0x89, 0x44, 0x24, 0x08], P); // mov [rsp+8], eax
        let load: (&[u8], Kind) = (&[0x8B, 0x44, 0x24, 0x08], P); // mov eax, [rsp+8]
        let clear: (&[u8], Kind) = (&[0x31, 0xC0], P);
        assert!(yields(&[&[XADD, store, clear, load, CMP_EAX, BACK], END], &[0, 0, 1]));
        assert!(!yields(&[&[XADD, store, clear, CMP_EAX, BACK], END], &[0, 0, 1]));
        let through: (&[u8], Kind) = (&[0x8B, 0x04, 0x82], P); // mov eax, [rdx+rax*4]
        assert!(yields(&[&[XADD, through, CMP_EAX, BACK], END], &[0, 0, 1]));
    }

    #[test]
    fn a_loop_with_two_exits_behind_a_first_turn_that_was_peeled_yields() {
        // htable of gcc -O2: je out; cmp edi, eax; jne back.
        let out: (&[u8], Kind) = (&[0x74, 0x04], B);
        let compare: (&[u8], Kind) = (&[0x39, 0xC7], P);
        let jump: (&[u8], Kind) = (&[0x75, 0xF3], B);
        let first: &[(&[u8], Kind)] = &[CMPXCHG, CMP_EAX, out];
        assert!(yields(&[first, &[CMPXCHG, CMP_EAX, out], &[compare, jump], END], &[0, 1, 2, 1, 2, 1, 3]));
    }
}
