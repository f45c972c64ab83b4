//! `lockstep export` of profiles: what readers of each format find is what `replay` says.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{build, root, run, succeed};

/// Lanes part in the first call of `spin`, and not in the second, which is on another line.
const CALLS: &str = "\
#include <pthread.h>
static int sums[32];
static __attribute__((noinline)) int spin(int rounds) {
    int sum = rounds;
    for (int i = 0; i < rounds; i++)
        sum = sum * 7 + i;
    return sum;
}
static void *run(void *argument) {
    long thread = (long)argument;
    sums[thread] = spin(3 + thread % 4 * 9);
    sums[thread] += spin(20);
    return 0;
}
int main(void) {
    pthread_t threads[32];
    for (long i = 0; i < 32; i++)
        pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 32; i++)
        pthread_join(threads[i], 0);
    return sums[3] == 1;
}
";

/// The lines of its two calls.
const FIRST: u64 = 11;
const SECOND: u64 = 12;

/// A trace of that program.
fn traced(folder: &Path) -> String {
    let [source, program, trace] = ["calls.c", "calls", "calls.bin"].map(|name| folder.join(name));
    std::fs::write(&source, CALLS).unwrap();
    build(&source, &program, &["-O1", "-fno-unroll-loops"]);
    let trace = trace.to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap()]);
    trace
}

/// What a replay says of the trace.
fn replayed(trace: &str, by: &str) -> Value {
    let text = succeed("replay", &["--json", "--by", by, trace]);
    serde_json::from_str::<Value>(&text).unwrap()["results"][0].take()
}

/// Lost lane-slots, fetches and thread instructions.
type Values = [u64; 3];

fn totals(row: &Value) -> Values {
    ["lost_slots", "fetches", "thread_instructions"].map(|column| row[column].as_u64().unwrap())
}

fn add(sums: &mut Values, more: Values) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// A field of a message of Protocol Buffers.
enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

impl<'m> Field<'m> {
    fn number(&self) -> u64 {
        match self {
            Field::Number(number) => *number,
            Field::Bytes(_) => panic!("bytes where a number should be"),
        }
    }

    fn bytes(&self) -> &'m [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("a number where bytes should be"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn numbers(mut bytes: &[u8]) -> Vec<u64> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        all.push(varint(&mut bytes));
    }
    all
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        all.push((
            key >> 3,
            match key & 7 {
                0 => Field::Number(value),
                2 => {
                    let (inside, rest) = bytes.split_at(value as usize);
                    bytes = rest;
                    Field::Bytes(inside)
                }
                other => panic!("wire type {other}"),
            },
        ));
    }
    all
}

/// The last field of a number; 0 where there is none.
fn last(fields: &[(u64, Field)], field: u64) -> u64 {
    fields.iter().rev().find(|(number, _)| *number == field).map_or(0, |(_, value)| value.number())
}

/// By the function's symbol, by line (`calls.c:11`) and by label (`cause:branch`): the values of all samples. The
/// places above the innermost one, in `above`.
#[derive(Default)]
struct Read {
    types: Vec<String>,
    functions: BTreeMap<String, Values>,
    lines: BTreeMap<String, Values>,
    labels: BTreeMap<String, Values>,
    above: BTreeMap<String, Values>,
}

fn read_pprof(compressed: &[u8]) -> Read {
    let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(compressed).unwrap();
    let bytes = gzip.wait_with_output().unwrap().stdout;
    let all = fields(&bytes);
    let texts: Vec<&str> =
        all.iter().filter(|(field, _)| *field == 6).map(|(_, text)| str::from_utf8(text.bytes()).unwrap()).collect();
    assert_eq!(texts[0], "");
    let messages =
        |of: u64| all.iter().filter(move |(field, _)| *field == of).map(|(_, message)| fields(message.bytes()));
    let functions: BTreeMap<u64, [&str; 2]> =
        messages(5).map(|f| (last(&f, 1), [2, 4].map(|field| texts[last(&f, field) as usize]))).collect();
    // Its lines, the innermost first: function and file, and number.
    let locations: BTreeMap<u64, Vec<([&str; 2], u64)>> = messages(4)
        .map(|location| {
            let lines = location.iter().filter(|(field, _)| *field == 4).map(|(_, line)| fields(line.bytes()));
            (last(&location, 1), lines.map(|line| (functions[&last(&line, 1)], last(&line, 2))).collect())
        })
        .collect();
    let mut read =
        Read { types: messages(1).map(|t| texts[last(&t, 1) as usize].to_owned()).collect(), ..Read::default() };
    let line = |location: u64| {
        let ([_, file], number) = locations[&location][0];
        format!("{}:{number}", Path::new(file).file_name().unwrap_or_default().to_str().unwrap())
    };
    for sample in messages(2) {
        let packed = |of: u64| numbers(sample.iter().find(|(field, _)| *field == of).unwrap().1.bytes());
        let (stack, values) = (packed(1), <Values>::try_from(packed(2)).unwrap());
        let ([function, _], _) = locations[&stack[0]].last().unwrap();
        add(read.functions.entry((*function).to_owned()).or_default(), values);
        add(read.lines.entry(line(stack[0])).or_default(), values);
        for caller in &stack[1..] {
            add(read.above.entry(line(*caller)).or_default(), values);
        }
        for (_, label) in sample.iter().filter(|(field, _)| *field == 3) {
            let label = fields(label.bytes());
            let label = format!("{}:{}", texts[last(&label, 1) as usize], texts[last(&label, 2) as usize]);
            add(read.labels.entry(label).or_default(), values);
        }
    }
    read
}

#[test]
fn a_pprof_has_the_rows_of_replay_and_tells_calls_apart() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    let exported = run("lockstep", &["export", "--format", "pprof", &trace]);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let read = read_pprof(&exported.stdout);
    assert_eq!(read.types, ["lost_lane_slots", "fetches", "thread_instructions"]);
    for (by, found) in [("function", &read.functions), ("line", &read.lines)] {
        let row = replayed(&trace, by);
        let rows = row["by"]["rows"].as_array().unwrap();
        let mut expected: BTreeMap<String, Values> = BTreeMap::new();
        for row in rows {
            let name = match row["file"].as_str() {
                Some(file) => format!("{}:{}", file.rsplit('/').next().unwrap(), row["line"]),
                None => row["function"].as_str().unwrap_or_default().to_owned(),
            };
            add(expected.entry(name).or_default(), totals(row));
        }
        expected.retain(|_, values| *values != [0; 3]);
        assert!(expected.len() > 1 && expected.values().any(|values| values[0] > 0), "{expected:?}");
        assert_eq!(*found, expected, "by {by}");
        let sum = found.values().fold([0; 3], |mut sum, values| {
            add(&mut sum, *values);
            sum
        });
        assert_eq!(sum, totals(&row));
    }
    let causes = replayed(&trace, "cause");
    assert_eq!(read.labels["cause:loop trip count"][0], causes["lost_to_loop"].as_u64().unwrap());
    let [first, second] = [FIRST, SECOND].map(|line| read.above[&format!("calls.c:{line}")]);
    assert!(first[0] > 0 && second[0] == 0 && second[1] > 0, "{first:?} {second:?}");
}

#[test]
fn of_a_model_that_deadlocks_the_replay_with_turns_at_locks_is_exported_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let [program, trace, out] =
        ["locks", "locks.bin", "out"].map(|n| folder.path().join(n).to_str().unwrap().to_owned());
    build(&root().join("workloads/micro/lock_contention.c"), Path::new(&program), &[]);
    succeed("trace", &["--memory", "-o", &trace, &program, "-p", "8"]);
    let text = succeed("replay", &["--json", "--heuristic", "ipdom,minpc", &trace]);
    let row = serde_json::from_str::<Value>(&text).unwrap()["results"][0].take();
    assert!(row["deadlock"].is_string(), "{row}");
    for format in ["folded", "accel-sim"] {
        let output = run("lockstep", &["export", "--format", format, "--heuristic", "ipdom", "-o", &out, &trace]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("what is exported is the replay with --locks simt"), "{said}");
        if format == "folded" {
            let folded = std::fs::read_to_string(&out).unwrap();
            let lost: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
            assert_eq!(row["lost_slots"], lost);
            std::fs::remove_file(&out).unwrap();
        } else {
            assert!(said.contains(&format!("for {} fetches", row["fetches"])), "{said}");
        }
    }
}

#[test]
fn what_its_own_reader_finds_in_a_pprof_is_what_replay_says() {
    let folder = tempfile::tempdir().unwrap();
    if !Command::new("go").arg("version").output().is_ok_and(|output| output.status.success()) {
        return;
    }
    let trace = traced(folder.path());
    let profile = folder.path().join("calls.pb.gz");
    succeed("lockstep", &["export", "--format", "pprof", "-o", profile.to_str().unwrap(), &trace]);
    let expected = totals(&replayed(&trace, "cause"));
    for (value, total) in ["lost_lane_slots", "fetches", "thread_instructions"].iter().zip(expected) {
        let index = format!("-sample_index={value}");
        let mut pprof = Command::new("go");
        pprof.args(["tool", "pprof", "-top", "-lines", "-unit=count", &index]).arg(&profile);
        let output = pprof.env("HOME", folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(&format!(" of {total} total")), "{value}: {total} is not in {text}");
        assert!(text.contains("spin ") && text.contains("calls.c:6"), "{text}");
    }
}

#[test]
fn callgrind_annotate_finds_the_totals_and_what_each_call_led_to() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    let profile = folder.path().join("calls.callgrind");
    succeed("lockstep", &["export", "--format", "callgrind", "-o", profile.to_str().unwrap(), &trace]);
    let annotated =
        Command::new("callgrind_annotate").args(["--inclusive=yes", "--show-percs=no"]).arg(&profile).output();
    let annotated = annotated.expect("valgrind is installed by scripts/setup");
    let text = String::from_utf8_lossy(&annotated.stdout);
    assert!(annotated.status.success(), "{text}{}", String::from_utf8_lossy(&annotated.stderr));
    let values = |line: &str| {
        let words = line
            .split_whitespace()
            .map_while(|word| if word == "." { Some(0) } else { word.replace(',', "").parse().ok() });
        words.collect::<Vec<u64>>()
    };
    let all = text.lines().find(|line| line.ends_with("PROGRAM TOTALS")).expect("a line of totals");
    assert_eq!(values(all), totals(&replayed(&trace, "cause")));
    // All runs inside of `run`.
    let outermost = text.lines().find(|line| line.ends_with(":run")).expect("a line of the function");
    assert_eq!(values(outermost), values(all));
    // The source beside what its lines cost, with what they called.
    let of_line = |code: &str| values(text.lines().find(|line| line.ends_with(code)).expect("a line of the source"));
    let [first, second] = ["spin(3 + thread % 4 * 9);", "spin(20);"].map(of_line);
    assert!(first[0] > 0 && second[0] == 0 && second[1] > 20, "{first:?} {second:?}");
}

#[test]
fn a_speedscope_has_three_profiles_that_sum_up_to_the_totals() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    let text = succeed("lockstep", &["export", "--format", "speedscope", &trace]);
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = all["shared"]["frames"].as_array().unwrap();
    let profiles = all["profiles"].as_array().unwrap();
    let mut of_line = 0;
    let mut found = Vec::new();
    for (at, profile) in profiles.iter().enumerate() {
        let [samples, weights] = ["samples", "weights"].map(|field| profile[field].as_array().unwrap());
        assert!(profile["type"] == "sampled" && profile["unit"] == "none" && profile["startValue"] == 0);
        assert_eq!(samples.len(), weights.len());
        let mut sum = 0;
        for (stack, weight) in samples.iter().zip(weights) {
            let name = |frame: &Value| &frames[frame.as_u64().unwrap() as usize];
            let stack: Vec<&Value> = stack.as_array().unwrap().iter().map(name).collect();
            assert_eq!(stack[0]["name"], "run");
            let last = stack[stack.len() - 1];
            assert_eq!(at == 0, last["name"].as_str().unwrap().starts_with('['), "{last}");
            sum += weight.as_u64().unwrap();
            if at == 1 && last["name"] == "calls.c:6" {
                assert!(last["line"] == 6 && last["file"].as_str().unwrap().ends_with("/calls.c"), "{last}");
                of_line += weight.as_u64().unwrap();
            }
        }
        assert_eq!(profile["endValue"], sum);
        found.push(sum);
    }
    assert_eq!(found, totals(&replayed(&trace, "cause")));
    let lines = replayed(&trace, "line");
    let line = lines["by"]["rows"].as_array().unwrap().iter().find(|row| row["line"] == 6).expect("a row of the line");
    assert_eq!(of_line, line["fetches"].as_u64().unwrap());
}
