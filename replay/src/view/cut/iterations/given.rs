//! Which loops share out the iterations that a runtime gave their thread: those whose end hangs on what it gave.
//!
//! Followed are values that come from the thread's number in its team (`omp_get_thread_num`), from the number of its
//! threads, and from the bounds that a call of the runtime leaves in the frame (`__kmpc_for_static_init`,
//! `GOMP_loop_…`, `__kmpc_dispatch_next`), through registers and slots of the stack of one function, over all ways
//! through it. What is read from other memory is none of them: a row's length, a linked list's next.
//!
//! Example: gcc's `schedule(static)` compares `i` with `number * share + share`, which no iteration changes.

use std::collections::BTreeSet;

use flowgraph::{LoopId, NodeId, reached};
use heuristics::SegmentTable;
use machine::{Condition, Instruction, Operand, Operation, Operator, Register, Step};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc};

use super::branches::{Rungs, Test, Tests};
use super::loops::{LoopsOf, segment_of_place};
use super::values::{ANSWER, CONSTANT, COUNT, DISTANCE, MIXED, NUMBER, REST, SHARE, STEPPED, State, power_of_rest};

/// Loops whose end hangs on what a runtime gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// Their turns are iterations.
    pub loops: Vec<LoopId>,
    /// Their turns are chunks of iterations: `schedule(static, n)`.
    pub of_chunks: Vec<LoopId>,
    /// Those of `loops` whose turns are dealt to threads one by one: `schedule(static, 1)`.
    pub cyclic: Vec<LoopId>,
    /// Those of `cyclic` no test of which compares the thread's number as it is: a turn may be a chunk, as where a
    /// compiler makes one call of memset of it.
    pub by_chunks: Vec<LoopId>,
    /// Those of `loops` whose end is only a part of what a thread was given, as where a compiler vectorises or unrolls:
    /// a turn may be several iterations.
    pub in_parts: Vec<LoopId>,
    /// Those of `loops` behind which a test asks for a further iteration, and no lane had one: a turn may be a part of
    /// an iteration.
    pub inner: Vec<LoopId>,
    /// Those of `loops` that end so far behind a number, and do not themselves know how far they are: blocks of
    /// elements, it may be, which an outer loop goes through.
    ahead: FxHashMap<LoopId, i64>,
    /// Loops whose end hangs on what a runtime gave, and in whose turns threads wait for each other: no turn is a lane.
    pub with_barriers: Vec<LoopId>,
    /// Functions that ask whether their thread has any iteration, and have no such loop.
    pub lost: Vec<Pc>,
    /// Functions in which iterations stand one behind the other, each with its test, beside such loops: in no loop.
    pub in_rows: Vec<Pc>,
    /// Where a thread takes how many iterations it has modulo a power of two, and that: so many may be a turn of a loop
    /// behind.
    pub modulo: Vec<(NodeId, i64)>,
    /// Branches that ask for the rest of that.
    rests: Vec<NodeId>,
    /// Their functions.
    pub asking_for_rest: Vec<Option<Pc>>,
    /// The branches that compare what a runtime gave.
    pub tests: Tests,
    /// Nodes with a test of an iteration behind the first, which no lane failed, in the middle.
    rungs: BTreeSet<NodeId>,
    /// The branches that ask whether the runtime has given a chunk.
    pub answers: BTreeSet<NodeId>,
    /// Where memory is read at an address that hangs on the number of the thread, or of an iteration.
    pub looks: BTreeSet<NodeId>,
}

/// How many turns compilers make one.
const UNROLLED: [i64; 3] = [2, 4, 8];

/// The two values that a test compares by which a loop ends: see [`State`].
#[derive(Clone, Copy, Debug)]
struct End {
    compared: [u16; 2],
    distances: [Option<i64>; 2],
    times: [Option<i64>; 2],
}

impl End {
    /// Whether the loop, which writes these registers, counts from what no runtime gave to the thread's number, or from
    /// there to the number of threads: each thread goes through those of others, as where it sums up what they have
    /// counted.
    fn counts_threads(self, test: Instruction, written: u128, is_unrolled: bool) -> bool {
        let is_counted = |index| test.register(index).is_some_and(|part| written & part.register.bit() != 0);
        [(0, 1), (1, 0)].into_iter().any(|(end, counter)| {
            // Or the number of threads but for that.
            let is_number = |index: usize| {
                self.compared[index] & (NUMBER | SHARE | DISTANCE) == NUMBER && self.times[index].is_some()
            };
            let is_up_to = is_number(end) && self.compared[counter] == 0;
            let is_from = is_unrolled && is_number(counter) && self.compared[end] == COUNT;
            (is_up_to || is_from) && is_counted(counter) && !is_counted(end)
        })
    }
}

/// What is known of a loop's test and its turns.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Its end hangs on the thread's number, or on its share.
    ends_by_number: bool,
    /// So do both values that its test compares.
    by_both: bool,
    /// And neither is a constant.
    by_two: bool,
    /// A test of it compares no value that is a part of another.
    by_whole: bool,
    /// A turn starts threads: it is a team's share.
    forks: bool,
    /// The threads of the team wait for each other in a turn.
    meets: bool,
    /// A turn adds what hangs on the number of threads.
    steps_by_count: bool,
    /// A turn adds to a thread's number what that counts for, or takes it away: each thread goes through those of the
    /// next ones, or of those before it.
    runs_on: bool,
    /// So it would but for a compiler, which makes several turns one.
    is_unrolled: bool,
}

impl Given {
    /// The outermost such loops of the functions that begin at these addresses, and of `pieces`, which are given a part
    /// of a taskloop.
    /// `alone` says whether a function's forks are of one thread only.
    /// `called` gives the name of the function that a call is of, `function_of` the one that holds an address.
    pub fn of(
        loops: &LoopsOf,
        (functions, pieces, alone): (&[Pc], &[Pc], &dyn Fn(Pc) -> bool),
        segments: &SegmentTable,
        called: &dyn Fn(Instruction) -> Option<String>,
        function_of: &dyn Fn(Pc) -> Option<Pc>,
    ) -> Given {
        let graph = loops.graph();
        let of_place = segment_of_place(segments);
        let mut facts: FxHashMap<LoopId, Facts> = FxHashMap::default();
        let mut tests: FxHashMap<NodeId, Test> = FxHashMap::default();
        let (mut forking, mut barriers) = (Vec::new(), BTreeSet::new());
        let mut states: Vec<Option<State>> = vec![None; graph.node_count()];
        let mut ends: FxHashMap<(LoopId, NodeId), End> = FxHashMap::default();
        let pc_of = |node: NodeId| Some(segments[*of_place.get(node.index())?].last().pc);
        let mut left = Vec::new();
        let (mut modulo, mut rests, mut looks) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut answers, mut rungs) = (BTreeSet::new(), BTreeSet::new());
        for function in functions.iter().chain(pieces) {
            let Some(node) = loops.node_at(*function) else { continue };
            let mut state = State::default();
            state.registers[Register::SP.index()].slot = Some((0, 0));
            if pieces.contains(function) {
                state.take_piece();
            }
            states[node.index()] = Some(state);
            left.push(node);
        }
        while let Some(node) = left.pop() {
            let Some(mut state) = states[node.index()].clone() else { continue };
            // A node that is no place has no code.
            let Some(segment) = of_place.get(node.index()) else { continue };
            let code = segments.listing(*segment);
            for instruction in code.iter().flatten() {
                if steps_by_count(&state, instruction) {
                    for id in loops.around(node).take(1) {
                        facts.entry(id).or_default().steps_by_count = true;
                    }
                }
                if let Some(threads) = threads_on(&state, instruction) {
                    for id in loops.around(node).take(1) {
                        let facts = facts.entry(id).or_default();
                        facts.runs_on |= threads.abs() == 1;
                        facts.is_unrolled |= UNROLLED.contains(&threads);
                    }
                }
                let counts = state.value(instruction.operand(0), instruction).from;
                modulo.extend(power_of_rest(counts, instruction).map(|power| (node, power)));
                if state.looks_by_number(instruction) {
                    looks.insert(node);
                }
                let name = instruction.kind().is_call().then(|| called(instruction)).flatten();
                if name.as_deref().is_some_and(is_barrier) {
                    barriers.insert(node);
                    loops.around(node).for_each(|id| facts.entry(id).or_default().meets = true);
                }
                if name.as_deref().is_some_and(is_fork) {
                    forking.push(function_of(instruction.pc()));
                    let is_alone = function_of(instruction.pc()).is_some_and(alone);
                    let around = loops.around(node).filter(|_| !is_alone);
                    around.for_each(|id| facts.entry(id).or_default().forks = true);
                }
                let is_last = code.last().is_some_and(|last| last.pc() == instruction.pc());
                if instruction.kind() == Kind::Branch && !is_last && (state.compares_step() || state.compares_share()) {
                    rungs.insert(node);
                }
                state.run(instruction, name.as_deref());
            }
            for next in graph.successors(node) {
                let known = &mut states[next.index()];
                let changed = match known {
                    Some(known) => known.meet(&state),
                    None => {
                        *known = Some(state.clone());
                        true
                    }
                };
                if changed {
                    left.push(*next);
                }
            }
            let is_branch = code.last().is_some_and(|last| last.kind() == Kind::Branch);
            let compared = state.compared[0] | state.compared[1];
            if is_branch && compared & REST != 0 {
                rests.insert(node);
            }
            if is_branch && compared & ANSWER != 0 {
                answers.insert(node);
            }
            if is_branch && compared & (NUMBER | SHARE) != 0 {
                let test = tests.entry(node).or_default();
                test.is_stepped |= compared & STEPPED != 0;
                test.is_counted |= state.compared.iter().any(|from| from & (NUMBER | COUNT) == NUMBER | COUNT);
                // One thread does more, as at `master`.
                test.is_of_equality |= code.last().is_some_and(is_equality);
                let of_one = compared & (CONSTANT | STEPPED) == CONSTANT && test.is_of_equality;
                let both = state.compared.iter().all(|from| from & (NUMBER | MIXED) == NUMBER);
                test.is_of_bounds |= both && !of_one;
                test.is_of_two |= state.compared.iter().all(|from| from & (NUMBER | CONSTANT) == NUMBER);
                test.is_of_share |= state.compares_share();
                test.is_one_way = graph.successors(node).len() < 2;
                test.ahead = match state.distances {
                    [Some(one), Some(other)] if one.abs_diff(other) > 1 => Some(one.max(other)),
                    _ => None,
                };
            }
            for id in loops.around(node).filter(|_| is_branch) {
                let leaves = graph.successors(node).iter().any(|next| !loops.contains(id, *next));
                if leaves || code.last().is_some_and(|last| would_end(loops, id, node, last, &pc_of)) {
                    let facts = facts.entry(id).or_default();
                    facts.ends_by_number |= compared & (NUMBER | SHARE) != 0;
                    facts.by_whole |= compared & (NUMBER | SHARE) != 0 && compared & MIXED == 0;
                    // It is known when all ways have been followed.
                    if compared & (NUMBER | SHARE) != 0 {
                        let State { compared, distances, times, .. } = state;
                        ends.insert((id, node), End { compared, distances, times });
                    }
                    facts.by_two |= state.compared.iter().all(|from| from & (NUMBER | CONSTANT) == NUMBER);
                    facts.by_both |= state.compared.iter().all(|from| from & (NUMBER | MIXED) == NUMBER);
                }
            }
        }
        let of = |id: LoopId| facts.get(&id).copied().unwrap_or_default();
        let of_loop = |id: LoopId| ends.iter().filter(move |((of, _), _)| *of == id).map(|((_, at), end)| (*at, *end));
        let counts_threads = |id: LoopId| {
            let listing = |node: &NodeId| of_place.get(node.index()).map(|segment| segments.listing(*segment));
            let all = loops.members(id).iter().filter_map(listing).flat_map(|code| code.iter().flatten());
            let written = all.fold(0, |written, one| written | one.writes());
            let compares = |one: &Instruction| one.operation() == Operation::Compare;
            let test = |node: NodeId| listing(&node)?.iter().flatten().rfind(compares);
            let is_it = |test, end: End| end.counts_threads(test, written, of(id).is_unrolled);
            of_loop(id).all(|(node, end)| test(node).is_some_and(|test| is_it(test, end)))
        };
        let mut given = Given { tests: Tests(tests), looks, answers, rungs, ..Given::default() };
        let is_shared = |id: LoopId| {
            let Facts { ends_by_number, by_two, steps_by_count, runs_on, forks, meets, .. } = of(id);
            ends_by_number && !forks && !meets && (!runs_on || by_two || steps_by_count) && !counts_threads(id)
        };
        let is_number = |end: End| (0..2).any(|i| end.compared[i] & NUMBER != 0 && end.times[i] == Some(1));
        let waits = |id: LoopId| of(id).meets && of(id).ends_by_number;
        given.with_barriers = loops.ids().filter(|id| waits(*id)).collect();
        let is_alone = |id: &LoopId| !loops.outside(*id).any(waits);
        // Where the loop over chunks and the one in it begin at one place, a loop inside is an iteration's own.
        let is_both = |id: LoopId| {
            let head = loops.header(id);
            let is_test =
                |node: &NodeId| given.tests.of(*node).is_some_and(|test| test.is_stepped && test.is_of_bounds);
            let turns = |side: &NodeId| *side == head || graph.successors(*side) == [head];
            let own = || loops.members(id).iter().filter(|node| loops.around(**node).next() == Some(id));
            own().any(|node| given.answers.contains(node))
                && own().any(|node| is_test(node) && graph.successors(*node).iter().any(turns))
        };
        let both: Vec<LoopId> = loops.ids().filter(|id| is_both(*id)).collect();
        let is_outside = |id: &LoopId| !loops.outside(*id).any(|outer| both.contains(&outer));
        for id in loops.ids().filter(|id| is_shared(*id)).filter(is_alone).filter(is_outside) {
            let outer: Vec<LoopId> = loops.outside(id).filter(|outer| is_shared(*outer)).collect();
            // A loop whose own number is the thread's has chunks of one iteration: what is in it is that iteration's.
            let deals = |outer: LoopId, inner: LoopId| {
                of(outer).steps_by_count && of(inner).by_both && !of_loop(outer).any(|(_, end)| is_number(end))
            };
            match outer[..] {
                [] => given.loops.push(id),
                [outer] if deals(outer, id) => {
                    given.of_chunks.push(outer);
                    given.loops.push(id);
                }
                _ => {}
            }
        }
        let distances = |id: LoopId| of_loop(id).map(|(_, end)| end.distances);
        given.ahead = given.loops.iter().filter_map(|id| Some((*id, ahead(distances(*id))?))).collect();
        given.modulo = modulo.into_iter().collect();
        given.rests = rests.into_iter().collect();
        // What is left of a thread's share it does before it waits for the others.
        let behind = |node: NodeId| if barriers.contains(&node) { &[] } else { graph.successors(node) };
        let is_rest = |id: LoopId| {
            let in_front = given.rests.iter().copied().filter(|node| !loops.contains(id, *node));
            reached(graph, in_front, |node| behind(node).iter().copied())[loops.header(id).index()]
        };
        let in_parts = |id: &LoopId| !of(*id).by_whole || !given.rests.is_empty() && is_rest(*id);
        given.in_parts = given.loops.iter().copied().filter(in_parts).collect();
        let Given { loops: shared, tests, rungs, .. } = &given;
        let rungs = Rungs { graph, loops: loops.plain(), given: shared, tests, inner: rungs, barriers: &barriers };
        let rows = rungs.alone(|node| states[node.index()].is_some());
        let inner = shared.iter().copied().filter(|id| rungs.may_be_inside(*id)).collect();
        given.inner = inner;
        given.in_rows = rows.iter().filter_map(|node| function_of(segments[of_place[node.index()]].start())).collect();
        given.in_rows.dedup();
        let places = loops;
        let Given { loops, of_chunks, cyclic, by_chunks, .. } = &mut given;
        loops.retain(|id| !of_chunks.contains(id));
        cyclic.extend(loops.iter().filter(|id| of(**id).steps_by_count));
        by_chunks.extend(cyclic.iter().filter(|id| !of_loop(**id).any(|(_, end)| is_number(end))));
        let function = |node: NodeId| function_of(segments[of_place[node.index()]].start());
        given.asking_for_rest = given.rests.iter().map(|node| function(*node)).collect();
        // A team's share of a loop is dealt to its threads in another function.
        let own = given.loops.iter().chain(&given.with_barriers).map(|id| function(places.header(*id)));
        let with_loops: Vec<Option<Pc>> = own.chain(forking).collect();
        let asking = given
            .tests
            .0
            .iter()
            .filter(|(_, test)| test.is_of_bounds || test.is_counted)
            .map(|(node, _)| function(*node));
        let asking = asking.chain(pieces.iter().map(|piece| Some(*piece)));
        given.lost = asking.filter(|function| !with_loops.contains(function)).flatten().collect();
        given.lost.sort_unstable();
        given.lost.dedup();
        given
    }
}

/// Whether a branch, of which only the side that stays in the loop was taken, is the test by which a loop ends that no
/// lane left: the recording ended before. `last_of` gives the last instruction of a node.
fn would_end(
    loops: &LoopsOf,
    id: LoopId,
    node: NodeId,
    branch: Instruction,
    last_of: &dyn Fn(NodeId) -> Option<Pc>,
) -> bool {
    let (graph, head) = (loops.graph(), loops.header(id));
    let [next] = graph.successors(node) else { return false };
    if *next != head && node != head {
        return false;
    }
    let members = || loops.members(id).iter();
    let lies_behind = |target| members().all(|node| last_of(*node).is_some_and(|last| last < target));
    let ends_by_head = || branch.target().is_some_and(|to| loops.node_at(to) != Some(*next) && lies_behind(to));
    let stays = |from: &NodeId| graph.successors(*from).iter().all(|to| loops.contains(id, *to));
    (*next == head || ends_by_head()) && members().all(stays)
}

impl Given {
    /// Of loops that no lane turned a thread's share may be taken modulo a power of two in what seems to be their turn,
    /// or behind it.
    pub(super) fn look_inside(
        &mut self,
        loops: &LoopsOf,
        ways_back: &[(NodeId, NodeId)],
        function_of: &dyn Fn(Pc) -> Option<Pc>,
    ) {
        let is_new = |id: &LoopId| ways_back.iter().any(|(_, to)| loops.header(*id) == *to);
        let takes = |id: &LoopId| self.asking_for_rest.contains(&function_of(loops.first(*id)));
        self.in_parts.extend(self.loops.iter().copied().filter(|id| is_new(id) && takes(id)));
    }

    /// Ways back that no lane took, in functions that have no loop, or only such as seem to be in one: from the test
    /// behind an iteration, of which only the side is known that ends the loop, to where the thread came to that
    /// iteration. At most one in each function.
    ///
    /// Example: of `for (b = first; b < last; b += 4096) for (e = b; e < min(b + 4096, n); e++)` a thread that was
    /// given one block never goes round the outer loop, and the inner one ends 4096 behind the thread's number.
    pub(super) fn ways_back(&self, loops: &LoopsOf, function_of: &dyn Fn(Pc) -> Option<Pc>) -> Vec<(NodeId, NodeId)> {
        let graph = loops.graph();
        let mut all = Vec::new();
        let function = |id: &LoopId| function_of(loops.first(*id));
        let near: Vec<Option<Pc>> = self.loops.iter().filter(|id| !self.ahead.contains_key(id)).map(function).collect();
        let ahead = self.ahead.keys().map(function).filter(|function| !near.contains(function)).flatten();
        let ahead: BTreeSet<Pc> = ahead.collect();
        let is_inside = |node: NodeId| loops.around(node).any(|id| self.ahead.contains_key(&id));
        for function in self.lost.iter().chain(&ahead) {
            let Some(entry) = loops.node_at(*function) else { continue };
            let own = reached(graph, [entry], |node| graph.successors(node).iter().copied());
            let has_ahead = ahead.contains(function);
            let is_behind = |node: &NodeId| {
                let is_it = |test: Test| test.is_one_way && (test.is_stepped && test.is_of_bounds || test.is_counted);
                // It compares the end of the block with that of all.
                let ends_block = |test: Test| {
                    self.ahead
                        .iter()
                        .any(|(id, by)| test.ahead == Some(*by) && function_of(loops.first(*id)) == Some(*function))
                };
                let is_it = |test: Test| is_it(test) && (!has_ahead || ends_block(test));
                own[node.index()] && !is_inside(*node) && self.tests.of(*node).is_some_and(is_it)
            };
            let mut tests = graph.nodes().filter(is_behind);
            let (Some(test), None) = (tests.next(), tests.next()) else { continue };
            // Whether there is any iteration, not any element of a block.
            let has_plain = graph.nodes().filter(|node| own[node.index()]).any(|node| {
                self.tests.of(node).is_some_and(|test| test.is_of_bounds && test.is_of_two && !test.is_stepped)
            });
            let is_dealt = self.tests.of(test).is_some_and(|test| test.is_counted);
            let is_first = |test: Test| {
                test.is_of_bounds && !(test.is_stepped && (has_ahead || has_plain))
                    || is_dealt && !test.is_stepped && !test.is_counted
            };
            // The tests of loops in an iteration ask for nothing of the thread's.
            let is_own = |from: NodeId| loops.around(from).all(|id| loops.contains(id, test)) && !is_inside(from);
            let asks = |from: &NodeId| is_own(*from) && self.tests.of(*from).is_some_and(is_first);
            let begins = |node: NodeId| {
                node == entry || graph.predecessors(node).iter().any(|from| asks(from) || self.answers.contains(from))
            };
            let before = |node| if begins(node) { &[] } else { graph.predecessors(node) }.iter().copied();
            let came = reached(graph, [test], before);
            let mut first = graph.nodes().filter(|node| came[node.index()] && begins(*node));
            // Iterations one behind the other, each with its own test: a compiler has made no loop of them.
            let is_rung = |node: NodeId| {
                let is_next = |other: Test| !has_ahead && node != test && other.is_of_next();
                came[node.index()] && (self.rungs.contains(&node) || self.tests.of(node).is_some_and(is_next))
            };
            if graph.nodes().any(is_rung) {
                continue;
            }
            if let (Some(begin), None) = (first.next(), first.next()) {
                all.push((test, begin));
            }
        }
        all
    }
}

/// How far behind a number a loop ends, by what the two values of each of its tests are from numbers.
fn ahead(ends: impl Iterator<Item = [Option<i64>; 2]>) -> Option<i64> {
    let mut all = ends.map(|distances| match distances {
        [Some(by), None] | [None, Some(by)] if by > 1 => Some(by),
        _ => None,
    });
    let first = all.next()??;
    all.all(|by| by == Some(first)).then_some(first)
}

/// Whether the function of this name starts a team of threads.
fn is_fork(name: &str) -> bool {
    name.starts_with("__kmpc_fork_call") || name.starts_with("GOMP_parallel")
}

/// Whether the function of this name has all threads of a team wait for each other.
fn is_barrier(name: &str) -> bool {
    name.starts_with("GOMP_barrier") || name.starts_with("__kmpc_barrier")
}

/// Whether a branch asks whether two values are the same.
fn is_equality(branch: Instruction) -> bool {
    matches!(branch.condition(), Condition::Equal | Condition::NotEqual)
}

/// So many threads further on an instruction goes that adds a constant to the thread's number, multiplied as it is: by
/// what it adds that thread's is more.
fn threads_on(state: &State, instruction: Instruction) -> Option<i64> {
    let Step::Update { operator: Operator::Add, acc, by: Operand::Constant(by), to, .. } = instruction.step() else {
        return None;
    };
    let value = state.value(acc, instruction);
    let times = value.times.filter(|times| acc == to && *times != 0 && value.from & (NUMBER | SHARE) == NUMBER)?;
    (by.checked_rem(times) == Some(0)).then(|| by / times)
}

/// Whether an instruction adds what hangs on the number of threads, and not on a thread's own, to a place.
fn steps_by_count(state: &State, instruction: Instruction) -> bool {
    match instruction.step() {
        Step::Update { operator: Operator::Add, acc, by, .. } => {
            let (acc, by) = (state.value(acc, instruction).from, state.value(by, instruction).from);
            acc & NUMBER != 0 && by & (NUMBER | COUNT) == COUNT || by & NUMBER != 0 && acc & (NUMBER | COUNT) == COUNT
        }
        _ => false,
    }
}
