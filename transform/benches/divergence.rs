//! What divergence analysis costs, and what it finds.
//!
//! - Functions of 10 to 100,000 instructions in straight lines, ifs and loops: time for each, with the fit of a power.
//! - With `LOCKSTEP_IR=FOLDER`, the functions of all `.ll` files there as rows of CSV: variables (γ, μ and η counted,
//!   as the paper counts them), time of both analyses, and how many values each calls what. The last lines sum up, with
//!   the coefficient of determination of time against variables. `LOCKSTEP_ROWS=FILE` takes the rows.
//!
//! Time is this thread's on the processor, the least of several runs of the solver over a gated form that is there; the
//! time to make that form is a column of its own. Short runs are timed many at once, so that the clock's own time does
//! not count. Wall time would tell of other programs: runs that last longer than the kernel's time slice include
//! theirs, shorter ones do not, and what is linear seems to bend. Run by `cargo bench -p transform --bench divergence`.

use std::fmt::Write as _;
use std::path::PathBuf;

use nix::time::{ClockId, clock_gettime};

use divergence::{Analysis, Boolean, Class, Gated, Mode, Op, Options};
use transform::llvm::Module;
use transform::spmd::{Program, ValueId};

/// What this thread has had of the processor, in microseconds.
fn processor_us() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("threads have a clock");
    time.tv_sec() as f64 * 1e6 + time.tv_nsec() as f64 / 1e3
}

/// The least time of `runs` runs, in microseconds: others lost the caches to other programs. Runs of less than
/// [`LEAST_US`] are repeated within one.
fn least(runs: usize, mut run: impl FnMut()) -> f64 {
    let mut timed = |times: usize| {
        let start = processor_us();
        (0..times).for_each(|_| run());
        (processor_us() - start) / times as f64
    };
    let once = timed(1).max(0.1);
    let times = (LEAST_US / once).ceil().max(1.0) as usize;
    (0..runs).map(|_| timed(times)).fold(f64::INFINITY, f64::min)
}

/// So long is what is timed, at least: the clock takes about 0.5 us.
const LEAST_US: f64 = 200.0;

/// A function of about so many instructions: an if, a loop, arithmetic, again and again.
fn function(instructions: usize) -> String {
    let mut text = "target triple = \"amdgcn-amd-amdhsa\"\ndeclare i32 @llvm.amdgcn.workitem.id.x()\n\
                    define amdgpu_kernel void @f(i32 %n) {\nentry:\n  %x0 = call i32 @llvm.amdgcn.workitem.id.x()\n"
        .to_owned();
    let parts = (instructions / 15).max(1);
    let _ = writeln!(text, "  br label %p0");
    for p in 0..parts {
        let _ = write!(
            text,
            "p{p}:\n  %y{p} = mul i32 %x{p}, 3\n  %c{p} = icmp ult i32 %y{p}, %n\n  br i1 %c{p}, label %a{p}, label %j{p}\n\
             a{p}:\n  %z{p} = add i32 %y{p}, %n\n  br label %j{p}\n\
             j{p}:\n  %w{p} = phi i32 [ %y{p}, %p{p} ], [ %z{p}, %a{p} ]\n  br label %l{p}\n\
             l{p}:\n  %i{p} = phi i32 [ 0, %j{p} ], [ %k{p}, %l{p} ]\n  %k{p} = add i32 %i{p}, 1\n\
             \x20 %u{p} = add i32 %k{p}, %n\n  %d{p} = icmp ult i32 %k{p}, %n\n  br i1 %d{p}, label %l{p}, label %e{p}\n\
             e{p}:\n  %x{next} = add i32 %x{p}, %u{p}\n  br label %p{next}\n",
            next = p + 1
        );
    }
    let _ = writeln!(text, "p{parts}:\n  ret void\n}}");
    text
}

/// Exponent and coefficient of determination of a power fitted to points.
fn power(points: &[(f64, f64)]) -> (f64, f64) {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let (slope, r) = line(&logs);
    (slope, r)
}

/// Slope and coefficient of determination of a line fitted to points.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (mx, my) = (mean(&|p| p.0), mean(&|p| p.1));
    let sxy = mean(&|p| (p.0 - mx) * (p.1 - my));
    let (sxx, syy) = (mean(&|p| (p.0 - mx).powi(2)), mean(&|p| (p.1 - my).powi(2)));
    (sxy / sxx, sxy * sxy / (sxx * syy))
}

fn growth() {
    println!("instructions,values,gated_us,analysis_us,boolean_us,evaluations");
    let (mut gating, mut solving, mut looking) = (Vec::new(), Vec::new(), Vec::new());
    for size in [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000] {
        let module = Module::parse(function(size).as_bytes(), "growth.ll").expect("it is well formed");
        let program = Program::of(&module, &transform::spmd::Options::default()).expect("nothing is named");
        let shape = program.functions()[0].analysis().gated().function().clone();
        let count = module.instructions().len() as f64;
        let evaluations = program.functions()[0].analysis().evaluations() as f64;
        let runs = (300_000 / size).clamp(9, 31);
        let gated = least(runs, || drop(std::hint::black_box(Gated::of(&shape))));
        let (affine, boolean) = times(&program, 0, runs);
        println!("{count},{},{gated:.1},{affine:.1},{boolean:.1},{evaluations}", shape.values().len());
        gating.push((count, gated));
        solving.push((count, affine));
        looking.push((count, evaluations));
    }
    let all = [("gated form: time", &gating), ("analysis: time", &solving), ("analysis: rules applied", &looking)];
    for (what, points) in all {
        let (exponent, r) = power(points);
        println!("{what} ~ instructions^{exponent:.3}, R² {r:.4}");
    }
}

/// Time of the analysis and of the boolean one, in microseconds.
fn times(program: &Program<'_>, function: usize, runs: usize) -> (f64, f64) {
    let gated = program.functions()[function].analysis().gated();
    let options = Options::default();
    let mut held = Some(gated.clone());
    let affine = least(runs, || {
        let analysis = Analysis::of_gated(held.take().expect("it is put back"), &options);
        held = Some(std::hint::black_box(analysis).into_gated());
    });
    let boolean = least(runs, || drop(std::hint::black_box(Boolean::of(gated, Mode::Simt))));
    (affine, boolean)
}

/// A row of figure 7.
struct Kernel {
    variables: usize,
    row: String,
    affine_us: f64,
    boolean_us: f64,
    /// How often a rule was applied.
    rules: u64,
    /// Nodes and edges of the dependence graph.
    dependences: usize,
}

/// Nodes of the dependence graph, and the edges from operands to what is made of them.
fn dependences(analysis: &Analysis) -> usize {
    let nodes = analysis.gated().count() as u32;
    (0..nodes).map(|node| 1 + analysis.operands(ValueId(node)).len()).sum()
}

#[derive(Default)]
struct Sums {
    functions: usize,
    variables: usize,
    boolean_divergent: usize,
    uniform: usize,
    affine: usize,
    divergent: usize,
    affine_us: f64,
    boolean_us: f64,
}

fn kernels(folder: PathBuf) {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("LOCKSTEP_IR is a folder").map(|e| e.expect("it is read").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ll"));
    files.sort();
    let mut rows: Vec<Kernel> = Vec::new();
    let mut sums = Sums::default();
    for file in files {
        let module = Module::read(&file).expect("it is IR");
        let program = Program::of(&module, &transform::spmd::Options::default()).expect("nothing is named");
        for (i, facts) in program.functions().iter().enumerate().filter(|(_, f)| f.is_run_by_threads()) {
            let kernel = [71, 76, 91].contains(&facts.function().calling_convention());
            if !kernel {
                continue;
            }
            let analysis = facts.analysis();
            let gated = analysis.gated();
            let boolean = Boolean::of(gated, Mode::Simt);
            let is_variable =
                |node: &ValueId| !matches!(gated.op(*node), Op::Number(_) | Op::Store(..) | Op::Undefined);
            let nodes: Vec<ValueId> = (0..gated.count() as u32).map(ValueId).filter(is_variable).collect();
            let count = |class: Class| nodes.iter().filter(|&&n| analysis.class(n) == class).count();
            let old = nodes.iter().filter(|&&n| boolean.class(n) == Class::Divergent).count();
            let (affine_us, boolean_us) = times(&program, i, 15);
            let [uniform, affine, divergent] = [Class::Uniform, Class::Affine, Class::Divergent].map(count);
            sums.functions += 1;
            sums.variables += nodes.len();
            sums.boolean_divergent += old;
            sums.uniform += uniform;
            sums.affine += affine;
            sums.divergent += divergent;
            sums.affine_us += affine_us;
            sums.boolean_us += boolean_us;
            let name =
                format!("{}:{}", file.file_stem().unwrap_or_default().to_string_lossy(), facts.function().name());
            let (rules, dependences) = (analysis.evaluations(), dependences(analysis));
            let row = format!(
                "{name},{},{affine_us:.2},{boolean_us:.2},{old},{divergent},{affine},{uniform},{rules},{dependences}",
                nodes.len()
            );
            rows.push(Kernel { variables: nodes.len(), row, affine_us, boolean_us, rules, dependences });
        }
    }
    rows.sort_by(|a, b| b.variables.cmp(&a.variables).then(a.row.cmp(&b.row)));
    let mut text =
        "kernel,variables,affine_us,boolean_us,boolean_divergent,divergent,affine,uniform,rules,dependences\n"
            .to_owned();
    rows.iter().for_each(|row| text += &format!("{}\n", row.row));
    match std::env::var_os("LOCKSTEP_ROWS") {
        Some(path) => std::fs::write(path, text).expect("the rows are written"),
        None => print!("{text}"),
    }
    let fit =
        |count: usize, of: &dyn Fn(&Kernel) -> (f64, f64)| line(&rows.iter().take(count).map(of).collect::<Vec<_>>()).1;
    let percent = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
    let not_uniform = sums.affine + sums.divergent;
    println!("kernels: {}, variables: {}", sums.functions, sums.variables);
    for (which, count) in [("the 40 longest", 40), ("all", rows.len())] {
        println!(
            "{which}: R² of time against variables {:.3}, against the dependence graph {:.3}, against rules applied {:.3}; \
             of rules applied against variables {:.3}; of the boolean analysis' time against variables {:.3}",
            fit(count, &|k| (k.variables as f64, k.affine_us)),
            fit(count, &|k| (k.dependences as f64, k.affine_us)),
            fit(count, &|k| (k.rules as f64, k.affine_us)),
            fit(count, &|k| (k.variables as f64, k.rules as f64)),
            fit(count, &|k| (k.variables as f64, k.boolean_us)),
        );
    }
    println!(
        "time of all: {:.0} us, {:.2} times the boolean analysis",
        sums.affine_us,
        sums.affine_us / sums.boolean_us
    );
    println!("divergent by the boolean analysis: {:.2}%", percent(sums.boolean_divergent, sums.variables));
    println!(
        "not uniform: {:.2}%, of which affine {:.2}%",
        percent(not_uniform, sums.variables),
        percent(sums.affine, not_uniform)
    );
    println!(
        "affine: {:.2}% of all; neither: {:.2}%",
        percent(sums.affine, sums.variables),
        percent(sums.divergent, sums.variables)
    );
}

fn main() {
    match std::env::var_os("LOCKSTEP_IR") {
        Some(folder) => kernels(folder.into()),
        None => growth(),
    }
}
