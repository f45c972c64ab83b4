//! How fast a trace is replayed, in thread instructions per second: FFT with 16 threads in one warp, on one worker. The
//! traces are stored beside this file: 4096 points (1.1 million thread instructions) and 2^20 points (358 million),
//! made by `trace ./fft -p 16 -m 12` and `trace --engine translate ./fft -p 16 -m 20`. Making lanes of a trace is
//! measured apart, since all heuristics share it; a replay includes the survey of its lanes and the bounds.

use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use heuristics::Spec;
use replay::view::{View, ViewOptions};
use replay::{ReplayOptions, replay};
use trace_format::Trace;

fn stored(name: &str) -> Trace {
    Trace::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(name)).expect("the stored trace")
}

fn benches(criterion: &mut Criterion) {
    let heuristics = ["minpc", "minsp-pc", "maxfun-minpc", "long", "long-minpc", "ipdom"];
    bench(criterion, "fft-p16-m12", 20, &[&heuristics[..], &["lee", "rd-minsp-pc", "round-robin"]].concat());
    bench(criterion, "fft-p16-m20", 10, &heuristics);
}

fn bench(criterion: &mut Criterion, name: &str, samples: usize, heuristics: &[&str]) {
    let trace = stored(&format!("{name}.trace.bin"));
    let view = View::new(&trace, &ViewOptions::default()).expect("a view");
    let options = ReplayOptions::default();
    let one_worker = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let run =
        |specs: &[Spec]| one_worker.install(|| replay(&view, specs, &options, None, &|_, _| {}).expect("a replay"));
    let specs = |text: &str| Spec::parse_list(text).expect("heuristics");
    let instructions = run(&specs("minpc"))[0].upper_bound;

    let mut group = criterion.benchmark_group(name);
    group.sample_size(samples).throughput(Throughput::Elements(instructions));
    for name in heuristics {
        let specs = specs(name);
        group.bench_with_input(BenchmarkId::new("replay", name), &specs, |b, specs| b.iter(|| run(specs)));
    }
    let view = || one_worker.install(|| View::new(&trace, &ViewOptions::default()).expect("a view"));
    group.bench_function("view", |b| b.iter(view));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
