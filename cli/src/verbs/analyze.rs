//! `lockstep analyze`: which values are the same for all threads, which are affine in the thread's number.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attribution::table::{Align, aligned, percent};
use clap::ValueEnum;
use transform::llvm::Module;
use transform::spmd::{Options, Program, Row, Subject, rows};

use crate::output::{WithColours, print, say};

/// Say which values, branches and memory accesses are uniform, affine in the thread's number, or divergent
///
/// C is compiled by clang 19 with -O2 -g first. Thread numbers are found in pthread start routines, OpenMP regions,
/// work-item intrinsics and calls of lockstep_tid() (include/lockstep.h); others are named by --tid.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// C source (.c, .cc, .cpp), or LLVM IR (.bc, .ll)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only this function; may be given again
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// An argument, counted from 0, that is a thread's number; may be given again
    #[arg(long, value_name = "FUNCTION:ARGUMENT", value_parser = thread_number)]
    tid: Vec<(String, usize)>,

    /// How loads of memory that threads share are taken: simt, one address has one value for lanes that load together;
    /// async, another thread may write between two loads. Default: simt for GPUs' code, else async
    #[arg(long, value_enum, value_name = "MODE")]
    loads: Option<Mode>,

    /// Functions that no thread is known to run, too
    #[arg(long)]
    all: bool,

    /// Print the rules by which this value of the IR is what it is, as in %add (needs --function)
    #[arg(long, value_name = "VALUE", requires = "function", conflicts_with = "json")]
    why: Option<String>,

    /// Print gated SSA form with what is known
    #[arg(long, conflicts_with_all = ["json", "why"])]
    gated: bool,

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

/// `FUNCTION:ARGUMENT`.
pub(super) fn thread_number(text: &str) -> Result<(String, usize), String> {
    let (function, argument) =
        text.rsplit_once(':').ok_or("a function and the number of its argument, as in work:0")?;
    let number = argument.parse().map_err(|_| format!("{argument} is no number of an argument; the first is 0"))?;
    Ok((function.to_owned(), number))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let source = args.file.extension().is_some_and(|e| ["c", "cc", "cpp", "cxx", "cl"].iter().any(|s| e == *s));
    let module =
        if source { transform::wrapper::to_module(&args.file, &args.arguments)? } else { Module::read(&args.file)? };
    module.verify().map_err(|text| transform::Error::BadIr { name: args.file.display().to_string(), text })?;
    let options = Options {
        mode: args.loads.map(|mode| match mode {
            Mode::Simt => transform::spmd::Mode::Simt,
            Mode::Async => transform::spmd::Mode::Async,
        }),
        thread_numbers: args.tid.clone(),
        ..Options::default()
    };
    let program = Program::of(&module, &options)?;
    if !program.has_threads() {
        say!(
            "lockstep: warning: analysing {}: no thread's number was found, so parameters may be anything; name one with \
             --tid FUNCTION:ARGUMENT, or mark it with lockstep_tid() of lockstep.h",
            args.file.display()
        );
    }
    let asked = |name: &str| args.function.is_empty() || args.function.iter().any(|f| f == name);
    let has = |name: &String| program.functions().iter().any(|f| f.function().name() == *name);
    if let Some(name) = args.function.iter().find(|name| !has(name)) {
        anyhow::bail!("analysing {}: it has no function {name} with a body", args.file.display());
    }
    if args.gated || args.why.is_some() {
        return texts(args, &program, &asked);
    }
    let all = args.all || !program.has_threads() || !args.function.is_empty();
    let rows: Vec<Row> =
        rows(&program).into_iter().filter(|r| asked(&r.function) && (all || r.is_run_by_threads)).collect();
    let text = if args.json { json(&args.file, &rows) } else { table(&rows) };
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
            None => anyhow::bail!("analysing {}: it has no value {why}; --gated lists them", facts.function().name()),
        }
    }
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}

/// How many rules are printed for a value.
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
