//! `lockstep verify`: tests what the divergence analysis proves against what the threads did.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use attribution::Source;
use attribution::table::{Align, aligned, grouped, percent};
use heuristics::Spec;
use replay::{Prepared, ReplayOptions};
use rustc_hash::FxHashMap;
use trace_format::Pc;
use transform::llvm::Module;
use transform::spmd::{Claim, Options, Program, Rule, claims};

use crate::exit;
use crate::output::{WithColours, print, say};
use crate::typed::lanes::LaneKind;
use crate::typed::selection::{self, OneView};
use crate::verified::code::{self, Code, Made};
use crate::verified::comparison::{About, Class, Judged, Precision, Share, judge};
use crate::verified::observations::{Example, Observed, Watch, measure};

/// Test what `lockstep analyze` proves about a program against a trace of it
///
/// Build the program with `lockstep cc --keep-ir FOLDER`, and trace it with `trace --memory`. Under ipdom, lanes that
/// are together must never part at a branch proved uniform, and an access proved uniform or affine must be so, with its
/// stride, in every fetch. What contradicts a proof is a bug in lockstep, and is shown with the rules behind it. What
/// was called divergent but never was is counted: it shows the analysis' precision. Loops that only look like waiting
/// keep all iterations here, since lanes that lost iterations would meet in different ones.
#[derive(clap::Args)]
#[command(mut_arg("spin", |spin| spin.default_value("keep")))]
pub(crate) struct Args {
    /// The trace: what `trace --memory` wrote
    trace: PathBuf,

    /// The folder of --keep-ir, if it was moved
    #[arg(long, value_name = "FOLDER")]
    ir: Option<PathBuf>,

    /// An argument, counted from 0, that is a thread's number; may be repeated
    #[arg(long, value_name = "FUNCTION:ARGUMENT", value_parser = super::analyze::thread_number)]
    tid: Vec<(String, usize)>,

    /// The model, which says where lanes that parted meet again
    #[arg(long, short = 'H', visible_alias = "model", value_name = "MODEL", default_value = "ipdom")]
    heuristic: String,

    #[command(flatten)]
    selection: OneView,

    /// How to group the figures of precision
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = By::Function)]
    by: By,

    /// How many accesses and branches that could not be matched to show, those that ran most first
    #[arg(long, value_name = "N", default_value_t = 0)]
    unmatched: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Apply a rule of the analysis wrongly, so that this can be seen to notice
    #[arg(long, value_name = "RULE", value_parser = rule, hide = true)]
    broken: Option<Rule>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Program,
    Function,
    Line,
}

fn rule(name: &str) -> Result<Rule, String> {
    let all = || Rule::PAPER.into_iter();
    all().find(|rule| rule.name() == name).ok_or_else(|| {
        format!("there is no such rule; there are {}", all().map(Rule::name).collect::<Vec<_>>().join(", "))
    })
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = selection::open(&args.trace)?;
    let refuse = |text: String| Err(replay::Error::Request(text).into());
    if !trace.meta().memory {
        return refuse(format!(
            "{}: the trace has no memory addresses: record it with trace --memory",
            args.trace.display()
        ));
    }
    let mut source = Source::new(&trace);
    let code = Code::of(&trace, &mut source);
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if code.units.is_empty() {
        return refuse(format!(
            "{}: no line of its program leads to IR; build the program with lockstep cc --keep-ir FOLDER and trace \
             it again",
            args.trace.display()
        ));
    }
    let modules: Vec<Module> =
        code.units.iter().map(|path| code::read(path, args.ir.as_deref())).collect::<anyhow::Result<_>>()?;
    let iterations = matches!(args.selection.lanes, Some(LaneKind::Iterations | LaneKind::Marks));
    let mut programs: Vec<Program<'_>> = Vec::new();
    for module in &modules {
        let functions = module.functions();
        let has = |name: &str| functions.iter().any(|f| f.name() == name);
        let thread_numbers = args.tid.iter().filter(|(name, _)| has(name)).cloned().collect();
        let options = Options { thread_numbers, iterations, broken: args.broken, ..Options::default() };
        programs.push(Program::of(module, &options)?);
    }
    let claimed: Vec<Vec<Claim>> = modules.iter().zip(&programs).map(|(m, p)| claims(m, p)).collect();
    let places = code.places(&claimed, &source);
    let watched: FxHashMap<Pc, Watch> = places
        .iter()
        .map(|p| {
            let address = matches!(p.access, Some(code::Origin::Matched(_)));
            (p.pc, Watch { branch: p.branch.is_some(), address, maybe_frame: p.maybe_frame })
        })
        .collect();
    let view = args.selection.view(&trace)?;
    let options = ReplayOptions { measures: vec![measure(Arc::new(watched))], ..args.selection.options() };
    let models = Spec::parse_list(&args.heuristic)?;
    let needs_graph = models.iter().any(|spec| spec.entry().needs_control_flow);
    let outcomes = Prepared::new(&view, needs_graph)?.replay(&models, &options, None, &|_, _| {})?;
    let mut observed = Observed::default();
    for outcome in outcomes.iter().filter(|o| o.is_complete()) {
        if let Some(found) = outcome.found::<Observed>() {
            replay::metrics::Measured::merge(&mut observed, found);
        }
    }
    if !outcomes.iter().any(replay::Outcome::is_complete) {
        say!("lockstep: {} deadlocks on this trace: nothing was verified", args.heuristic);
        return Ok(ExitCode::from(exit::DEADLOCK));
    }
    let judged = judge(&places, &claimed, &observed);
    let found = Found { trace: &args.trace, modules: &modules, programs: &programs, claims: &claimed, judged: &judged };
    let text = if args.json { found.json()? } else { found.text(args, &source) };
    print(&text, WithColours::No)?;
    Ok(if judged.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::BUG) })
}

/// The results, with what is needed to name places.
struct Found<'a> {
    trace: &'a Path,
    modules: &'a [Module],
    programs: &'a [Program<'a>],
    claims: &'a [Vec<Claim>],
    judged: &'a Judged,
}

/// The most rules that are printed for a violation.
const MOST_LINES: usize = 60;

impl Found<'_> {
    fn claim(&self, made: Made) -> Option<&Claim> {
        self.claims[made.unit].get(made.number)
    }

    fn function(&self, made: Made) -> String {
        let claim = self.claim(made).map(|claim| claim.function);
        claim.map_or_else(|| "?".to_owned(), |f| self.programs[made.unit].functions()[f].function().name())
    }

    /// `fft.c:12:3 (store in work)`.
    fn place(&self, made: Made) -> String {
        let Some(claim) = self.claim(made) else { return "?".to_owned() };
        let place =
            claim.place.as_ref().map_or_else(|| "?".to_owned(), |p| format!("{}:{}:{}", p.file, p.line, p.column));
        format!("{place} ({} in {})", claim.opcode, self.function(made))
    }

    /// The rules that a claim follows from.
    fn path(&self, made: Made) -> String {
        let Some(claim) = self.claim(made) else { return String::new() };
        let facts = &self.programs[made.unit].functions()[claim.function];
        claim.because.map_or_else(String::new, |node| facts.analysis().explain(node, MOST_LINES))
    }

    /// Precision by program, function or line.
    fn precision(&self, by: By) -> BTreeMap<(String, About), (Precision, u64)> {
        let mut all: BTreeMap<(String, About), (Precision, u64)> = BTreeMap::new();
        for compared in &self.judged.compared {
            let key = match by {
                By::Program => "all".to_owned(),
                By::Function => self.function(compared.made),
                By::Line => {
                    let place = self.claim(compared.made).and_then(|c| c.place.clone());
                    let place = place.map_or_else(|| "?".to_owned(), |p| format!("{}:{:>5}", p.file, p.line));
                    format!("{place} {}", self.function(compared.made))
                }
            };
            let (precision, executions) = all.entry((key, compared.about)).or_default();
            precision.count(compared);
            *executions += compared.executions;
        }
        all
    }

    fn text(&self, args: &Args, source: &Source) -> String {
        let mut text = String::new();
        for violation in &self.judged.violations {
            let _ = writeln!(
                text,
                "VIOLATION: {} at {}, {}: proved {}, contradicted in {} fetches{}",
                violation.about.name(),
                self.place(violation.made),
                source.place(violation.pc),
                violation.claimed,
                grouped(violation.fetches),
                violation.example.as_ref().map_or_else(String::new, shown),
            );
            for line in self.path(violation.made).lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        for (about, share) in &self.judged.shares {
            let _ = writeln!(text, "{}", share_line(*about, share, self.judged.tests.get(about).copied().unwrap_or(0)));
        }
        for (executions, about, pc, line) in self.judged.unmatched.iter().take(args.unmatched) {
            let place = line.map_or_else(|| "no line of the IR".to_owned(), |made| self.place(made));
            let _ = writeln!(
                text,
                "unmatched: {} at {} ({}), {} executions",
                about.name(),
                source.place(*pc),
                place,
                grouped(*executions)
            );
        }
        let mut lines: Vec<Vec<String>> = vec![
            ["", "", "executions", "uniform", "affine", "divergent", "never so", "affine at most", "precision"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for ((key, about), (p, executions)) in self.precision(args.by) {
            lines.push(vec![
                key,
                about.name().to_owned(),
                grouped(executions),
                p.uniform.to_string(),
                p.affine.to_string(),
                p.divergent.to_string(),
                p.always_uniform.to_string(),
                if about == About::Access { p.always_affine.to_string() } else { String::new() },
                p.precision().map_or_else(String::new, percent),
            ]);
        }
        text += "\nInstructions of the IR that lanes ran together, by what is proved; of the divergent ones, those that never \
                 were\n";
        text += &aligned(&lines, |column| if column < 2 { Align::Left } else { Align::Right });
        let _ = writeln!(text, "violations: {} (of {} files of IR)", self.judged.violations.len(), self.modules.len());
        text
    }

    fn json(&self) -> anyhow::Result<String> {
        let rows = |by: By| -> Vec<serde_json::Value> {
            let all = self.precision(by).into_iter();
            all.map(|((key, about), (p, executions))| {
                serde_json::json!({
                    "name": key, "about": about.name(), "executions": executions, "uniform": p.uniform,
                    "affine": p.affine, "divergent": p.divergent, "divergent_always_uniform": p.always_uniform,
                    "divergent_always_affine": p.always_affine, "precision": p.precision(),
                })
            })
            .collect()
        };
        let shares: serde_json::Map<String, serde_json::Value> = About::ALL
            .into_iter()
            .map(|about| {
                let share = self.judged.shares.get(&about).copied().unwrap_or_default();
                let tests = self.judged.tests.get(&about).copied().unwrap_or(0);
                let value = serde_json::json!({
                    "matched": share.matched, "unmatched": share.unmatched, "generated": share.generated,
                    "no_ir": share.no_ir, "matched_share": share.matched_share(), "tested_fetches": tests,
                });
                (about.name().to_owned(), value)
            })
            .collect();
        let violations: Vec<serde_json::Value> = self
            .judged
            .violations
            .iter()
            .map(|v| {
                serde_json::json!({
                    "about": v.about.name(), "place": self.place(v.made), "function": self.function(v.made),
                    "pc": v.pc.to_string(), "claimed": v.claimed, "fetches": v.fetches,
                    "example": v.example.as_ref().map(|e| &e.lanes), "path": self.path(v.made),
                })
            })
            .collect();
        let compared: Vec<serde_json::Value> = self
            .judged
            .compared
            .iter()
            .map(|c| {
                serde_json::json!({
                    "about": c.about.name(), "place": self.place(c.made), "function": self.function(c.made),
                    "claimed": name(c.claimed), "was": name(c.was), "executions": c.executions,
                })
            })
            .collect();
        let all = serde_json::json!({
            "trace": self.trace.display().to_string(), "shares": shares, "violations": violations,
            "program": rows(By::Program), "functions": rows(By::Function), "lines": rows(By::Line),
            "instructions": compared,
        });
        Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
    }
}

fn name(class: Class) -> &'static str {
    match class {
        Class::Uniform => "uniform",
        Class::Affine => "affine",
        Class::Divergent => "divergent",
    }
}

fn shown(example: &Example) -> String {
    let lanes: Vec<String> = example.lanes.iter().map(|(lane, value)| format!("{lane}: {value:#x}")).collect();
    format!("; in warp {}, lanes {}", example.warp, lanes.join(", "))
}

fn share_line(about: About, share: &Share, tests: u64) -> String {
    let (what, from) = match about {
        About::Branch => ("branches", "a branch"),
        About::Access => ("accesses", "an access"),
    };
    format!(
        "{what}: {} of {} executions matched to {from} of the IR ({}), {} fetches tested a proof; besides these, {} \
         from code generation and {} of code without IR",
        grouped(share.matched),
        grouped(share.matched + share.unmatched),
        percent(share.matched_share()),
        grouped(tests),
        grouped(share.generated),
        grouped(share.no_ir),
    )
}
