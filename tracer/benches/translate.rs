//! What recording costs: CPU time of program and tracer together, over the program's own, for the engine `translate`.
//!
//! Each program runs natively and recorded in turn, five times; the table shows medians. "discarded" records and throws
//! the records away, "written" compresses them into a file, "memory" does so with the addresses of memory operands.
//! "peak" is the most memory that the process took that wrote the trace. Sizes are chosen for two seconds of native CPU
//! time on a machine of 2020, beside which the start of the tracer (the row `true`) counts little; the largest takes
//! 1.1 GB of memory and some GB of disk. With the argument `small`, the programs run for half a second instead. The
//! workloads are those of `make -C workloads`. With a word, `cargo bench -p tracer --bench translate -- [small] WORD`,
//! only programs with this word in their name run.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tracer::{Limit, TraceOptions, engine_named, trace};

/// How often each is run.
const RUNS: usize = 5;

/// A program that keeps nothing but the interpreter at work.
macro_rules! python {
    ($steps:literal) => {
        concat!("x = 0\nfor i in range(", $steps, "):\n    x += i * i % 7\nprint(x)")
    };
}

/// Name in the table, how often it runs for one measurement (the kernel counts time in hundredths of seconds), and
/// command, of which the first word is a path in `workloads` or a program in PATH. Python is the interpreter itself,
/// not a script in PATH that looks for it.
const PROGRAMS: &[(&str, u32, &[&str])] = &[
    ("FFT, 2^24 points, 4 threads", 1, &["fft/fft", "-p", "4", "-m", "24"]),
    ("radix sort, 128 million keys, 4 threads", 1, &["radix/radix", "-p", "4", "-n", "128000000"]),
    ("Mandelbrot, 2000 x 2000, 4 threads", 1, &["mandelbrot/mandelbrot", "-p", "4", "-n", "2000", "-i", "1000"]),
    ("Python, a loop of 20 million", 1, &["python3", "-c", python!("20000000")]),
    ("true", 10, &["true"]),
];

/// The same, smaller.
const SMALL: &[(&str, u32, &[&str])] = &[
    ("FFT, 2^22 points, 4 threads", 1, &["fft/fft", "-p", "4", "-m", "22"]),
    ("radix sort, 32 million keys, 4 threads", 1, &["radix/radix", "-p", "4", "-n", "32000000"]),
    ("Mandelbrot, 1000 x 1000, 4 threads", 1, &["mandelbrot/mandelbrot", "-p", "4", "-n", "1000", "-i", "1000"]),
    ("Python, a loop of 5 million", 1, &["python3", "-c", python!("5000000")]),
    ("true", 10, &["true"]),
];

/// The path of the Python interpreter.
fn python() -> String {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.expect("python3 is in PATH");
    String::from_utf8(output.stdout).expect("a path in UTF-8").trim().to_owned()
}

/// CPU seconds of this process and of its children that have ended, as the kernel counts them (in hundredths).
fn cpu_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux has /proc");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    // utime, stime, cutime and cstime are the fields 14 to 17, and the third is the first here.
    fields[11..15].iter().map(|ticks| ticks.parse::<f64>().expect("a number of ticks")).sum::<f64>() / 100.0
}

/// CPU seconds for one run.
fn timed(repeats: u32, mut run: impl FnMut()) -> f64 {
    let before = cpu_time();
    for _ in 0..repeats {
        run();
    }
    (cpu_time() - before) / f64::from(repeats)
}

/// The most memory that this process has had, in MiB.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it tells the peak");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number of KiB") / 1024.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Records the program with the command line `--record` ("discarded", "written" or "memory"), in a process of its own,
/// whose output is thrown away. For profiles there is "memory-discarded" too: what the program's own part of "memory"
/// costs.
fn recorded(how: &str, output: &Path, command: &[String]) {
    let this = std::env::current_exe().expect("a running program has a path");
    let status = Command::new(this)
        .args(["--record", how])
        .arg(output)
        .args(command)
        .stdout(Stdio::null())
        .status()
        .expect("this program can be started");
    assert!(status.success(), "recording {command:?}: {status}");
}

/// The process that records.
fn record(how: &str, output: &str, command: &[String]) -> ExitCode {
    let mut options = TraceOptions::new(command.iter().map(Into::into).collect(), output);
    options.engine = engine_named("translate").expect("the engine is in the registry");
    options.limit = how.ends_with("discarded").then_some(Limit::Instructions(1));
    options.memory = how.starts_with("memory");
    match trace(&options) {
        Ok(outcome) => {
            let facts = format!("{} {}", outcome.instructions, peak());
            fs::write(format!("{output}.facts"), facts).expect("a file beside the trace");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, how, output, command @ ..] = &arguments[..]
        && flag == "--record"
    {
        return record(how, output, command);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("trace.bin");
    println!(
        "{:40} {:>9} {:>10} {:>9} {:>9} {:>13} {:>12} {:>9} {:>12}",
        "program", "native s", "discarded", "written", "peak MiB", "instructions", "bytes each", "memory", "bytes each"
    );
    // Cargo adds words of its own.
    let mut words = arguments.iter().filter(|word| !word.starts_with('-')).peekable();
    let programs = if words.next_if(|word| *word == "small").is_some() { SMALL } else { PROGRAMS };
    let wanted = words.next();
    for &(name, repeats, command) in
        programs.iter().filter(|(name, ..)| wanted.is_none_or(|word| name.contains(word.as_str())))
    {
        let mut command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        if command[0] == "python3" {
            command[0] = python();
        }
        if command[0].contains('/') && !command[0].starts_with('/') {
            command[0] = format!("{}/../workloads/{}", env!("CARGO_MANIFEST_DIR"), command[0]);
            if !Path::new(&command[0]).exists() {
                eprintln!("{name}: not built: run make -C workloads first");
                return ExitCode::FAILURE;
            }
        }
        let mut times = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let mut bytes = [f64::NAN; 2];
        let mut facts = String::new();
        let size = || fs::metadata(&output).map_or(f64::NAN, |m| m.len() as f64);
        for _ in 0..RUNS {
            times[0].push(timed(repeats, || {
                let native = Command::new(&command[0]).args(&command[1..]).stdout(Stdio::null()).status();
                assert!(native.expect("the program can be started").success(), "{command:?}");
            }));
            times[1].push(timed(repeats, || recorded("discarded", &output, &command)));
            times[2].push(timed(repeats, || recorded("written", &output, &command)));
            bytes[0] = size();
            facts = fs::read_to_string(folder.path().join("trace.bin.facts")).unwrap_or_default();
            times[3].push(timed(repeats, || recorded("memory", &output, &command)));
            bytes[1] = size();
        }
        let mut facts = facts.split(' ').map(|fact| fact.parse().unwrap_or(f64::NAN));
        let [instructions, peak] = [(); 2].map(|()| facts.next().unwrap_or(f64::NAN));
        let [native, discarded, written, memory] = times.map(median);
        let over =
            |time: f64| if native > 0.05 { format!("{:.2}", time / native) } else { format!("{:.0} ms", time * 1e3) };
        println!(
            "{name:40} {native:9.2} {:>10} {:>9} {peak:9.0} {instructions:13.3e} {:12.5} {:>9} {:12.5}",
            over(discarded),
            over(written),
            bytes[0] / instructions,
            over(memory),
            bytes[1] / instructions
        );
    }
    ExitCode::SUCCESS
}
