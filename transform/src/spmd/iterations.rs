//! Lanes that are iterations: what counts those of the loops that OpenMP shares out to threads.
//!
//! ```text
//! call @__kmpc_for_static_init_4(…, %lower, %upper, …)      ; or __kmpc_dispatch_next_4(…, %lower, %upper, …)
//! %first = load %lower
//! loop: %i = phi [%first, …], [%i + 1, loop]                ; the number of the iteration
//!       %sum = phi [0, …], [%sum + …, loop]                 ; carried from iteration to iteration: unknown
//! ```
//!
//! clang counts the iterations of such a loop from 0, all of it, whatever its variable counts. A thread goes through
//! chunks of them, perhaps by a loop around. What that carries from chunk to chunk differs between the lanes, too, and
//! so does what a loop carries whose turns are several iterations. What is around the call that begins the loop is the
//! same for all of its iterations, or different, as for threads.

use divergence::{Fact, Form};
use flowgraph::{LoopId, Loops};
use rustc_hash::FxHashMap;

use super::options::MARK;
use super::sources::step_of;
use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Opcode, Value};

/// Functions whose argument of this number is where the number of a chunk's first iteration is put.
const GIVE: [(&str, usize); 2] = [("__kmpc_for_static_init_", 4), ("__kmpc_dispatch_next_", 3)];
/// Functions that begin a loop.
const BEGIN: [&str; 2] = ["__kmpc_for_static_init_", "__kmpc_dispatch_init_"];

/// So many conversions and loops are looked through.
const MOST: usize = 8;

/// A function that shares out loops.
struct Shared<'m> {
    flow: Flow<'m>,
    loops: Loops,
    /// Where first iterations' numbers are put, and whether they are unsigned.
    firsts: FxHashMap<Value<'m>, bool>,
    /// The calls that begin a loop.
    begins: Vec<Block<'m>>,
}

/// What is known about values of a function where lanes are iterations: the number of the iteration, and what differs
/// between iterations by the loops around it, or by threads.
pub(super) fn counters(function: Function<'_>) -> FxHashMap<Value<'_>, Fact> {
    let mut found = FxHashMap::default();
    let (mut firsts, mut begins) = (FxHashMap::default(), Vec::new());
    for call in function.blocks().into_iter().flat_map(Block::instructions) {
        let Some(callee) = call.callee() else { continue };
        let name = callee.name();
        if name == "omp_get_thread_num" || callee.assembly().is_some_and(|text| text.contains(MARK)) {
            found.insert(call.as_value(), Fact::Divergent);
        }
        if BEGIN.iter().any(|begin| name.starts_with(begin)) {
            begins.extend(call.block());
        }
        let gives = GIVE.iter().find(|(start, _)| name.starts_with(start));
        if let Some(first) = gives.and_then(|(_, number)| call.arguments().get(*number).copied()) {
            firsts.insert(first, name.ends_with('u'));
        }
    }
    if firsts.is_empty() {
        return found;
    }
    let flow = Flow::of(function);
    let loops = Loops::of(flow.graph());
    let shared = Shared { flow, loops, firsts, begins };
    let counting: FxHashMap<LoopId, Vec<_>> = shared.loops.ids().map(|id| (id, shared.counting(id))).collect();
    let is_iteration = |id: LoopId| counting.get(&id).is_some_and(|counters| !counters.is_empty());
    for id in shared.loops.ids().filter(|id| shared.is_of_chunks(*id)) {
        let mut around = std::iter::successors(shared.loops.parent(id), |id| shared.loops.parent(*id));
        if !around.any(is_iteration) {
            found.extend(shared.phis(id).into_iter().map(|phi| (phi.as_value(), Fact::Divergent)));
            found.extend(counting.get(&id).into_iter().flatten().copied());
        }
    }
    found
}

impl<'m> Shared<'m> {
    /// What counts the iterations that a loop's turns are.
    fn counting(&self, id: LoopId) -> Vec<(Value<'m>, Fact)> {
        let phis = self.phis(id).into_iter().filter(|phi| self.counts_by_one(*phi, id));
        let fact = |unsigned: bool| Fact::of_thread(0, Form::number(1), Form::ZERO).exact(!unsigned, true);
        phis.filter_map(|phi| Some((phi.as_value(), fact(self.first_of(phi, id, MOST)?)))).collect()
    }

    fn phis(&self, id: LoopId) -> Vec<Instruction<'m>> {
        self.flow.block(self.loops.header(id)).phis()
    }

    /// Whether a loop goes through iterations or chunks of one that was begun before it.
    fn is_of_chunks(&self, id: LoopId) -> bool {
        !self.begins.iter().any(|block| self.loops.contains(id, self.flow.node(*block)))
    }

    /// Whether a phi begins, where its loop is entered, with the number of a chunk's first iteration; and whether that
    /// is unsigned.
    fn first_of(&self, phi: Instruction<'m>, id: LoopId, most: usize) -> Option<bool> {
        if !self.is_of_chunks(id) {
            return None;
        }
        let incoming = phi.incoming();
        let mut entered = incoming.iter().filter(|(_, from)| !self.loops.contains(id, self.flow.node(*from)));
        let (value, _) = entered.next().filter(|_| entered.next().is_none())?;
        self.is_first(*value, most)
    }

    fn is_first(&self, value: Value<'m>, most: usize) -> Option<bool> {
        let (by, most) = (value.as_instruction()?, most.checked_sub(1)?);
        match by.opcode() {
            Opcode::LLVMLoad => self.firsts.get(&by.operand(0)).copied(),
            Opcode::LLVMZExt | Opcode::LLVMSExt => self.is_first(by.operand(0), most),
            Opcode::LLVMPHI => {
                let node = self.flow.node(by.block()?);
                let id = self.loops.innermost(node).filter(|id| self.loops.header(*id) == node)?;
                self.first_of(by, id, most)
            }
            _ => None,
        }
    }

    fn counts_by_one(&self, phi: Instruction<'m>, id: LoopId) -> bool {
        let incoming = phi.incoming();
        let mut back = incoming.iter().filter(|(_, from)| self.loops.contains(id, self.flow.node(*from)));
        back.all(|(value, _)| step_of(phi, *value) == Some(1))
    }
}
