//! `lockstep analyze`: which values are the same for all threads, which are affine in the thread's number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attribution::table::{Align, aligned, percent};
use clap::ValueEnum;
use transform::llvm::Module;
use transform::spmd::{Class, Options, Program, Row, Subject, rows};

use crate::output::{WithColours, print, say};

/// Say which values, branches and memory accesses are uniform, affine in the thread's number, or divergent
///
/// C is compiled by clang 19 with -O2 -g first. Thread numbers are found in pthread start routines, OpenMP regions,
/// work-item intrinsics and calls of lockstep_tid() (include/lockstep.h); name others with --tid.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// C source (.c, .cc, .cpp), or LLVM IR (.bc, .ll)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only this function; may be repeated
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// An argument, counted from 0, that is a thread's number; may be repeated
    #[arg(long, value_name = "FUNCTION:ARGUMENT", value_parser = thread_number)]
    tid: Vec<(String, usize)>,

    /// What is a lane, if not a thread: iterations, of the loops that OpenMP shares out to threads; `tid` is then the
    /// iteration's number. C is compiled without unrolling and vectorising
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "tid")]
    lanes: Option<Lanes>,

    /// How to treat loads of memory that threads share: simt, one address has one value for lanes that load together;
    /// async, another thread may write between two loads. Default: simt for GPU code, else async
    #[arg(long, value_enum, value_name = "MODE")]
    loads: Option<Mode>,

    /// What to take for granted: no-wrap, that no integer computation of the program overflows, not even where
    /// unsigned numbers or casts may; claims then hold for runs in which none does
    #[arg(long, value_enum, value_name = "WHAT")]
    assume: Option<Assumed>,

    /// Also functions that no known thread runs
    #[arg(long)]
    all: bool,

    /// Print the rules that decided this value of the IR, as in %add (needs --function)
    #[arg(long, value_name = "VALUE", requires = "function", conflicts_with = "json")]
    why: Option<String>,

    /// Print gated SSA form with what is known about each value
    #[arg(long, conflicts_with_all = ["json", "why"])]
    gated: bool,

    /// Print the source, with the classes of each line's values, branches and accesses beside it
    #[arg(long, conflicts_with_all = ["json", "why", "gated"])]
    annotate: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Arguments for the compiler
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Simt,
    Async,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lanes {
    Iterations,
}

/// What keeps loops as the source has them, so that an iteration is one turn of its loop.
const WHOLE_LOOPS: [&str; 3] = ["-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops"];

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Assumed {
    NoWrap,
}

/// `FUNCTION:ARGUMENT`.
pub(super) fn thread_number(text: &str) -> Result<(String, usize), String> {
    let (function, argument) =
        text.rsplit_once(':').ok_or("give a function and the number of its argument, as in work:0")?;
    let number =
        argument.parse().map_err(|_| format!("{argument} is not the number of an argument; the first is 0"))?;
    Ok((function.to_owned(), number))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let source = args.file.extension().is_some_and(|e| ["c", "cc", "cpp", "cxx", "cl"].iter().any(|s| e == *s));
    let iterations = args.lanes == Some(Lanes::Iterations);
    let kept = WHOLE_LOOPS.iter().filter(|_| iterations).map(OsString::from);
    let arguments: Vec<OsString> = kept.chain(args.arguments.iter().cloned()).collect();
    let module =
        if source { transform::wrapper::to_module(&args.file, &arguments)? } else { Module::read(&args.file)? };
    module.verify().map_err(|text| transform::Error::BadIr { name: args.file.display().to_string(), text })?;
    let options = Options {
        mode: args.loads.map(|mode| match mode {
            Mode::Simt => transform::spmd::Mode::Simt,
            Mode::Async => transform::spmd::Mode::Async,
        }),
        thread_numbers: args.tid.clone(),
        iterations,
        no_wrap: args.assume == Some(Assumed::NoWrap),
        ..Options::default()
    };
    let program = Program::of(&module, &options)?;
    if iterations && !program.has_threads() {
        say!(
            "lockstep: warning: analysing {}: no loop was found that OpenMP shares out to threads, or all of them were \
             unrolled: build with clang and -fopenmp",
            args.file.display()
        );
    } else if !program.has_threads() {
        say!(
            "lockstep: warning: analysing {}: no thread number was found, so parameters may have any value; name one \
             with --tid FUNCTION:ARGUMENT, or mark it with lockstep_tid() from lockstep.h",
            args.file.display()
        );
    }
    let asked = |name: &str| args.function.is_empty() || args.function.iter().any(|f| f == name);
    let has = |name: &String| program.functions().iter().any(|f| f.function().name() == *name);
    if let Some(name) = args.function.iter().find(|name| !has(name)) {
        anyhow::bail!("analysing {}: there is no function {name} with a body", args.file.display());
    }
    if args.gated || args.why.is_some() {
        return texts(args, &program, &asked);
    }
    let all = args.all || !program.has_threads() || !args.function.is_empty();
    let rows: Vec<Row> =
        rows(&program).into_iter().filter(|r| asked(&r.function) && (all || r.is_run_by_threads)).collect();
    let text = match () {
        () if args.json => json(&args.file, &rows),
        () if args.annotate => annotated(&rows),
        () => table(&rows),
    };
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}

/// Gated SSA form, or the rules behind one value.
fn texts(args: &Args, program: &Program<'_>, asked: &dyn Fn(&str) -> bool) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for facts in program.functions().iter().filter(|f| asked(&f.function().name())) {
        let analysis = facts.analysis();
        let Some(why) = &args.why else {
            writeln!(text, "{}:\n{}", facts.function().name(), analysis.text())?;
            continue;
        };
        let gated = analysis.gated();
        let node = (0..gated.count() as u32).map(transform::spmd::ValueId).find(|&n| gated.name(n) == *why);
        match node {
            Some(node) => text += &analysis.explain(node, MOST_LINES),
            None => anyhow::bail!("analysing {}: there is no value {why}; --gated lists them", facts.function().name()),
        }
    }
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}

/// The most rules that are printed for a value.
const MOST_LINES: usize = 200;

fn place(row: &Row) -> String {
    row.place.as_ref().map_or_else(String::new, |p| format!("{}:{}", p.line, p.column))
}

fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let (these, others) = rest.split_at(rest.iter().take_while(|r| r.function == first.function).count());
        rest = others;
        let _ = writeln!(text, "{}", first.function);
        let mut lines: Vec<Vec<String>> =
            vec![["line", "what", "name", "class", "c1·tid + c2", "rule"].map(str::to_owned).to_vec()];
        for row in these {
            lines.push(vec![
                place(row),
                row.subject.name().to_owned(),
                row.name.clone(),
                row.class.name().to_owned(),
                row.fact.clone(),
                row.rule.clone(),
            ]);
        }
        text += &aligned(&lines, |column| if column == 0 { Align::Right } else { Align::Left });
        text += &summary(these);
        text.push('\n');
    }
    text
}

/// The files that rows are about: their lines and some around them, with what is known in columns before the text. u is
/// uniform, a affine (for addresses with the stride in bytes), d divergent.
fn annotated(rows: &[Row]) -> String {
    let mut by_file: BTreeMap<&str, BTreeMap<u32, Vec<&Row>>> = BTreeMap::new();
    for row in rows {
        if let Some(place) = &row.place {
            by_file.entry(&place.file).or_default().entry(place.line).or_default().push(row);
        }
    }
    let mut text = String::new();
    for (file, lines) in by_file {
        let source = std::fs::read_to_string(file);
        let source: Vec<&str> = source.as_deref().map(|source| source.lines().collect()).unwrap_or_default();
        let _ = writeln!(text, "{file}{}", if source.is_empty() { " (its text was not found)" } else { "" });
        let mut table: Vec<Vec<String>> =
            vec![["line", "values", "branches", "loads", "stores", "atomics", "source"].map(str::to_owned).to_vec()];
        let mut before = 0;
        for (&line, these) in &lines {
            // Short gaps are shown, long ones left out.
            let from = if line - before <= MOST_GAP + 1 { before + 1 } else { line };
            if from > before + 1 {
                table.push(vec!["…".to_owned()]);
            }
            for number in from..=line {
                let of = |subject: Subject| {
                    let marks =
                        these.iter().filter(|row| number == line && row.subject == subject).map(|row| mark(row));
                    marks.collect::<Vec<_>>().join(" ")
                };
                table.push(vec![
                    number.to_string(),
                    if number == line { counts(these) } else { String::new() },
                    of(Subject::Branch),
                    of(Subject::Load),
                    of(Subject::Store),
                    of(Subject::Atomic),
                    source.get(number as usize - 1).map_or_else(String::new, |text| text.replace('\t', "    ")),
                ]);
            }
            before = line;
        }
        text += &aligned(&table, |column| if column == 0 { Align::Right } else { Align::Left });
        text.push('\n');
    }
    text
}

/// The longest gap that is shown between two lines about which something is known.
const MOST_GAP: u32 = 3;

fn mark(row: &Row) -> String {
    match (row.class, row.subject, row.stride) {
        (Class::Uniform, ..) => "u".to_owned(),
        (Class::Affine, Subject::Load | Subject::Store | Subject::Atomic, Some(stride)) => format!("a{stride}"),
        (Class::Affine, ..) => "a".to_owned(),
        (Class::Divergent, ..) => "d".to_owned(),
    }
}

/// The number of a line's values in each class.
fn counts(rows: &[&Row]) -> String {
    let of = |class: Class| rows.iter().filter(|row| row.subject == Subject::Value && row.class == class).count();
    let all = [(Class::Uniform, "u"), (Class::Affine, "a"), (Class::Divergent, "d")];
    let parts = all.map(|(class, name)| (of(class), name)).into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, name)| format!("{count}{name}")).collect::<Vec<_>>().join(" ")
}

/// How many of each there are.
fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    let kinds: [(&str, &dyn Fn(Subject) -> bool); 3] = [
        ("values", &|s| matches!(s, Subject::Value | Subject::Parameter)),
        ("branches", &|s| s == Subject::Branch),
        ("accesses", &|s| matches!(s, Subject::Load | Subject::Store | Subject::Atomic)),
    ];
    for (name, is) in kinds {
        let these: Vec<&Row> = rows.iter().filter(|r| is(r.subject)).collect();
        let count = |class: &str| these.iter().filter(|r| r.class.name() == class).count();
        let share = |class: &str| percent(count(class) as f64 / these.len().max(1) as f64);
        let _ = writeln!(
            text,
            "{name}: {}, uniform {} ({}), affine {} ({}), divergent {} ({})",
            these.len(),
            count("uniform"),
            share("uniform"),
            count("affine"),
            share("affine"),
            count("divergent"),
            share("divergent"),
        );
    }
    text
}

fn json(file: &Path, rows: &[Row]) -> String {
    let rows: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            serde_json::json!({
                "function": row.function,
                "run_by_threads": row.is_run_by_threads,
                "file": row.place.as_ref().map(|p| p.file.clone()),
                "line": row.place.as_ref().map(|p| p.line),
                "column": row.place.as_ref().map(|p| p.column),
                "what": row.subject.name(),
                "name": row.name,
                "class": row.class.name(),
                "fact": row.fact,
                "stride": row.stride,
                "bytes": row.bytes,
                "rule": row.rule,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::json!({ "file": file.display().to_string(), "rows": rows }))
}
