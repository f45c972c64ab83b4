//! Lines, inlined functions and C++ names of programs built by gcc and by clang; and what is shown of a stripped one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{run, succeed};
use serde_json::Value;

/// `pick` is inlined into `Table<int>::sum`, which is not inlined anywhere; odd threads take the other arm.
const SOURCE: &str = r#"
#include <pthread.h>
#include <cstdio>

template <typename T> struct Table {
    T values[64];
    T sum(int odd) const;
};

static inline __attribute__((always_inline)) int pick(int odd, int i) {
    volatile int r = i;
    if (odd)
        r = r * 3 + 1; // the odd arm
    else
        r = r + 2;
    return r;
}

template <typename T> __attribute__((noinline)) T Table<T>::sum(int odd) const {
    T all = 0;
    for (int i = 0; i < 64; i++)
        all += values[i] + pick(odd, i);
    return all;
}

static Table<int> table;
static int results[4];

extern "C" void *work(void *argument) {
    long id = (long)argument;
    results[id] = table.sum(id & 1);
    return nullptr;
}

int main() {
    pthread_t threads[4];
    for (long id = 0; id < 4; id++) pthread_create(&threads[id], nullptr, work, (void *)id);
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    std::printf("%d\n", results[0] + results[1]);
}
"#;

struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn by(compiler: &str, flags: &[&str]) -> Built {
        let built = Built { folder: tempfile::tempdir().unwrap() };
        std::fs::write(built.at("table.cpp"), SOURCE).unwrap();
        let output = Command::new(compiler)
            .args(["-O2", "-pthread", "-o"])
            .args([built.at("program"), built.at("table.cpp")])
            .args(flags)
            .output()
            .unwrap_or_else(|e| panic!("{compiler}: {e}"));
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        built
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trace(&self) -> PathBuf {
        let trace = self.at("trace.bin");
        succeed("trace", &["-o", trace.to_str().unwrap(), self.at("program").to_str().unwrap()]);
        trace
    }
}

/// The rows of `replay --by`.
fn rows(trace: &Path, by: &str) -> Vec<Value> {
    let json = succeed("replay", &["--by", by, "--json", trace.to_str().unwrap()]);
    let all: Value = serde_json::from_str(&json).unwrap();
    all["results"][0]["by"]["rows"].as_array().unwrap().clone()
}

fn number_of(text: &str) -> u64 {
    SOURCE.lines().zip(1..).find(|(line, _)| line.contains(text)).unwrap().1
}

/// `pick` has no code of its own.
fn assert_a_region_that_was_inlined_is_told(trace: &Path, compiler: &str) {
    let told = run("replay", &["--region", "pick", trace.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(4), "{compiler}: {said}");
    assert!(said.contains("inlined it into Table<int>::sum(int) const."), "{compiler}: {said}");
}

fn assert_lines_are_right(compiler: &str) {
    let built = Built::by(compiler, &["-g"]);
    let trace = built.trace();
    assert_a_region_that_was_inlined_is_told(&trace, compiler);
    let lines = rows(&trace, "line");
    let odd =
        lines.iter().find(|r| r["line"] == number_of("the odd arm")).unwrap_or_else(|| panic!("{compiler}: {lines:?}"));
    assert!(odd["file"].as_str().unwrap().ends_with("table.cpp"), "{compiler}: {odd}");
    // gcc writes no linkage name, and so no parameters, of a function that it inlined everywhere.
    assert!(["pick", "pick(int, int)"].contains(&odd["function"].as_str().unwrap()), "{compiler}: {odd}");
    assert_eq!(odd["inlined_into"][0], "Table<int>::sum(int) const", "{compiler}");
    assert!(odd["lost_slots"].as_u64().unwrap() > 0, "{compiler}: even threads are lost in the odd arm");
    let functions = rows(&trace, "function");
    assert!(functions.iter().any(|r| r["function"] == "Table<int>::sum(int) const"), "{compiler}: {functions:?}");
}

#[test]
fn lines_inlined_functions_and_names_are_right_for_gcc() {
    assert_lines_are_right("g++");
}

#[test]
fn lines_inlined_functions_and_names_are_right_for_clang() {
    assert_lines_are_right("clang++-19");
}

#[test]
fn functions_of_a_stripped_program_are_named_by_address_and_a_note_says_so() {
    let built = Built::by("g++", &["-s"]);
    let trace = built.trace();
    let output = run("replay", &["--by", "function", "--json", trace.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("has no symbols for some functions: they are named by the addresses"), "{said}");
    let functions = rows(&trace, "function");
    let named = functions.iter().filter(|r| r["function"].as_str().unwrap().starts_with("program+0x")).count();
    assert!(named >= 2, "work and sum are two functions: {functions:?}");
    let page = built.at("page.html");
    succeed("lockstep", &["report", "--models", "minsp-pc", "-o", page.to_str().unwrap(), trace.to_str().unwrap()]);
    let program = crate::page::data(&page)["programs"][0].clone();
    assert!(program["notes"].to_string().contains("named by the addresses"), "{}", program["notes"]);
    let on_page = program["functions"].as_array().unwrap().iter();
    assert_eq!(on_page.filter(|f| f["name"].as_str().unwrap().starts_with("program+0x")).count(), named);
}

#[test]
fn instructions_stand_below_their_lines_in_the_listing_and_on_the_page() {
    let built = Built::by("g++", &["-g"]);
    let trace = built.trace();
    let trace = trace.to_str().unwrap();
    let all = |syntax: &str| {
        let listing = succeed("replay", &["--annotate", "table.cpp", "--syntax", syntax, trace]);
        let below: Vec<String> = listing
            .lines()
            .skip_while(|line| !line.contains("the odd arm"))
            .skip(1)
            .take_while(|line| line.contains("  0x"))
            .map(|line| line.split_once("  0x").unwrap().1.split_once("  ").unwrap().1.to_owned())
            .collect();
        let page = built.at("page.html");
        let to_report = ["report", "--models", "minsp-pc", "--syntax", syntax, "-o", page.to_str().unwrap(), trace];
        succeed("lockstep", &to_report);
        let program = crate::page::data(&page)["programs"][0].clone();
        let number = number_of("the odd arm");
        let line = program["lines"].as_array().unwrap().iter().find(|line| line["number"] == number).unwrap();
        let on_page = line["instructions"].as_array().unwrap().iter();
        assert!(on_page.clone().all(|i| i["fetches"].as_u64().unwrap() > 0), "{line}");
        let on_page: Vec<String> = on_page.map(|i| i["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(below, on_page, "{listing}");
        assert!(!below.is_empty(), "{listing}");
        below
    };
    let (intel, att) = (all("intel"), all("att"));
    assert_eq!(intel.len(), att.len());
    assert!(att.iter().any(|text| text.contains('%')) && !intel.iter().any(|text| text.contains('%')), "{att:?}");
    let output = run("replay", &["--syntax", "att", trace]);
    assert_eq!(output.status.code(), Some(2), "a syntax without a listing");
}

#[test]
fn a_listing_shows_the_costs_beside_the_source_and_colours_only_for_a_terminal() {
    let built = Built::by("g++", &["-g"]);
    let trace = built.trace();
    let trace = trace.to_str().unwrap();
    let listing = succeed("replay", &["--annotate", "table.cpp", trace]);
    let odd = listing.lines().find(|l| l.contains("the odd arm")).unwrap();
    let by_line = rows(Path::new(trace), "line");
    let row = by_line.iter().find(|r| r["line"] == number_of("the odd arm")).unwrap();
    let words: Vec<String> = odd.split_whitespace().map(|w| w.replace(',', "")).collect();
    assert_eq!([&words[0], &words[2]], [&row["fetches"].to_string(), &row["lost_slots"].to_string()], "{odd}");
    let parting = by_line.iter().find(|r| r["parted_slots"].as_u64() > Some(0)).unwrap();
    let header = listing.lines().find(|l| l.contains("lost slots") && l.contains("eff.")).unwrap();
    let end = header.find("parted").unwrap() + "parted".len();
    let number = format!(" {}  ", parting["line"]);
    let with_number = |l: &&str| l.contains(&number);
    let line = listing.lines().find(with_number).unwrap();
    let cell = line[..end].split_whitespace().last().unwrap().replace(',', "");
    assert_eq!(cell, parting["parted_slots"].to_string(), "{listing}");
    assert!(odd.contains("branch") && !listing.contains('\u{1b}'));
    let output = run("replay", &["--annotate", "other.cpp", trace]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4));
    assert!(said.contains("no line of other.cpp ran; there are: ") && said.contains("table.cpp"), "{said}");
}
