//! How long the passes take beside the compiler itself, on the largest workload (by its IR):
//! `cargo bench -p transform`.
//!
//! Both are timed in turn in one run, so that a busy machine slows both; the median of [`ROUNDS`] ratios counts. The
//! target is less than 10%, and for the divergence analysis alone less than 5%. The input is the source in
//! `workloads/`; throughput is given in bytes of IR.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use transform::Pipeline;
use transform::llvm::Module;
use transform::spmd::{Options, Program};

const ROUNDS: usize = 9;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let bitcode = folder.path().join("a.bc");
    let compile = |source: &Path, options: &[&str], to: &Path| {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/include");
        let mut command = Command::new("clang-19");
        command.args(["-O3", "-std=gnu11", "-gline-tables-only", "-c"]).args(options).arg("-I").arg(include);
        let status = command.arg(source).arg("-o").arg(to).status().expect("clang-19");
        assert!(status.success(), "{} does not compile", source.display());
    };
    let (source, size) = largest(|source| {
        compile(source, &["-emit-llvm"], &bitcode);
        std::fs::metadata(&bitcode).map_or(0, |m| m.len())
    });
    compile(&source, &["-emit-llvm"], &bitcode);
    let module = Module::read(&bitcode).expect("it is IR");
    let mut ratios: Vec<f64> = Vec::new();
    for _ in 0..ROUNDS {
        let theirs = timed(|| compile(&source, &[], &folder.path().join("a.o")));
        ratios.push(timed(|| analyse(&module)).as_secs_f64() / theirs.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{}: divergence analysis: {:.2}% of the compiler's time (median of {ROUNDS}, {:.2}% to {:.2}%)",
        source.file_name().unwrap_or_default().display(),
        100.0 * ratios[ROUNDS / 2],
        100.0 * ratios[0],
        100.0 * ratios[ROUNDS - 1],
    );
    for passes in ["fcs,layout", "tail-merge,branch-fusion,layout"] {
        let mut ratios: Vec<f64> = Vec::new();
        let mut ours = Duration::MAX;
        for _ in 0..ROUNDS {
            let theirs = timed(|| compile(&source, &[], &folder.path().join("a.o")));
            let own = timed(|| apply(&bitcode, passes, &folder.path().join("b.bc")));
            ours = ours.min(own);
            ratios.push(own.as_secs_f64() / theirs.as_secs_f64());
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{}: {passes}: {:.2}% of the compiler's time (median of {ROUNDS}, {:.2}% to {:.2}%); {:.1} MB of bitcode per second",
            source.file_name().unwrap_or_default().display(),
            100.0 * ratios[ROUNDS / 2],
            100.0 * ratios[0],
            100.0 * ratios[ROUNDS - 1],
            size as f64 / ours.as_secs_f64() / 1e6,
        );
    }
}

/// The divergence analysis of all functions of a module that was read, as `lockstep analyze` does it.
fn analyse(module: &Module) {
    std::hint::black_box(Program::of(module, &Options::default()).expect("nothing is named").functions().len());
}

/// What the wrapper adds to a compilation, except starting: reading, the passes and the verifier, writing.
fn apply(bitcode: &Path, passes: &str, to: &Path) {
    let pipeline = Pipeline::parse(passes).expect("passes");
    let (module, _) = pipeline.apply(|| Module::read(bitcode)).expect("passes that work");
    std::fs::write(to, module.to_bitcode()).expect("a file");
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The workload with the most bytes of bitcode, and how many it has.
fn largest(size_of: impl Fn(&Path) -> u64) -> (std::path::PathBuf, u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads");
    let names = ["divide", "fft", "radix", "fluidanimate", "swaptions"];
    let sources = names.map(|name| folder.join(name).join(format!("{name}.c")));
    let sized = sources.into_iter().map(|source| (size_of(&source), source));
    let (size, source) = sized.max_by_key(|(size, _)| *size).expect("there are workloads");
    (source, size)
}
