//! How fast a trace is replayed, in thread instructions per second: FFT of 4096 points with 16 threads in one warp, its trace stored beside this
//! file (`replay/benches/fft-p16-m12.trace.bin`, made by `trace workloads/fft/fft -p 16 -m 12`), on one worker. Reading the trace once and making lanes of it is measured
//! apart, since several heuristics share it; a replay alone includes the survey of its lanes.

use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use heuristics::Spec;
use replay::view::{View, ViewOptions};
use replay::{ReplayOptions, replay};
use trace_format::Trace;

fn stored() -> Trace {
    Trace::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/fft-p16-m12.trace.bin")).expect("the stored trace")
}

fn benches(criterion: &mut Criterion) {
    let trace = stored();
    let view = View::new(&trace, &ViewOptions::default()).expect("a view");
    let options = ReplayOptions::default();
    let one_worker = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    let run =
        |specs: &[Spec]| one_worker.install(|| replay(&view, specs, &options, None, &|_, _| {}).expect("a replay"));
    let specs = |text: &str| Spec::parse_list(text).expect("heuristics");
    let instructions = run(&specs("minpc"))[0].upper_bound;

    let mut group = criterion.benchmark_group("fft-p16-m12");
    group.sample_size(20).throughput(Throughput::Elements(instructions));
    for name in ["minpc", "minsp-pc", "maxfun-minpc", "long", "long-minpc", "ipdom", "lee", "round-robin"] {
        let specs = specs(name);
        group.bench_with_input(BenchmarkId::new("replay", name), &specs, |b, specs| b.iter(|| run(specs)));
    }
    group.bench_function("view", |b| b.iter(|| View::new(&trace, &ViewOptions::default()).expect("a view")));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
