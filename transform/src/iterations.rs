//! Marks the iterations of the loops that OpenMP shares out to threads, so that a trace shows where each begins and
//! ends, whatever the optimiser makes of the loop. It runs over what clang made of the source, before the optimiser.
//!
//! ```text
//! before:  call @__kmpc_for_static_init_4(…, %lower, %upper, …)
//!          store (load %lower), %counter
//!   test:  %i = load %counter; %u = load %upper; br (%i <= %u), body, exit
//!   body:  …; br next
//!   next:  %j = load %counter; store %j + 1, %counter; br test
//!
//! after:
//!   body:  call asm sideeffect "nopl …"    ; an iteration begins
//!          …; br next
//!   next:  call asm sideeffect "nopl …"    ; it ends
//!          %j = load %counter; store %j + 1, %counter; br test
//! ```
//!
//! # Steps
//! 1. Find where the first iteration's number is put: the variable whose address goes to `__kmpc_for_static_init_*` or
//!    `__kmpc_dispatch_next_*`, and the bounds that the body of a taskloop is called with.
//! 2. Find the counter, which begins with this number, the innermost loop that a comparison of it ends, and where it is
//!    advanced.
//! 3. Put a marker before all else in the loop's body, one before the counter is advanced, and one wherever else the
//!    loop is left, as by `cancel`. Keep the optimiser from unrolling the loop: copies of the body would have addresses
//!    of their own, and lanes in different copies would seem to diverge.
//!
//! # Why the meaning is kept
//! A marker is an instruction that does nothing.
//!
//! # Limitation
//! Only what clang 19 makes for the host is known. A loop of which something is not as expected is left with a remark.
//! The chunks of `distribute` in front of a `parallel for`, and `sections`, are no iterations.

use rustc_hash::FxHashSet;

use crate::llvm::{Block, Builder, Function, Instruction, Module, Opcode, Value};
use crate::{Place, Reason, Remark};

/// What remarks call it.
const NAME: &str = "mark-iterations";

/// The instructions that do nothing and mark an iteration's begin and end: those that `trace_format::Marker` knows.
const BEGIN: &str = "nopl 0x03536b4c(%rax,%rax)";
const END: &str = "nopl 0x04536b4c(%rax,%rax)";

/// Functions whose argument of this number is where the number of the thread's first iteration is put.
const GIVES: [(&str, usize); 3] =
    [("__kmpc_for_static_init_", 4), ("__kmpc_dist_for_static_init_", 4), ("__kmpc_dispatch_next_", 3)];

/// The schedules of `distribute`, as the third argument of `__kmpc_for_static_init_*`.
const DISTRIBUTE: [i64; 2] = [91, 92];

/// A variable that holds the number of a thread's first iteration.
struct Given<'m> {
    first: Value<'m>,
    by: Instruction<'m>,
    /// Whether it is that of a team.
    distributes: bool,
}

/// A loop that a comparison of its counter ends, which begins with what was given.
struct Loop<'m> {
    /// The branch behind the comparison.
    test: Instruction<'m>,
    body: Block<'m>,
    counter: Value<'m>,
    blocks: FxHashSet<Block<'m>>,
}

/// Where markers go.
struct Places<'m> {
    begin: Instruction<'m>,
    ends: Vec<Instruction<'m>>,
    back: Instruction<'m>,
}

/// Marks all loops of a module, and says which were marked, and which not. One that has marks is left as it is.
pub(crate) fn mark(module: &Module) -> Vec<Remark> {
    let functions = module.functions();
    let is_mark = |by: Instruction<'_>| by.callee().and_then(Value::assembly).is_some_and(|text| text == BEGIN);
    if functions.iter().copied().flat_map(instructions).any(is_mark) {
        return Vec::new();
    }
    let pieces: FxHashSet<Function<'_>> =
        functions.iter().flat_map(|function| bodies_of_taskloops(*function)).collect();
    let of_function = |function: &Function<'_>| {
        let given = given(*function, pieces.contains(function));
        given
            .iter()
            .filter_map(|given| Some(remark(*function, given, mark_loop(*function, given)?)))
            .collect::<Vec<_>>()
    };
    if module.target().starts_with("x86_64") {
        return functions.iter().flat_map(of_function).collect();
    }
    let is_shared = functions.iter().any(|function| !given(*function, pieces.contains(function)).is_empty());
    let remark = Remark {
        pass: NAME,
        function: module.source_name(),
        subject: "the whole file".to_owned(),
        places: Vec::new(),
        reason: Reason::OtherTarget(module.target()),
        gain: None,
    };
    is_shared.then_some(remark).into_iter().collect()
}

fn remark(function: Function<'_>, given: &Given<'_>, (reason, place): (Reason, Option<Place>)) -> Remark {
    let subject = if given.by.opcode() == Opcode::LLVMStore { "taskloop" } else { "worksharing loop" };
    let place = place.or_else(|| given.by.place());
    let (function, subject) = (function.name(), subject.to_owned());
    Remark { pass: NAME, function, subject, places: vec![place], reason, gain: None }
}

fn instructions(function: Function<'_>) -> impl Iterator<Item = Instruction<'_>> {
    function.blocks().into_iter().flat_map(Block::instructions)
}

/// The functions that the tasks of a function's taskloops call.
fn bodies_of_taskloops(function: Function<'_>) -> Vec<Function<'_>> {
    let entries = instructions(function).filter_map(entry_of_taskloop);
    let calls = entries.flat_map(instructions);
    calls.filter_map(|call| call.callee()?.as_defined_function()).collect()
}

/// The function that the tasks of a call of a taskloop run.
fn entry_of_taskloop(call: Instruction<'_>) -> Option<Function<'_>> {
    if !call.callee()?.name().starts_with("__kmpc_taskloop") {
        return None;
    }
    let made = call.arguments().get(2)?.as_instruction()?;
    made.arguments().get(5)?.as_defined_function()
}

/// What threads are given in a function; `is_piece` of that of a taskloop.
fn given(function: Function<'_>, is_piece: bool) -> Vec<Given<'_>> {
    let mut all: Vec<Given<'_>> = Vec::new();
    let parameters = if is_piece { function.parameters() } else { Vec::new() };
    for by in instructions(function) {
        if by.opcode() == Opcode::LLVMStore && parameters.contains(&by.operand(0)) {
            all.push(Given { first: by.operand(1), by, distributes: false });
        }
        let Some(name) = by.callee().filter(|callee| callee.is_function()).map(Value::name) else { continue };
        let Some((_, number)) = GIVES.iter().find(|(start, _)| name.starts_with(start)) else { continue };
        let arguments = by.arguments();
        let schedule = arguments.get(2).and_then(|schedule| schedule.as_number());
        let distributes = schedule.is_some_and(|schedule| DISTRIBUTE.contains(&schedule));
        all.extend(arguments.get(*number).map(|first| Given { first: *first, by, distributes }));
    }
    all
}

/// Marks the loop that ends where this says; what was done, and where. None where there is nothing to say.
fn mark_loop<'m>(function: Function<'m>, given: &Given<'m>) -> Option<(Reason, Option<Place>)> {
    let is_first =
        |by: &Instruction<'m>| by.opcode() == Opcode::LLVMStore && loaded(by.operand(0)) == Some(given.first);
    let counters: Vec<Value<'m>> = instructions(function).filter(is_first).map(|by| by.operand(1)).collect();
    let reached = reached(function.entry(), None);
    let mut found: Vec<Loop<'m>> = reached.iter().filter_map(|block| loop_at(*block, &counters, &reached)).collect();
    let inner = |one: &Loop<'m>| found.iter().any(|other| other.test != one.test && one.holds(other));
    let innermost: Vec<bool> = found.iter().map(|one| !inner(one)).collect();
    let mut is_innermost = innermost.into_iter();
    found.retain(|_| is_innermost.next() == Some(true));
    let is_stored_parameter = given.by.opcode() == Opcode::LLVMStore;
    let one = match &found[..] {
        [one] => one,
        // The bounds are two of several parameters.
        [] if is_stored_parameter => return None,
        [] => return Some((Reason::IterationsNotMarked("no loop begins with what the runtime gives"), None)),
        _ => return Some((Reason::IterationsNotMarked("several loops begin with what the runtime gives"), None)),
    };
    if one.is_sections() || given.distributes && one.forks() {
        return None;
    }
    let places = match one.places() {
        Ok(places) => places,
        Err(why) => return Some((Reason::IterationsNotMarked(why), one.test.place())),
    };
    for (at, text) in [(places.begin, BEGIN)].into_iter().chain(places.ends.iter().map(|end| (*end, END))) {
        Builder::before(at).marker(text).take_location(at);
    }
    places.back.keep_loop_whole();
    Some((Reason::IterationsMarked, one.test.place()))
}

/// The loop that this block's branch ends, if it compares one of these counters.
fn loop_at<'m>(block: Block<'m>, counters: &[Value<'m>], all: &FxHashSet<Block<'m>>) -> Option<Loop<'m>> {
    let test = block.terminator();
    let comparison = test.condition()?.as_instruction().filter(|by| by.opcode() == Opcode::LLVMICmp)?;
    let compared = [loaded(comparison.operand(0)), loaded(comparison.operand(1))];
    let counter = compared.into_iter().flatten().find(|variable| counters.contains(variable))?;
    let mut ways = test.successors().into_iter().filter_map(|body| Some((body, around(block, body, all)?)));
    let (body, blocks) = ways.next().filter(|_| ways.next().is_none())?;
    Some(Loop { test, body, counter, blocks })
}

/// The variable that a value is loaded from, conversions and a constant more aside.
fn loaded(value: Value<'_>) -> Option<Value<'_>> {
    let by = value.as_instruction()?;
    match by.opcode() {
        Opcode::LLVMLoad => Some(by.operand(0)),
        Opcode::LLVMZExt | Opcode::LLVMSExt | Opcode::LLVMTrunc => loaded(by.operand(0)),
        Opcode::LLVMAdd if by.operand(1).as_number().is_some() => loaded(by.operand(0)),
        _ => None,
    }
}

/// The blocks that control reaches from one on, without passing another.
fn reached<'m>(from: Block<'m>, without: Option<Block<'m>>) -> FxHashSet<Block<'m>> {
    let mut reached = FxHashSet::from_iter([from]);
    let mut left = vec![from];
    while let Some(block) = left.pop() {
        let next = block.terminator().successors().into_iter().filter(|next| Some(*next) != without);
        left.extend(next.filter(|next| reached.insert(*next)));
    }
    reached
}

/// The blocks of the loop with this header that is gone around by way of `body`; none where that does not lead back, or
/// has another way in from one of `all`, as the way back by a loop around.
fn around<'m>(header: Block<'m>, body: Block<'m>, all: &FxHashSet<Block<'m>>) -> Option<FxHashSet<Block<'m>>> {
    let reached = reached(body, Some(header));
    let mut inside = FxHashSet::from_iter([header]);
    let mut left = vec![header];
    while let Some(block) = left.pop() {
        let before = block.entering().into_iter().filter_map(Instruction::block).filter(|from| reached.contains(from));
        left.extend(before.filter(|from| inside.insert(*from)));
    }
    let is_entered = |from: Block<'m>| all.contains(&from) && !inside.contains(&from);
    let enters = |block: &Block<'m>| block.entering().into_iter().filter_map(Instruction::block).any(is_entered);
    let has_other_way = inside.iter().any(|block| *block != header && enters(block));
    (inside.contains(&body) && !has_other_way).then_some(inside)
}

impl<'m> Loop<'m> {
    fn header(&self) -> Option<Block<'m>> {
        self.test.block()
    }

    fn holds(&self, other: &Loop<'m>) -> bool {
        other.header().is_some_and(|header| self.blocks.contains(&header)) && self.blocks.len() > other.blocks.len()
    }

    /// Whether it starts threads: then it is one over the chunks of teams.
    fn forks(&self) -> bool {
        let starts = |call: Instruction<'_>| call.calls("__kmpc_fork_call") || call.calls("__kmpc_serialized_parallel");
        self.blocks.iter().any(|block| block.instructions().into_iter().any(starts))
    }

    /// Whether its turns are sections: the counter says which.
    fn is_sections(&self) -> bool {
        let end = self.body.terminator();
        end.opcode() == Opcode::LLVMSwitch && loaded(end.operand(0)) == Some(self.counter)
    }

    /// Where markers go, or why they don't.
    fn places(&self) -> Result<Places<'m>, &'static str> {
        let inside = |block: Option<Block<'m>>| block.is_some_and(|block| self.blocks.contains(&block));
        let advances = |by: &Instruction<'m>| {
            by.opcode() == Opcode::LLVMStore && by.operand(1) == self.counter && inside(by.block())
        };
        let mut stores = self.counter.uses().into_iter().map(|of| of.user).filter(advances);
        let store = stores.next().filter(|_| stores.next().is_none());
        let store = store.ok_or("its counter is not advanced at one place")?;
        let sum = store.operand(0).as_instruction().ok_or("its counter is not advanced by a sum")?;
        let mut loads = sum
            .operands()
            .into_iter()
            .filter_map(|operand| operand.as_instruction().filter(|by| loaded(by.as_value()) == Some(self.counter)));
        let next = loads.next().filter(|load| load.block() == store.block());
        let next = next.ok_or("its counter is not advanced by a sum")?;
        let back = store
            .block()
            .map(Block::terminator)
            .filter(|back| back.successors() == [self.test.block()].into_iter().flatten().collect::<Vec<_>>());
        let back = back.ok_or("it goes on at several places")?;
        let goes_on =
            |block: &&Block<'m>| block.terminator().successors().into_iter().any(|to| Some(to) == self.header());
        if self.blocks.iter().filter(goes_on).count() > 1 || self.body.entering().len() > 1 {
            return Err("it goes on at several places");
        }
        let left = self.blocks.iter().filter(|block| Some(**block) != self.header());
        let left = left.flat_map(|block| block.terminator().successors());
        let left: FxHashSet<Block<'m>> = left.filter(|to| !self.blocks.contains(to)).collect();
        let ends = [next].into_iter().chain(left.into_iter().map(Block::first_insertion_point));
        Ok(Places { begin: self.body.first_insertion_point(), ends: ends.collect(), back })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function in the form in which clang makes a static schedule with chunks; what stands in the loop's body, and
    /// behind the call's arguments.
    fn shared(body: &str, schedule: i32) -> String {
        format!(
            "target triple = \"x86_64-pc-linux-gnu\"
declare void @__kmpc_for_static_init_4(ptr, i32, i32, ptr, ptr, ptr, ptr, i32, i32)
declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare void @g(i32)
define void @f(i32 %n) {{
  %counter = alloca i32
  %lower = alloca i32
  %upper = alloca i32
  %stride = alloca i32
  %last = alloca i32
  call void @__kmpc_for_static_init_4(ptr null, i32 0, i32 {schedule}, ptr %last, ptr %lower, ptr %upper, ptr %stride, i32 1, i32 3)
  br label %chunk
chunk:
  %l = load i32, ptr %lower
  store i32 %l, ptr %counter
  %c0 = load i32, ptr %counter
  %u0 = load i32, ptr %upper
  %any = icmp sle i32 %c0, %u0
  br i1 %any, label %test, label %end
test:
  %c = load i32, ptr %counter
  %u = load i32, ptr %upper
  %more = icmp sle i32 %c, %u
  br i1 %more, label %body, label %next_chunk
body:
  %i = load i32, ptr %counter
  {body}
next:
  %j = load i32, ptr %counter
  %k = add nsw i32 %j, 1
  store i32 %k, ptr %counter
  br label %test
next_chunk:
  %s = load i32, ptr %stride
  %m = add nsw i32 %l, %s
  store i32 %m, ptr %lower
  br label %chunk
end:
  ret void
}}
"
        )
    }

    const PLAIN: &str = "call void @g(i32 %i)\n  br label %next";

    fn marked(text: &str) -> (String, Vec<Reason>) {
        let module = Module::parse(text.as_bytes(), "f.ll").unwrap();
        let remarks = mark(&module);
        let text = module.to_text();
        module.verify().unwrap();
        (text, remarks.into_iter().map(|remark| remark.reason).collect())
    }

    #[test]
    fn an_iteration_is_marked_at_its_beginning_and_before_the_counter_is_advanced() {
        let (text, reasons) = marked(&shared(PLAIN, 33));
        assert_eq!(reasons, [Reason::IterationsMarked]);
        let blocks: Vec<&str> = text.split("\n\n").collect();
        let begins = |label: &str, with: &str| {
            let block = blocks.iter().find(|block| block.starts_with(label)).unwrap();
            block.lines().nth(1).unwrap().contains(with)
        };
        assert!(begins("body:", BEGIN) && begins("next:", END), "{text}");
        assert_eq!((text.matches(BEGIN).count(), text.matches(END).count()), (1, 1));
        assert!(text.contains("nounwind willreturn memory(read, inaccessiblemem: readwrite)"), "{text}");
        // Only the inner loop's branch back is told to stay as it is.
        assert_eq!(text.matches(", !llvm.loop").count(), 1);
        assert!(text.contains("llvm.loop.unroll.disable") && text.contains("llvm.loop.vectorize.enable"), "{text}");
        assert_eq!(marked(&text), (text, Vec::new()), "a second time");
    }

    #[test]
    fn an_iteration_that_leaves_the_loop_ends_there() {
        let body = "%z = icmp eq i32 %i, %n\n  br i1 %z, label %cancel, label %next\ncancel:\n  br label %end";
        let (text, reasons) = marked(&shared(body, 34));
        assert_eq!((reasons, text.matches(END).count()), (vec![Reason::IterationsMarked], 2));
    }

    #[test]
    fn sections_and_chunks_of_teams_are_no_iterations() {
        let sections = "switch i32 %i, label %next [ i32 0, label %one ]\none:\n  br label %next";
        let chunks =
            "call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 0, ptr @f)\n  br label %next".to_owned();
        for (body, schedule) in [(sections, 34), (&chunks, 92)] {
            let (text, reasons) = marked(&shared(body, schedule));
            assert_eq!((reasons, text.contains("nopl")), (Vec::new(), false));
        }
        // Threads that an iteration starts are its own.
        assert_eq!(marked(&shared(&chunks, 34)).1, [Reason::IterationsMarked]);
    }

    #[test]
    fn what_is_not_as_expected_is_told() {
        let twice = format!("store i32 7, ptr %counter\n  {PLAIN}");
        let other = shared(PLAIN, 34).replace("store i32 %l, ptr %counter", "store i32 0, ptr %counter");
        let foreign = shared(PLAIN, 34).replace("x86_64-pc-linux-gnu", "aarch64-linux-gnu");
        assert_eq!(
            marked(&shared(&twice, 34)).1,
            [Reason::IterationsNotMarked("its counter is not advanced at one place")]
        );
        assert_eq!(marked(&other).1, [Reason::IterationsNotMarked("no loop begins with what the runtime gives")]);
        assert_eq!(marked(&foreign).1, [Reason::OtherTarget("aarch64-linux-gnu".to_owned())]);
    }
}
