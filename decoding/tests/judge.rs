//! What the table says about memory that is read or written, the processor says too.

use std::path::Path;
use std::process::Command;

use decoding::known::{KNOWN, explained};
use decoding::{ByCapstone, ByIced, differences};
use trace_format::SpEffect;

/// What the judge says: of each instruction its name, the verdict and its bytes.
fn judged() -> Vec<(String, String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge.c"), folder.path().join("judge"));
    let built = Command::new("gcc").arg("-O1").arg("-o").args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let said = Command::new(&program).output().unwrap();
    assert!(said.status.success());
    let said = String::from_utf8(said.stdout).unwrap();
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap();
        let (verdict, hex) = rest.rsplit_once(' ').unwrap();
        let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
        (name.to_owned(), verdict.to_owned(), bytes.collect())
    };
    said.lines().map(line).collect()
}

#[test]
fn the_processor_agrees_with_the_first_decoder_and_the_table_has_the_difference() {
    let all = judged();
    assert!(all.len() > 90, "{}", all.len());
    for (name, verdict, code) in &all {
        let iced = ByIced.opinion(0x1000, code, None);
        let capstone = ByCapstone::default().opinion(0x1000, code);
        let what = format!("{name} {verdict} {code:02x?}: {iced:?} against {capstone:?}");
        let found = differences(iced.as_ref(), capstone.as_ref());
        for aspect in &found {
            assert!(explained(aspect, iced.as_ref(), capstone.as_ref(), code).is_some(), "{aspect:?}: {what}");
        }
        if verdict == "refused" {
            assert!(iced.is_none() && capstone.is_some(), "{what}");
            continue;
        }
        let iced = iced.unwrap_or_else(|| panic!("{what}"));
        assert_eq!(&iced.mnemonic, name, "{what}");
        let operand = iced.memory.first();
        match verdict.as_str() {
            "writes" => assert!(operand.unwrap().access.writes, "{what}"),
            "leaves" => assert!(!operand.unwrap().access.writes, "{what}"),
            "ignores" => assert!(operand.is_none(), "{what}"),
            "counts from fs" => assert_eq!(operand.unwrap().segment.as_deref(), Some("fs"), "{what}"),
            "runs" => assert_eq!(iced.len, code.len(), "{what}"),
            _ => match verdict.split_once(' ').unwrap_or_else(|| panic!("{what}")) {
                ("touches", bytes) => assert_eq!(operand.unwrap().size.to_string(), bytes, "{what}"),
                // `enter` has its change recorded.
                ("sp", by) => {
                    assert!(iced.sp == SpEffect::Recorded || iced.sp == SpEffect::Add(by.parse().unwrap()), "{what}")
                }
                _ => panic!("{what}"),
            },
        }
    }
}

#[test]
fn what_the_processor_was_asked_about_the_judge_runs() {
    let has_avx = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("f16c");
    let all = judged();
    for known in KNOWN.iter().filter(|known| known.verdict.contains("the processor was asked")) {
        let runs: Vec<&str> = all
            .iter()
            .filter(|(_, _, code)| {
                let iced = ByIced.opinion(0x1000, code, None);
                let capstone = ByCapstone::default().opinion(0x1000, code);
                differences(iced.as_ref(), capstone.as_ref()).iter().any(|aspect| {
                    explained(aspect, iced.as_ref(), capstone.as_ref(), code).is_some_and(|entry| {
                        (entry.what, entry.example, entry.names) == (known.what, known.example, known.names)
                    })
                })
            })
            .map(|(name, ..)| name.as_str())
            .collect();
        let is_there = |name: &&str| runs.contains(name) || name.starts_with('v') && !has_avx;
        let all_named = known.names.split(' ').all(|name| is_there(&name));
        // Of who writes memory each is run, else one for all.
        let is_judged = if known.what == "access" { all_named } else { !runs.is_empty() || !has_avx };
        let missing: Vec<&str> = known.names.split(' ').filter(|name| !is_there(name)).collect();
        assert!(is_judged, "{}: {}: the judge runs {runs:?} of them, not {missing:?}", known.what, known.verdict);
    }
}
