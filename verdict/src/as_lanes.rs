//! How lanes would run as a GPU's and as SIMD, what limits them, and what to try first: the page of `replay --verdict`.

use std::collections::BTreeMap;

use attribution::dependences::{self, Found, Runs};
use attribution::table::percent;
use attribution::{Source, memory};
use heuristics::Spec;
use replay::metrics::{Accesses, Causes, GpuMemory, Measure, Traffic};
use replay::view::View;
use replay::{MemoryOperands, Outcome, Prepared, ReplayOptions, linearized_fetches, memory_operands};
use serde::Serialize;
use serde_json::{Value, json};
use trace_format::{Pc, Trace};

use crate::lanes::{self, FEW};
use crate::{Judge, Machine, Question, Subject, Verdict, measures};

/// The lanes of the vectors of a SIMD unit: of 128, 256 and 512 bits, with elements of 32 bits.
const VECTORS: [usize; 3] = [4, 8, 16];

/// A compiler's masks join where branches do.
const SIMD_MODEL: &str = "ipdom";

/// How memory operands lie, as shares of all; the lanes' own stacks are left out.
#[derive(Clone, Copy, Debug)]
pub struct Lie {
    /// All lanes have one address.
    pub one: f64,
    /// Next to each other, up or down, by at most 8 bytes: the largest element of a vector.
    pub contiguous: f64,
    /// The rest.
    pub gathered: f64,
    /// Those of the rest that load; an operand that also stores is in both.
    pub gathers: f64,
    /// Those of the rest that store.
    pub scatters: f64,
}

/// The largest element of a vector, in bytes.
const ELEMENT: i128 = 8;

/// The figures for one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Gpu {
    /// Its name.
    pub machine: &'static str,
    /// The lanes of its warps.
    pub warp_size: usize,
    /// The efficiency, by its model.
    pub efficiency: f64,
    /// The least that its models say.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// Its loads and stores of global memory, where the trace has addresses.
    pub requests: Option<u64>,
    /// The sectors of 32 bytes that they take.
    pub sectors: Option<u64>,
}

/// The figures for vectors of so many lanes.
#[derive(Clone, Debug)]
pub struct Simd {
    /// So many.
    pub lanes: usize,
    /// The share of mask bits that are set, over all masks, with branches that skip code under an empty mask.
    pub skipped: f64,
    /// The same linearized: all code runs, except loops and calls.
    pub linearized: f64,
    /// How memory operands lie, where the trace has addresses.
    pub lie: Option<Lie>,
}

/// The page.
#[derive(Clone, Debug)]
pub struct AsLanes {
    /// What is a lane.
    pub what: String,
    /// How many there are.
    pub lanes: usize,
    /// The dependences between lanes, or the reason why they are unknown.
    needs: Result<Found, String>,
    /// As a GPU's.
    pub gpus: Vec<Gpu>,
    /// As SIMD.
    pub simd: Vec<Simd>,
    /// The verdict for an NVIDIA GPU.
    pub verdict: Option<Verdict>,
    /// The line whose accesses take most transactions, its share of them, and how many each takes.
    worst_line: Option<(String, f64, f64)>,
}

/// Makes the page of a view's lanes: of all, and those of them that are replayed (all, or a sample). Where a verdict on
/// them is known, it is taken if it is that of an NVIDIA GPU.
///
/// # Errors
/// When the trace cannot be read.
pub fn of(
    question: &Question,
    trace: &Trace,
    (whole, view): (&View, &View),
    mut known: Option<Verdict>,
    source: &mut Source,
) -> replay::Result<AsLanes> {
    let needs = match (view.summary().cut.is_some(), view.has_memory()) {
        (false, _) => Err("threads ran at once already".to_owned()),
        (true, false) => Err("unknown, since the trace has no addresses (trace --memory records them)".to_owned()),
        (true, true) => Ok(Found::of(whole, &question.lanes.lanes, source)?),
    };
    let prepared = Prepared::new(view, true)?;
    let mut page = AsLanes {
        what: lanes::region(view.summary()),
        lanes: whole.lanes().len(),
        needs,
        gpus: Vec::new(),
        simd: Vec::new(),
        verdict: None,
        worst_line: None,
    };
    let of_memory = || view.has_memory().then(Traffic::measure);
    for machine in [Machine::Nvidia, Machine::Amd] {
        // The range of a machine that was not typed is worked out only where that is quick.
        let typed = (machine != Machine::Nvidia || view.summary().kept <= FEW).then_some(machine);
        let subject = Subject::of(typed, Vec::new());
        let of_machine: Vec<Measure> =
            of_memory().into_iter().chain(view.has_memory().then(GpuMemory::measure)).collect();
        let asked = if machine == Machine::Nvidia { measures(&of_machine, view) } else { of_machine };
        let options = ReplayOptions { measures: asked, warp_size: None, ..question.replay.clone() };
        let options = subject.options(options, view);
        let outcomes = prepared.replay(&subject.models, &options, None, &|_, _| {})?;
        let range = subject.range(&prepared, view, source, outcomes.first(), &options)?;
        let (Some(range), Some(outcome)) = (range, outcomes.first().filter(|o| o.is_complete())) else { continue };
        let figure = range.figure();
        page.gpus.push(Gpu {
            machine: figure.machine.unwrap_or_default(),
            warp_size: outcome.warp_size,
            efficiency: figure.efficiency,
            least: figure.least,
            most: figure.most,
            requests: outcome.found().map(GpuMemory::requests),
            sectors: outcome.found().map(GpuMemory::sectors),
        });
        if machine == Machine::Nvidia {
            page.worst_line = worst_line(outcome, source);
            let model = &subject.models[0];
            let judge = Judge { trace, view, question, model, options: &options };
            let is_same =
                |verdict: &Verdict| (verdict.figure.machine, verdict.figure.lanes) == (figure.machine, figure.lanes);
            page.verdict = Some(match known.take().filter(is_same) {
                Some(verdict) => verdict,
                None => judge.judge(&prepared, outcome, figure, source)?,
            });
        }
    }
    let operands = if view.has_memory() { memory_operands(view.segments()) } else { BTreeMap::new() };
    let model = [Spec::parse(SIMD_MODEL).expect("a model's name")];
    for lanes in VECTORS {
        let measures = std::iter::once(Causes::measure()).chain(of_memory()).collect();
        let options = ReplayOptions { measures, warp_size: Some(lanes), ..question.replay.clone() };
        let outcomes = prepared.replay(&model, &options, None, &|_, _| {})?;
        let Some(outcome) = outcomes.first().filter(|o| o.is_complete() && o.counts.fetches() > 0) else { continue };
        let causes = outcome.found::<Causes>();
        let linearized = causes.and_then(|causes| linearized_fetches(prepared.program(), causes));
        let used = |fetches: u64| outcome.counts.thread_instructions() as f64 / (fetches.max(1) as f64 * lanes as f64);
        page.simd.push(Simd {
            lanes,
            skipped: used(outcome.counts.fetches()),
            linearized: used(linearized.unwrap_or(outcome.counts.fetches())),
            lie: outcome.found::<Traffic>().map(|traffic| lie(traffic, &operands)),
        });
    }
    Ok(page)
}

/// Accesses except those to the lanes' own stacks, which would be registers.
fn lie(traffic: &Traffic, operands: &BTreeMap<Pc, MemoryOperands>) -> Lie {
    let (mut one, mut contiguous, mut all) = (0, 0, 0);
    let (mut gathers, mut scatters) = (0.0, 0.0);
    for (pc, accesses) in traffic.by_instruction.iter().filter(|(_, accesses)| !is_own(accesses)) {
        let near = accesses.strides.counts.iter().filter(|(stride, _)| stride.abs() <= ELEMENT);
        let near = near.map(|(_, count)| count).sum::<u64>();
        one += accesses.classes.uniform;
        contiguous += near;
        all += accesses.accesses();
        // Of an instruction with several operands, as `movs`, each counts the same.
        let rest = (accesses.accesses() - accesses.classes.uniform - near) as f64;
        if let Some(of) = operands.get(pc) {
            gathers += rest * of.loads as f64 / of.all as f64;
            scatters += rest * of.stores as f64 / of.all as f64;
        }
    }
    let of_all = |n: f64| n / all.max(1) as f64;
    let share = |n: u64| of_all(n as f64);
    Lie {
        one: share(one),
        contiguous: share(contiguous),
        gathered: share(all - one - contiguous),
        gathers: of_all(gathers),
        scatters: of_all(scatters),
    }
}

fn is_own(accesses: &Accesses) -> bool {
    accesses.heap.accesses == 0
}

/// The line with the most transactions, without accesses to lanes' own stacks.
fn worst_line(outcome: &Outcome, source: &mut Source) -> Option<(String, f64, f64)> {
    let traffic = outcome.found::<Traffic>()?;
    let rows = memory::rows(memory::By::Line, traffic, source);
    let of_heap = |row: &memory::Row| row.accesses.heap.transactions[0];
    let all: u64 = rows.iter().map(of_heap).sum();
    let worst = rows.iter().max_by_key(|row| of_heap(row))?;
    let accesses = worst.accesses.heap.accesses;
    (accesses > 0).then(|| {
        let each = of_heap(worst) as f64 / accesses as f64;
        (worst.subject.short(), of_heap(worst) as f64 / all.max(1) as f64, each)
    })
}

/// The lanes of an access are far apart if a warp needs more transactions for it than this: 32 lanes of 8 bytes in a
/// row need 8.
const MANY: f64 = 8.5;

/// The least gain in efficiency for which a remedy is worth trying first.
const WORTH_TRYING: f64 = 0.03;

impl AsLanes {
    /// In words, whether lanes may run in any order.
    #[must_use]
    pub fn runs(&self) -> (Option<Runs>, String) {
        match &self.needs {
            Ok(found) => {
                let (runs, text) = dependences::verdict(&found.rows);
                (Some(runs), text)
            }
            Err(why) => (None, why.clone()),
        }
    }

    /// What to try first, and what next.
    #[must_use]
    pub fn first(&self) -> String {
        let mut steps: Vec<String> = Vec::new();
        match self.runs() {
            (Some(Runs::No), text) => {
                return format!("remove the dependence; until then no figure above holds: it {text}");
            }
            _ if self.lanes < 2 => {
                return "choose a loop with more iterations: a single lane has no other to run with".to_owned();
            }
            (Some(Runs::After), text) => steps.push(format!("change it: it {text}")),
            _ => {}
        }
        if let Some(verdict) = &self.verdict {
            let pays = |remedy: &f64| remedy - verdict.figure.efficiency >= WORTH_TRYING;
            let remedies = verdict.places.iter().filter_map(|place| Some((place, place.remedy.as_ref()?)));
            let first = remedies.into_iter().find(|(_, remedy)| pays(&remedy.efficiency));
            steps.extend(first.map(|(place, remedy)| format!("at {}: {}", place.subject.short(), remedy.text)));
        }
        if let Some((line, share, each)) = self.worst_line.as_ref().filter(|(_, _, each)| *each > MANY) {
            steps.push(format!(
                "lay data out so that neighbouring lanes access neighbouring addresses at {line}: it takes {each:.1} \
                 transactions an access, {} of all",
                percent(*share)
            ));
        }
        if steps.is_empty() {
            return "run it in parallel: the trace shows nothing against it".to_owned();
        }
        steps.join("; then ")
    }

    /// What limits it, in a sentence.
    #[must_use]
    pub fn limit(&self) -> String {
        let places = self.verdict.as_ref().map_or(&[][..], |verdict| &verdict.places[..]);
        let place = places.first().map(|place| {
            let share = percent(place.share);
            format!("{share} of the lost lane-slots are lost at {} ({})", place.subject.short(), place.causes())
        });
        let line = self.worst_line.as_ref().map(|(line, share, each)| {
            format!("{} of the transactions are those of {line}, {each:.1} an access", percent(*share))
        });
        let all: Vec<String> = place.into_iter().chain(line).collect();
        if all.is_empty() { "nothing: no lane-slots are lost".to_owned() } else { all.join("; ") }
    }

    /// For the page of `report`, which has the verdict apart.
    #[must_use]
    pub fn on_page(&self) -> Value {
        let mut json = self.json();
        json["verdict"].take();
        json
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let (runs, text) = self.runs();
        let simd = |simd: &Simd| {
            json!({
                "lanes": simd.lanes,
                "masks_set_skipping": simd.skipped,
                "masks_set_linearized": simd.linearized,
                "contiguous": simd.lie.map(|lie| lie.contiguous),
                "one_address": simd.lie.map(|lie| lie.one),
                "gathered": simd.lie.map(|lie| lie.gathered),
                "gathers": simd.lie.map(|lie| lie.gathers),
                "scatters": simd.lie.map(|lie| lie.scatters),
            })
        };
        json!({
            "what": self.what,
            "lanes": self.lanes,
            "runs": runs.map(Runs::name),
            "dependences": text,
            "rows": self.needs.as_ref().ok().map(|found| dependences::json(&found.rows)),
            "gpu": self.gpus,
            "simd": self.simd.iter().map(simd).collect::<Vec<_>>(),
            "limit": self.limit(),
            "first": self.first(),
            "verdict": self.verdict.as_ref().map(Verdict::json),
        })
    }
}
