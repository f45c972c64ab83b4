//! From the records in a thread's buffer to its stream in the trace.

mod clock;
mod functions;
mod pieces;
mod recipe;
mod straight;
mod stream;

use trace_format::{Block, BlockId, Event, SpEffect};

pub use clock::Clock;
use functions::leave;
use pieces::ExitPoint;
use recipe::{Recipe, Taken, recipe};
use straight::Straight;
pub use stream::Stream;

use crate::images::loop_calls::{self, LoopCall};
use crate::kernel::calls::is_futex_wait;
use crate::record::recorder::Recorder;
use crate::translate::layout::record;
use crate::translate::translator::{Path, Translator};
use crate::usage::Records;

/// What a path is in the trace.
#[derive(Clone, Copy)]
struct Known {
    block: BlockId,
    instructions: u16,
    /// How many values its record has.
    values: u16,
    /// Which of them are what in the trace: the number of a [`Recipe`]; none where all are values of the trace.
    recipe: Option<u32>,
    /// The places in its midst that returns and indirect jumps lead to, if there are any.
    exits: Option<u32>,
    /// Whether its last instruction transfers control.
    transfers: bool,
    /// What is added to the stack pointer after the last recorded one, or altogether.
    added: i64,
}

/// A path that takes one number in the trace and nothing else, in few bytes: most are such, and all that is done with
/// one is in a short loop.
#[derive(Clone, Copy)]
struct Plain {
    /// Its block, or [`NOT_PLAIN`].
    block: u32,
    instructions: u16,
    added: i16,
    /// The most that is added to the stack pointer at an exit.
    peak: u16,
}

/// Marks numbers of paths that are not known yet, or not plain.
const NOT_PLAIN: Plain = Plain { block: u32::MAX, instructions: 0, added: 0, peak: 0 };

/// Marks numbers of paths that have not been met.
const NOT_MET: u32 = u32::MAX;

/// Plain paths are handed on in pieces of so many.
const RUN: usize = 4096;

/// What is known about paths.
#[derive(Clone, Default)]
struct Tables {
    /// The paths that have been met, and where each is among them by its number; [`NOT_MET`] for the others.
    known: Vec<Known>,
    places: Vec<u32>,
    plain: Vec<Plain>,
    recipes: Vec<Recipe>,
    exits: Vec<Vec<ExitPoint>>,
    straight: Vec<Straight>,
}

/// Expands records. Times of the processor's clock become numbers of events.
#[derive(Clone)]
pub struct Expander {
    tables: Tables,
    /// The same for the other state of the recording: under way, or paused.
    aside: Tables,
    run: Vec<u32>,
    /// Room for the block of a path that is met for the first time.
    room: Block,
    /// Room for the numbers of one record, and for those of them that go to the trace.
    numbers: Vec<u64>,
    sps: Vec<u64>,
    values: Vec<u64>,
    /// How many more instructions may be written: what comes after them is left out.
    pub left: u64,
    /// What the records were that were read since this was last looked at.
    pub counted: Records,
    clock: Clock,
}

fn wide(words: &[u32], byte: u32) -> u64 {
    let at = (byte / 4) as usize;
    u64::from(words[at]) | u64::from(words[at + 1]) << 32
}

/// How far the thread's stack pointer may be moved up before it leaves a function.
fn room(stream: &Stream) -> i64 {
    let below = |sp: u64| i64::try_from(sp).unwrap_or(i64::MAX);
    below(stream.sync.safe_up_to()) - below(stream.sp)
}

/// A record says that the kernel has let a handler begin.
fn handler_entered(words: &[u32], stream: &mut Stream, translator: &Translator, recorder: &mut Recorder) {
    let [sp, handler, interrupted, start, length] = [16, 24, 32, 40, 48].map(|at| wide(words, at));
    let alternate = Some(start..start.saturating_add(length)).filter(|stack| stack.contains(&sp));
    stream.handler_begins(interrupted, alternate);
    let before = std::mem::replace(&mut stream.sp, sp);
    recorder.signal(stream.id, words[1].cast_signed(), translator.code.modules.pc(handler), sp, before);
}

/// A record says that the program has returned from a handler.
fn handler_left(words: &[u32], stream: &mut Stream, recorder: &mut Recorder) {
    stream.left_handler(wide(words, 8), |id, event| recorder.event(id, event));
}

impl Expander {
    /// No path has been met.
    #[must_use]
    pub fn new(clock: Clock) -> Expander {
        Expander {
            tables: Tables::default(),
            aside: Tables::default(),
            run: vec![0; RUN],
            room: Block::default(),
            numbers: Vec::new(),
            sps: Vec::new(),
            values: Vec::new(),
            left: u64::MAX,
            counted: Records::default(),
            clock,
        }
    }

    /// Forgets all paths: another program runs now.
    pub fn clear(&mut self) {
        (self.tables, self.aside) = (Tables::default(), Tables::default());
    }

    /// The paths that have been met.
    pub fn met(&self) -> impl Iterator<Item = u32> {
        let met = |tables: &Tables| {
            let met = tables.places.iter().enumerate().filter(|(_, place)| **place != NOT_MET);
            met.map(|(number, _)| number as u32).collect::<Vec<u32>>()
        };
        met(&self.tables).into_iter().chain(met(&self.aside))
    }

    /// What is known about paths is put aside for what was known before the last such change: the trace has no blocks
    /// for what runs while nothing is recorded.
    pub fn change_tables(&mut self) {
        std::mem::swap(&mut self.tables, &mut self.aside);
    }

    /// Writes what the records say, up to one that is not there as a whole. Returns how many words they have.
    pub fn expand(
        &mut self,
        words: &[u32],
        stream: &mut Stream,
        translator: &Translator,
        recorder: &mut Recorder,
    ) -> usize {
        let mut rest = words;
        while self.left > 0 {
            let plain = self.run_of_plain(rest, stream, recorder);
            self.counted.paths.add(plain as u64, plain);
            rest = self.run_of_straight(&rest[plain..], stream, recorder);
            let Some(&word) = rest.first() else { break };
            if record::other_len(word).is_some_and(|len| rest.len() < len as usize / 4) {
                break;
            }
            let used = match word {
                record::ENTER..=record::ENTER_MOST => {
                    let time = self.clock.time(wide(rest, 8));
                    self.enter(rest, (time, record::ENTER_HEAD), stream, translator, recorder);
                    record::enter_len(word - record::ENTER) / 4
                }
                record::UNTIMED_ENTER => {
                    self.enter(rest, (0, 8), stream, translator, recorder);
                    record::UNTIMED_ENTER_LEN / 4
                }
                record::UNTIMED_LEAVE => {
                    recorder.set_time(0);
                    if stream.transferred {
                        leave(stream, stream.sp, wide(rest, 4), recorder);
                    }
                    record::UNTIMED_LEAVE_LEN / 4
                }
                record::LEAVE => {
                    recorder.set_time(self.clock.time(wide(rest, 4)));
                    if stream.transferred {
                        leave(stream, stream.sp, wide(rest, 12), recorder);
                    }
                    record::LEAVE_LEN / 4
                }
                record::FUTEX => {
                    let (address, result) = (wide(rest, 16), wide(rest, 24).cast_signed());
                    // A thread that we took out of its wait begins it again, and may find nothing then; it has waited.
                    let was_in_it = stream.left_wait.take_if(|left| *left == address).is_some();
                    let waited = was_in_it || result != -i64::from(nix::libc::EAGAIN);
                    if is_futex_wait(rest[1]) && waited {
                        recorder.set_time(self.clock.time(wide(rest, 8)));
                        recorder.futex_wait(stream.id, address);
                    }
                    record::FUTEX_LEN / 4
                }
                record::SIGNAL => {
                    recorder.set_time(self.clock.time(wide(rest, 8)));
                    handler_entered(rest, stream, translator, recorder);
                    record::SIGNAL_LEN / 4
                }
                record::CHUNK => {
                    let read = loop_calls::Read {
                        numbers: [8, 16, 24].map(|at| wide(rest, at)),
                        step: wide(rest, 32),
                        last: wide(rest, 56),
                        result: wide(rest, 40),
                        are_sections: rest[1].to_le_bytes()[1] & LoopCall::SECTIONS != 0,
                    };
                    let site = translator.code.modules.pc(wide(rest, 48));
                    if let Some(chunk) = LoopCall::of_form(rest[1].to_le_bytes()[0]).chunk(site, &read) {
                        recorder.event(stream.id, Event::Chunk(chunk));
                    }
                    record::CHUNK_LEN / 4
                }
                record::RETURN => {
                    handler_left(rest, stream, recorder);
                    record::RETURN_LEN / 4
                }
                _ => match self.path(rest, stream, translator, recorder) {
                    Some(used) => used,
                    None => break,
                },
            };
            let counted = match word {
                record::ENTER..=record::ENTER_MOST | record::UNTIMED_ENTER => &mut self.counted.entries,
                record::LEAVE | record::UNTIMED_LEAVE | record::CHUNK => &mut self.counted.returns,
                record::FUTEX => &mut self.counted.waits,
                record::SIGNAL | record::RETURN => &mut self.counted.handlers,
                _ => &mut self.counted.paths,
            };
            counted.add(1, used as usize);
            rest = &rest[used as usize..];
        }
        words.len() - rest.len()
    }

    /// Takes plain paths from the start of the records, as many as there are up to [`RUN`], and returns how many.
    fn run_of_plain(&mut self, words: &[u32], stream: &mut Stream, recorder: &mut Recorder) -> usize {
        let words = &words[..words.len().min(RUN)];
        // Most runs have no limit.
        let free = self.left >= (RUN * usize::from(u16::MAX)) as u64;
        let (count, instructions, change) =
            if free { self.take_plain::<false>(words, stream) } else { self.take_plain::<true>(words, stream) };
        if let Some(last) = count.checked_sub(1) {
            self.left -= u64::from(instructions);
            recorder.run_plain(stream.id, &self.run[..count], instructions, change);
            stream.sp = stream.sp.wrapping_add_signed(change);
            stream.transferred = self.tables.known[self.tables.places[words[last] as usize] as usize].transfers;
        }
        count
    }

    /// Puts the blocks of plain paths into `run`. Returns how many there are, how many instructions they run, and how
    /// far they move the stack pointer. This is where records are read at the pace at which the program writes them.
    fn take_plain<const LIMITED: bool>(&mut self, words: &[u32], stream: &Stream) -> (usize, u32, i64) {
        let room = room(stream);
        let plain = &self.tables.plain[..];
        let (mut count, mut instructions, mut change) = (0, 0u32, 0i64);
        for (&word, block) in words.iter().zip(&mut self.run) {
            let Some(&path) = plain.get(word as usize) else { break };
            if path.block == NOT_PLAIN.block || change + i64::from(path.peak) > room {
                break;
            }
            if LIMITED && u64::from(instructions) + u64::from(path.instructions) > self.left {
                break;
            }
            *block = path.block;
            instructions += u32::from(path.instructions);
            change += i64::from(path.added);
            count += 1;
        }
        (count, instructions, change)
    }

    /// Writes the path that the words begin with. Returns how many words its record has; none where they are not all
    /// there.
    fn path(
        &mut self,
        words: &[u32],
        stream: &mut Stream,
        translator: &Translator,
        recorder: &mut Recorder,
    ) -> Option<u32> {
        let path = words[0];
        let place = self.tables.places.get(path as usize).copied().unwrap_or(NOT_MET);
        let known = match self.tables.known.get(place as usize) {
            Some(known) => *known,
            _ => match self.learn(path, translator, recorder) {
                Some(known) => known,
                // The trace cannot be written any more.
                None => {
                    let length = translator.path(path).map_or(1, |p| record::path_len(translator.values_of(p)) / 4);
                    return (length as usize <= words.len()).then_some(length);
                }
            },
        };
        let length = record::path_len(known.values) / 4;
        if length as usize > words.len() {
            return None;
        }
        if stream.transferred && stream.sp > stream.sync.safe_up_to() {
            // When that was is not known any more.
            recorder.set_time(0);
            leave(stream, stream.sp, 0, recorder);
        }
        let (mut known, whole) = (known, known.instructions);
        if u64::from(known.instructions) > self.left {
            // The last instructions that may be written.
            let path = translator.path(path).map(|path| Path { executed: self.left as u16, ..path });
            match path.and_then(|path| self.describe(path, translator, recorder)) {
                Some(part) => known = part,
                None => return Some(length),
            }
        }
        let is_whole = known.instructions == whole;
        let pairs = words[1..(record::path_len(known.values) / 4) as usize].chunks_exact(2);
        self.numbers.clear();
        self.numbers.extend(pairs.map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32));
        self.left -= u64::from(known.instructions);
        if let Some(exits) = known.exits.filter(|_| is_whole && !stream.sync.is_empty())
            && let Some(path) = translator.path(path)
        {
            self.sps.clear();
            if let Some(recipe) = known.recipe {
                self.follow(recipe, stream);
            }
            if self.may_leave_inside(exits, stream) {
                self.in_pieces(path, exits, stream, translator, recorder);
                stream.sp = self.sps.last().copied().unwrap_or(stream.sp).wrapping_add_signed(known.added);
                stream.transferred = known.transfers;
                return Some(length);
            }
        }
        match known.recipe {
            None => {
                recorder.run(stream.id, known.block, &[], &self.numbers);
                stream.sp = stream.sp.wrapping_add_signed(known.added);
            }
            Some(recipe) => {
                self.follow(recipe, stream);
                recorder.run(stream.id, known.block, &self.sps, &self.values);
                stream.sp = self.sps.last().copied().unwrap_or(stream.sp).wrapping_add_signed(known.added);
            }
        }
        stream.transferred = known.transfers;
        Some(length)
    }

    /// Takes the stack pointers and the values for the trace from the numbers of a record.
    fn follow(&mut self, recipe: u32, stream: &Stream) {
        let recipe = &self.tables.recipes[recipe as usize];
        self.sps.clear();
        self.sps.extend(recipe.sps.iter().map(|&place| self.numbers[usize::from(place)]));
        self.values.clear();
        let (sps, numbers) = (&self.sps, &self.numbers);
        self.values.extend(recipe.values.iter().map(|taken| match taken {
            Taken::Value(place) => numbers[usize::from(*place)],
            Taken::Address(operand) => operand.address(stream.segments, stream.sp, sps, numbers),
        }));
    }

    fn learn(&mut self, number: u32, translator: &Translator, recorder: &mut Recorder) -> Option<Known> {
        let path = translator.path(number).expect("records hold numbers of paths that were given out");
        let known = self.describe(path, translator, recorder)?;
        if self.tables.places.len() <= number as usize {
            self.tables.places.resize(number as usize + 1, NOT_MET);
        }
        self.tables.places[number as usize] = self.tables.known.len() as u32;
        self.tables.known.push(known);
        let Known { block, instructions, values, recipe, added, exits, .. } = known;
        let peak = exits.map_or(0, |exits| pieces::peak(&self.tables.exits[exits as usize]));
        if let (0, None, Ok(added), Ok(peak)) = (values, recipe, i16::try_from(added), u16::try_from(peak)) {
            if self.tables.plain.len() <= number as usize {
                self.tables.plain.resize(number as usize + 1, NOT_PLAIN);
            }
            self.tables.plain[number as usize] = Plain { block: block.0, instructions, added, peak };
        }
        if translator.memory {
            self.learn_straight(number, known, peak);
        }
        Some(known)
    }

    /// Adds the block of a path to the trace, and says how executions of it are written.
    fn describe(&mut self, path: Path, translator: &Translator, recorder: &mut Recorder) -> Option<Known> {
        let superblock = translator.superblock(path.superblock);
        let Block { mut instructions, mut code, .. } = std::mem::take(&mut self.room);
        instructions.clear();
        instructions.extend(superblock.instructions().take(path.executed.into()));
        let bytes: usize = instructions.iter().map(|i| usize::from(i.len)).sum();
        let added = instructions.iter().rev().map_while(|i| match i.sp {
            SpEffect::Add(bytes) => Some(i64::from(bytes)),
            SpEffect::Recorded => None,
        });
        let (added, transfers) = (added.sum(), instructions.last()?.kind.transfers_control());
        let values = translator.values_of(path);
        let (recipe, addresses) = recipe(superblock, &instructions);
        let exits = pieces::exits(&instructions);
        code.clear();
        code.extend_from_slice(&superblock.code()[..bytes]);
        self.room = Block { instructions, code, addresses };
        let block = recorder.intern(&self.room, &translator.code.modules)?;
        let all_are_values = recipe.sps.is_empty()
            && recipe.values.len() == usize::from(values)
            && recipe.values.iter().zip(0..).all(|(taken, i)| matches!(taken, Taken::Value(place) if *place == i));
        let recipe = (!all_are_values).then(|| {
            self.tables.recipes.push(recipe);
            self.tables.recipes.len() as u32 - 1
        });
        let exits = (!exits.is_empty()).then(|| {
            self.tables.exits.push(exits);
            self.tables.exits.len() as u32 - 1
        });
        Some(Known { block, instructions: path.executed, values, recipe, exits, transfers, added })
    }
}
