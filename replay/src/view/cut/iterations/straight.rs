//! Loops of which a turn has one way through and is several iterations: a compiler unrolled them, or made vectors of
//! their numbers, and left no branch between two iterations. All iterations of such a loop run the same. Each is shown
//! as the loop beside it that runs what is left over, as one of the copies in a turn, or, of a vector, as the turn.
//!
//! How many iterations a turn has is told by what its counters add, and held against what the runtime gave out.
//!
//! Example: `A A' A" A"' t`, where `t` counts and tests, is shown as `A"' t` four times.

use std::collections::{BTreeMap, BTreeSet};

use flowgraph::{LoopId, NodeId, reached};
use heuristics::{SegmentId, SegmentTable};
use machine::{Instruction, Operand, Operation, Operator, Step};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc};

use super::body::{Block, Code, Line};
use super::copies::{Copies, Finder, Part};
use super::loops::segment_of_place;

/// So many iterations has a turn at most.
const MOST: i64 = 256;

/// So many ways to take a turn are tried.
const MOST_TRIED: usize = 8;

/// A turn is so many segments at most: where other blocks begin in it, it is cut.
const MOST_IN_ROW: usize = 64;

/// How many numbers a vector has.
const WIDTHS: [i64; 5] = [2, 4, 8, 16, 32];

/// Adds one copy of each row of segments that is its own loop and several copies of one body, mixed or one after
/// another: the last instruction of each kind, or the last ones, with what counts and tests behind the first of them.
pub(in crate::view) fn add_copies(table: &mut SegmentTable) {
    let mut begins: FxHashMap<Pc, SegmentId> = FxHashMap::default();
    table.iter().for_each(|(id, segment)| _ = begins.entry(segment.start()).or_insert(id));
    let loops = table.iter().filter_map(|(id, segment)| Some((segment.ways?, segment.last().pc, id)));
    let heads: BTreeSet<Pc> =
        loops.flat_map(|(ways, last, _)| ways.into_iter().filter(move |way| *way <= last)).collect();
    let heads = heads.iter().filter_map(|head| begins.get(head));
    let found: Vec<Found> = heads.filter_map(|head| copy_in(table, *head, &begins)).collect();
    for Found { head, lines, copies } in found {
        table.add_copy(head, &lines, copies);
    }
}

/// One of the copies that the loop is which begins with a segment.
struct Found {
    head: SegmentId,
    lines: Vec<(SegmentId, usize)>,
    copies: u32,
}

fn copy_in(table: &SegmentTable, head: SegmentId, begins: &FxHashMap<Pc, SegmentId>) -> Option<Found> {
    let mut row = vec![head];
    let mut last = head;
    while table[last].last().kind == Kind::Plain && row.len() < MOST_IN_ROW {
        last = *begins.get(&table.listing(last).last()?.next_pc())?;
        row.push(last);
    }
    let is_loop = table[last].ways.is_some_and(|ways| ways.contains(&table[head].start()));
    let block = Block::of(table, &row).filter(|block| is_loop && block.is_plain)?;
    let mut by_sign: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    let is_own = |at: &usize| !block.lines[*at].is_step && !block.lines[*at].is_test;
    (0..block.lines.len()).filter(is_own).for_each(|at| by_sign.entry(&block.lines[at].sign).or_default().push(at));
    // What one copy has loaded the next one need not load.
    let is_its = |those: &&Vec<usize>| !block.lines[those[0]].is_move || block.lines[those[0]].works;
    let copies = by_sign.values().filter(is_its).fold(0, |copies, those| greatest_common_divisor(copies, those.len()));
    if copies < 2 {
        return None;
    }
    let mut lines: Vec<usize> =
        by_sign.values().flat_map(|those| &those[those.len() - those.len().div_ceil(copies)..]).copied().collect();
    // Where the whole turn begins no other segment may.
    lines.retain(|at| *at > 0);
    lines.sort_unstable();
    let first = *lines.first()?;
    lines.extend((first..block.lines.len()).filter(|at| !is_own(at)));
    lines.sort_unstable();
    let branch = (last, table[last].len() - 1);
    let lines = lines.into_iter().map(|at| block.lines[at].at).chain([branch]).collect();
    Some(Found { head, lines, copies: copies as u32 })
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// What iterations are shown as.
struct Stands<'a> {
    nodes: Vec<NodeId>,
    block: Block<'a>,
    /// One turn of this row is so many of these, and may be so many iterations.
    of: usize,
    times: i64,
    numbers: Vec<i64>,
}

/// Nodes that run in a row, and their code.
struct Row<'a> {
    nodes: Vec<NodeId>,
    block: Block<'a>,
    /// Whether it is all of a loop that shares out what a runtime gave.
    turns: bool,
}

impl Finder<'_> {
    /// All ways to take a loop's turn, which has one way through, for several iterations. `deals` says in which loops a
    /// runtime deals out chunks.
    pub(super) fn straight(&self, id: LoopId, deals: &dyn Fn(LoopId) -> bool) -> Vec<Copies> {
        let of_place = segment_of_place(self.segments);
        let code = Code::new(self.segments, self.loops, &of_place);
        let head = self.loops.header(id);
        let Some(own) = self.row(head, &of_place).filter(|own| own.turns && own.block.branch.is_some()) else {
            return Vec::new();
        };
        let near = self.of_one_chunk(id, &own.nodes, deals, &of_place);
        let acts = acts(&own.block);
        let is_kin = |row: &Row| {
            let looks = || row.nodes.iter().any(|node| self.given.looks.contains(node));
            row.nodes[0] != head && row.block.is_plain && (row.turns || looks()) && self::acts(&row.block) == acts
        };
        let begins = self.loops.graph().nodes().filter(|node| near[node.index()] && self.begins_row(*node));
        let mut rows: Vec<Row> = begins.filter_map(|node| self.row(node, &of_place)).filter(is_kin).collect();
        let nodes = own.nodes.clone();
        rows.push(own);
        // Of another loop it is not known what its turns are to this one's.
        let merged = self.given.loops.iter().copied().filter(|other| *other != id);
        let merged: Vec<LoopId> = merged.filter(|other| near[self.loops.header(*other).index()]).collect();
        let is_row = |other: &LoopId| rows.iter().any(|row| row.turns && row.nodes[0] == self.loops.header(*other));
        if !merged.iter().all(is_row) {
            return Vec::new();
        }
        let of_number = |(stands, number): (&Stands, i64)| {
            let mut copies = Copies { begin: head, merged: merged.clone(), ..Copies::default() };
            // Several copies are one iteration where its own body is several alike parts.
            let each = (stands.times / number).max(1);
            for row in &rows {
                let turns = if row.turns { turns_of(&row.block, &rows[stands.of].block, number)? } else { 1 };
                // Each segment has only its own addresses.
                if row.nodes.len() > 1 && row.block.lines.iter().any(|line| line.addresses.1 > 0) {
                    return None;
                }
                copies.number = copies.number.max(turns as usize);
                copies.shown.extend(row.nodes[1..].iter().map(|node| (*node, Vec::new())));
                copies.shown.insert(row.nodes[0], parts(stands, &row.block, (turns, each), &of_place)?);
            }
            let all: Vec<NodeId> = copies.shown.keys().copied().collect();
            let [behind, before] = self.near(id, &all);
            let between = self.loops.graph().nodes().filter(|node| behind[node.index()] && before[node.index()]);
            copies.beside = between.chain(all.iter().copied()).filter(|node| !nodes.contains(node)).collect();
            copies.are_of_vectors = is_of_vectors(&stands.block);
            copies.is_vectorised = rows.iter().any(|row| is_of_vectors(&row.block));
            copies.is_proven = !copies.is_vectorised && self.is_proven(id, (head, true), &code, &copies);
            (copies.number > 1).then_some(copies)
        };
        let all = self.stands(&rows, &of_place);
        let all = all.iter().flat_map(|stands| stands.numbers.iter().map(move |number| (stands, *number)));
        all.filter_map(of_number).take(MOST_TRIED).collect()
    }

    /// Whether a row begins there: it is not only come to from one node, or that leads elsewhere, too.
    fn begins_row(&self, node: NodeId) -> bool {
        let graph = self.loops.graph();
        !matches!(graph.predecessors(node), [before] if graph.successors(*before) == [node])
    }

    /// What runs in a row from there: of a loop with one way through, all of it.
    fn row<'a>(&'a self, head: NodeId, of_place: &[SegmentId]) -> Option<Row<'a>> {
        let graph = self.loops.graph();
        let mut nodes = vec![head];
        while let [next] = graph.successors(nodes[nodes.len() - 1])
            && matches!(graph.predecessors(*next), [_])
            && nodes.len() < MOST_IN_ROW
        {
            nodes.push(*next);
        }
        let is_all = |id: &LoopId| self.loops.header(*id) == head && self.loops.members(*id).len() == nodes.len();
        let turns = self.given.loops.iter().any(|id| is_all(id) && nodes.iter().all(|n| self.loops.contains(*id, *n)));
        let row: Option<Vec<SegmentId>> = nodes.iter().map(|node| of_place.get(node.index()).copied()).collect();
        Some(Row { block: Block::of(self.segments, &row?)?, nodes, turns })
    }

    /// What may be shown: a loop that works on single numbers; one of the copies in such a loop's turn; or what works
    /// on vectors, where nothing else ran.
    fn stands<'a>(&'a self, rows: &[Row<'a>], of_place: &[SegmentId]) -> Vec<Stands<'a>> {
        let whole = |of: usize, numbers: Vec<i64>| {
            let nodes = rows[of].nodes.clone();
            let segments: Vec<SegmentId> = nodes.iter().map(|node| of_place[node.index()]).collect();
            Some(Stands { nodes, block: Block::of(self.segments, &segments)?, of, times: 1, numbers })
        };
        let copy = |of: usize| {
            let (copy, times) = self.segments.copy_in(of_place[rows[of].nodes[0].index()])?;
            let (nodes, block) = (vec![NodeId(self.segments[copy].place.0)], Block::of(self.segments, &[copy])?);
            let times = i64::from(times);
            Some(Stands { nodes, block, of, times, numbers: Vec::new() })
        };
        let mut single: Vec<usize> =
            (0..rows.len()).filter(|of| rows[*of].turns && !is_of_vectors(&rows[*of].block)).collect();
        single.sort_by_key(|of| rows[*of].block.lines.len());
        let parts_of = |times: i64| (2..=times).rev().filter(|number| times % number == 0).collect::<Vec<i64>>();
        let copies = single.iter().filter_map(|of| copy(*of)).map(|one| Stands { numbers: parts_of(one.times), ..one });
        let mut all: Vec<Stands> =
            single.first().and_then(|of| whole(*of, vec![1])).into_iter().chain(copies).collect();
        // Who chooses by masks may have had a branch.
        let chooses = |line: &Line| line.instruction.is_of_vectors() && chooses(&line.instruction.mnemonic());
        let chooses = rows.iter().flat_map(|row| &row.block.lines).any(chooses);
        if single.is_empty() && !chooses {
            let vectors = (0..rows.len()).filter(|of| rows[*of].turns).max_by_key(|of| rows[*of].block.lines.len());
            let of_width =
                |times: i64| WIDTHS.iter().map(|width| width * times).chain(parts_of(times)).collect::<Vec<i64>>();
            let of_copies = vectors.and_then(copy).map(|one| Stands { numbers: of_width(one.times), ..one });
            all.extend(of_copies.into_iter().chain(vectors.and_then(|of| whole(of, of_width(1)))));
        }
        for stands in &mut all {
            let steps = steps(&rows[stands.of].block);
            stands.numbers.retain(|number| *number <= MOST && steps.iter().any(|step| step % number == 0));
        }
        all
    }

    /// The nodes from which the thread comes to a loop without a call in between, or to which it goes on so; and those
    /// in which it runs other chunks.
    fn of_one_chunk(
        &self,
        id: LoopId,
        from: &[NodeId],
        deals: &dyn Fn(LoopId) -> bool,
        of_place: &[SegmentId],
    ) -> Vec<bool> {
        let graph = self.loops.graph();
        let calls = |node: NodeId| {
            of_place.get(node.index()).is_none_or(|segment| self.segments[*segment].last().kind.is_call())
        };
        let behind = reached(graph, from.iter().copied(), |node| {
            graph.successors(node).iter().copied().filter(move |_| !calls(node))
        });
        let before = reached(graph, from.iter().copied(), |node| {
            graph.predecessors(node).iter().copied().filter(move |next| !calls(*next))
        });
        let mut near: Vec<bool> = behind.iter().zip(&before).map(|(behind, before)| *behind || *before).collect();
        let around = self.loops.parent(id).filter(|around| deals(*around));
        around.into_iter().flat_map(|around| self.loops.members(around)).for_each(|node| near[node.index()] = true);
        near
    }
}

/// What a block does to numbers, whether one by one or to those of vectors; and whether it reads and writes memory.
fn acts(block: &Block) -> BTreeSet<String> {
    let of_floats = |name: &str| {
        let name = name.strip_prefix('v').unwrap_or(name);
        let kind = ["sd", "ss", "pd", "ps"].iter().find_map(|kind| name.strip_suffix(kind))?;
        let is_move = ["mov", "cvt", "unpck", "shuf", "and", "xor", "or"].iter().any(|other| kind.starts_with(other));
        (!is_move).then(|| kind.to_owned())
    };
    let mut all: BTreeSet<String> =
        block.lines.iter().filter_map(|line| of_floats(&line.instruction.mnemonic())).collect();
    let memory = || block.lines.iter().flat_map(|line| line.instruction.memory().to_vec());
    let others = || memory().filter(|one| !one.is_in_frame());
    all.extend(others().any(|one| one.access.reads).then(|| "reads".to_owned()));
    all.extend(others().any(|one| one.access.writes).then(|| "writes".to_owned()));
    all
}

fn chooses(name: &str) -> bool {
    ["cmp", "blend", "andn", "mask"].iter().any(|part| name.contains(part))
}

/// Whether a block works on all numbers of vectors: not where it only clears one, copies it, or changes bits of a
/// number, as of its sign.
fn is_of_vectors(block: &Block) -> bool {
    let works = |one: Instruction| {
        let name = one.mnemonic();
        let name = name.strip_prefix('v').unwrap_or(&name);
        let moves_one = ["movd", "movq"].contains(&name);
        let copies = name.starts_with("mov") && one.memory().is_empty();
        let is_of_bits = ["and", "or", "xor"].iter().any(|other| name.starts_with(other));
        let by_constant = is_of_bits && one.address().is_some_and(|address| address.by_pc);
        one.is_of_vectors() && !moves_one && !copies && !by_constant && !one.zeroes()
    };
    block.lines.iter().any(|line| works(line.instruction))
}

/// What a block adds to its counters.
fn steps(block: &Block) -> Vec<i64> {
    let step = |line: &Line| match line.instruction.step() {
        Step::Update { operator: Operator::Add, acc, by: Operand::Constant(by), to, .. }
            if acc == to && line.instruction.operation() != Operation::Address =>
        {
            // What is added to a register of 32 bits.
            Some(i64::from(by as i32).abs())
        }
        _ => None,
    };
    block.lines.iter().filter(|line| line.is_step).filter_map(step).filter(|by| *by > 0).collect()
}

/// How many iterations a turn of a loop has, where one of another has so many: by what their counters add, as most of
/// them say.
fn turns_of(block: &Block, other: &Block, number: i64) -> Option<i64> {
    let others = steps(other);
    let of = |step: i64| others.iter().filter(move |by| step * number % **by == 0).map(move |by| step * number / by);
    let mut found: BTreeMap<i64, usize> = BTreeMap::new();
    let all = steps(block).into_iter().flat_map(of).filter(|turns| (1..=MOST).contains(turns));
    all.for_each(|turns| *found.entry(turns).or_default() += 1);
    found.into_iter().rev().max_by_key(|(_, votes)| *votes).map(|(turns, _)| turns)
}

/// A block of so many iterations, each as so many of what stands for it.
fn parts(stands: &Stands, own: &Block, (number, each): (i64, i64), of_place: &[SegmentId]) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    for at in 0..number * each {
        let taken = takes(&stands.block, own, (at, number * each))?;
        for (nth, node) in stands.nodes.iter().enumerate() {
            let is_of =
                |(segment, _): &&(SegmentId, u32)| stands.nodes.len() == 1 || *segment == of_place[node.index()];
            parts.push(Part {
                begins: at % each == 0 && nth == 0,
                ends: at % each == each - 1 && nth == stands.nodes.len() - 1,
                stands: *node,
                takes: taken.iter().filter(is_of).map(|(_, address)| *address).collect(),
            });
        }
    }
    Some(parts)
}

/// The addresses of a block that are those of one of so many parts, by the kinds of the instructions that access them,
/// each with the segment that stands for it. None where not each part has its own, as those of a vector.
fn takes(stands: &Block, own: &Block, (part, parts): (i64, i64)) -> Option<Vec<(SegmentId, u32)>> {
    let accesses = |block: &Block, sign: &str| -> Vec<u32> {
        let those = block.lines.iter().filter(|line| line.sign == sign).map(|line| line.addresses);
        those.flat_map(|(first, count)| first..first + count).collect()
    };
    let (part, parts) = (part as usize, parts as usize);
    let mut taken = Vec::new();
    let mut before: FxHashMap<&str, usize> = FxHashMap::default();
    for line in &stands.lines {
        for _ in 0..line.addresses.1 {
            let (own, same) = (accesses(own, &line.sign), accesses(stands, &line.sign).len());
            let copies = Some(own.len() / same).filter(|copies| *copies >= parts)?;
            let at = before.entry(&line.sign).or_default();
            taken.push((line.at.0, own[part * copies / parts * same + *at]));
            *at += 1;
        }
    }
    Some(taken)
}
