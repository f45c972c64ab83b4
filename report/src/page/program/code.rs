//! The code of a trace as a page names it: functions, lines and instructions by number, each with what it costs.

use std::collections::{BTreeMap, HashMap};

use crate::page::{Function, Instruction, Line, LineCosts, Pcs};
use flowgraph::NodeId;
use heuristics::{PlaceId, SegmentId};
use replay::Outcome;
use replay::metrics::{ActiveLanes, Cause, Causes, Traffic};
use trace_format::{Pc, Trace};

use attribution::Source;
use attribution::disassembly::Fetched;

/// Where functions were entered.
fn entries(program: &heuristics::Program) -> Vec<Pc> {
    let Some(graph) = program.control_flow.graph() else { return Vec::new() };
    let mut start = vec![Pc(0); program.segments.places()];
    program.segments.iter().for_each(|(_, segment)| start[segment.place.0 as usize] = segment.start());
    // The node after the last place leads to the entries.
    let root = NodeId(start.len() as u32);
    graph.successors(root).iter().map(|entry| start[entry.index()]).collect()
}

/// Adds numbers by active lanes to those that are there.
fn add(sums: &mut Vec<u64>, counts: &[u64]) {
    sums.resize(sums.len().max(counts.len()), 0);
    sums.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
}

/// The numbers that are not 0, with their places.
fn sparse(all: &[u64]) -> Vec<(usize, u64)> {
    all.iter().copied().enumerate().filter(|(_, number)| *number > 0).collect()
}

/// Functions, lines and instructions of one trace.
pub struct Code<'t> {
    source: Source<'t>,
    program: &'t heuristics::Program,
    functions: Vec<Function>,
    function_of: HashMap<String, usize>,
    /// By place.
    classes: Vec<u16>,
    lines: Vec<Line>,
    line_named: HashMap<String, usize>,
    line_at: HashMap<Pc, usize>,
    files: Vec<String>,
    pcs: Pcs,
    /// By segment: the number of its first instruction among `pcs`.
    first_pc: HashMap<SegmentId, usize>,
}

impl<'t> Code<'t> {
    /// Of this trace and the program that was replayed.
    #[must_use]
    pub fn new(trace: &'t Trace, program: &'t heuristics::Program) -> Code<'t> {
        let mut code = Code {
            source: Source::new(trace),
            program,
            functions: Vec::new(),
            function_of: HashMap::new(),
            classes: vec![u16::MAX; program.segments.places()],
            lines: Vec::new(),
            line_named: HashMap::new(),
            line_at: HashMap::new(),
            files: Vec::new(),
            pcs: Pcs::default(),
            first_pc: HashMap::new(),
        };
        code.source.know_entries(entries(program));
        for (_, segment) in program.segments.iter() {
            let function = code.function(segment.start());
            code.classes[segment.place.0 as usize] = function.min(usize::from(u16::MAX)) as u16;
        }
        code
    }

    /// The function at an address.
    pub(crate) fn function(&mut self, pc: Pc) -> usize {
        let name = self.source.function(pc);
        if let Some(known) = self.function_of.get(&name) {
            return *known;
        }
        self.function_of.insert(name.clone(), self.functions.len());
        self.functions.push(Function { name, ..Function::default() });
        self.functions.len() - 1
    }

    /// Where its names come from.
    pub(crate) fn source(&mut self) -> &mut Source<'t> {
        &mut self.source
    }

    /// Its name.
    pub(crate) fn function_name(&self, pc: Pc) -> String {
        self.source.function(pc)
    }

    /// The line at an address, or what stands for it.
    pub(crate) fn line(&mut self, pc: Pc) -> usize {
        if let Some(known) = self.line_at.get(&pc) {
            return *known;
        }
        let found = self.source.line(pc);
        let name = match &found {
            Some(line) => format!("{}:{}", line.file, line.line),
            None => self.source.without_line(pc),
        };
        let index = match self.line_named.get(&name) {
            Some(known) => *known,
            None => {
                let causes = vec![0; Cause::ALL.len()];
                let mut line = Line { lost_by: causes.clone(), parted_by: causes, ..Line::default() };
                match found {
                    Some(found) => {
                        line.label = found.short();
                        line.number = found.line;
                        line.file = Some(self.file(&found.file));
                        line.functions = found.functions;
                    }
                    None => {
                        line.label.clone_from(&name);
                        line.functions = vec![self.source.function(pc)];
                    }
                }
                self.line_named.insert(name, self.lines.len());
                self.lines.push(line);
                self.lines.len() - 1
            }
        };
        self.line_at.insert(pc, index);
        index
    }

    fn file(&mut self, path: &str) -> usize {
        let known = self.files.iter().position(|f| f == path);
        known.unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        })
    }

    /// `function+0x12`.
    pub(crate) fn place(&self, pc: Pc) -> String {
        self.source.place(pc)
    }

    /// The distance from the function's beginning, in bytes; the address where there is no function.
    pub(crate) fn offset(&self, pc: Pc) -> u64 {
        self.source.function_start(pc).map_or(pc.0, |start| pc.0 - start.0)
    }

    /// Sums up what was fetched and lost by function and line, and puts functions in their order: those that ran most
    /// first.
    pub(crate) fn count(&mut self, outcome: &Outcome, causes: &Causes) {
        for ((pc, _), issued) in &causes.issued {
            let (function, line) = (self.function(*pc), self.line(*pc));
            self.functions[function].fetches += issued.fetches;
            self.functions[function].thread_instructions += issued.thread_instructions;
            self.lines[line].fetches += issued.fetches;
            self.lines[line].thread_instructions += issued.thread_instructions;
        }
        for (charge, slots) in &causes.charges {
            let (function, line) = (self.function(charge.issued), self.line(charge.issued));
            self.functions[function].lost += slots;
            self.lines[line].lost_by[charge.cause as usize] += slots;
            if let Some(parted) = charge.parted_at {
                let line = self.line(parted);
                self.lines[line].parted_by[charge.cause as usize] += slots;
            }
        }
        for (pc, counts) in outcome.found::<ActiveLanes>().into_iter().flat_map(|active| &active.all) {
            let line = self.line(*pc);
            add(&mut self.lines[line].active, counts);
        }
        for (pc, accesses) in outcome.found::<Traffic>().into_iter().flat_map(|t| &t.by_instruction) {
            let line = self.line(*pc);
            let memory = &mut self.lines[line].memory;
            memory.resize(3, 0);
            let classes = [accesses.classes.uniform, accesses.classes.affine, accesses.classes.scattered];
            memory.iter_mut().zip(classes).for_each(|(sum, more)| *sum += more);
        }
        self.order_functions();
    }

    /// What another outcome of the same lanes costs by line, in the order of lines.
    pub(crate) fn costs(&mut self, outcome: &Outcome, causes: &Causes) -> Vec<LineCosts> {
        let mut all: BTreeMap<usize, Line> = BTreeMap::new();
        let none = || vec![0; Cause::ALL.len()];
        let new = || Line { lost_by: none(), parted_by: none(), ..Line::default() };
        for ((pc, _), issued) in &causes.issued {
            let line = all.entry(self.line(*pc)).or_insert_with(new);
            line.fetches += issued.fetches;
            line.thread_instructions += issued.thread_instructions;
        }
        for (charge, slots) in &causes.charges {
            all.entry(self.line(charge.issued)).or_insert_with(new).lost_by[charge.cause as usize] += slots;
            if let Some(parted) = charge.parted_at {
                all.entry(self.line(parted)).or_insert_with(new).parted_by[charge.cause as usize] += slots;
            }
        }
        for (pc, counts) in outcome.found::<ActiveLanes>().into_iter().flat_map(|active| &active.all) {
            add(&mut all.entry(self.line(*pc)).or_insert_with(new).active, counts);
        }
        let costs = |(index, line): (usize, Line)| LineCosts {
            line: index,
            fetches: line.fetches,
            thread_instructions: line.thread_instructions,
            active: sparse(&line.active),
            lost_by: sparse(&line.lost_by),
            parted_by: sparse(&line.parted_by),
        };
        all.into_iter().map(costs).collect()
    }

    /// Adds instructions to their lines, with what each costs.
    pub(crate) fn disassemble(&mut self, all: &[Fetched], causes: &Causes, active: Option<&ActiveLanes>) {
        let mut costs: HashMap<Pc, Instruction> = HashMap::new();
        let mut cost = |pc: Pc, add: &dyn Fn(&mut Instruction)| {
            let none = || vec![0; Cause::ALL.len()];
            let new = || Instruction { lost_by: none(), parted_by: none(), ..Instruction::default() };
            add(costs.entry(pc).or_insert_with(new));
        };
        for ((pc, _), issued) in &causes.issued {
            cost(*pc, &|of| of.thread_instructions += issued.thread_instructions);
        }
        for (charge, slots) in &causes.charges {
            cost(charge.issued, &|of| of.lost_by[charge.cause as usize] += slots);
            if let Some(parted) = charge.parted_at {
                cost(parted, &|of| of.parted_by[charge.cause as usize] += slots);
            }
        }
        for (pc, counts) in active.into_iter().flat_map(|active| &active.all) {
            cost(*pc, &|of| add(&mut of.active, counts));
        }
        for fetched in all {
            let line = self.line(fetched.pc);
            let cost = costs.remove(&fetched.pc).unwrap_or_default();
            let (address, text) = (fetched.pc.0, fetched.text.clone());
            self.lines[line].instructions.push(Instruction { address, text, fetches: fetched.fetches, ..cost });
        }
    }

    fn order_functions(&mut self) {
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        order.sort_by_key(|f| (std::cmp::Reverse(self.functions[*f].thread_instructions), *f));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| rank[*old] = new);
        self.functions = order.iter().map(|old| self.functions[*old].clone()).collect();
        self.function_of.values_mut().for_each(|f| *f = rank[*f]);
        let ranked =
            |class: u16| rank.get(usize::from(class)).map_or(u16::MAX, |r| (*r).min(usize::from(u16::MAX)) as u16);
        self.classes = self.classes.iter().map(|c| ranked(*c)).collect();
    }

    /// By place: its function, as far as numbers of 16 bits go.
    pub(crate) fn classes(&self) -> Vec<u16> {
        self.classes.clone()
    }

    /// The number of a segment's instruction among the page's instructions.
    pub(crate) fn pc(&mut self, segment: SegmentId, at: u32) -> usize {
        if let Some(first) = self.first_pc.get(&segment) {
            return first + at as usize;
        }
        let first = self.pcs.line.len();
        for instruction in &self.program.segments[segment].instructions {
            let (function, line) = (self.function(instruction.pc), self.line(instruction.pc));
            self.pcs.function.push(function);
            self.pcs.line.push(line);
            self.pcs.offset.push(self.offset(instruction.pc));
        }
        self.first_pc.insert(segment, first);
        first + at as usize
    }

    /// Of each place a segment that begins there.
    pub(crate) fn segment_of_places(&self) -> Vec<Option<SegmentId>> {
        let mut all = vec![None; self.program.segments.places()];
        for (id, segment) in self.program.segments.iter() {
            let PlaceId(place) = segment.place;
            all[place as usize].get_or_insert(id);
        }
        all
    }

    pub(crate) fn program(&self) -> &'t heuristics::Program {
        self.program
    }

    /// Those that ran, after they were counted; others have higher numbers.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions[..self.functions.partition_point(|f| f.fetches > 0)]
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    pub(crate) fn take_pcs(&mut self) -> Pcs {
        std::mem::take(&mut self.pcs)
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.source.notes().to_vec()
    }
}
