//! Pages and charts at three widths, light and dark, of programs with long names: nothing is wider than its window, no
//! text overlaps another, is cut off or too faint.
//!
//! `scripts/screenshots` runs these tests with `LOCKSTEP_SCREENSHOTS`, the folder that what they look at is kept in.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::browser;
use crate::chromium::Chromium;
use crate::support::{build, build_long_names, is_whole, root, succeed};

/// What is wrong with the document in the browser.
const FAULTS: &str = include_str!("layout.js");

const WIDTHS: [u32; 3] = [1440, 1024, 390];

/// Programs and what is made of them.
struct Long {
    folder: tempfile::TempDir,
}

impl Long {
    fn new() -> Long {
        Long { folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Builds and traces the program with long names in one of the two languages.
    fn traced(&self, language: &str, arguments: &[&str]) -> String {
        let program = self.at(&format!("long_names_{language}"));
        build_long_names(language, &program);
        let trace = self.at(&format!("long_names_{language}{}.bin", arguments.concat()));
        succeed("trace", &[&["-o", &trace, &program], arguments].concat());
        trace
    }

    fn page(&self, name: &str, options: &[&str], traces: &[&str]) -> PathBuf {
        let page = self.at(name);
        succeed("lockstep", &[&["report", "-o", &page], options, traces].concat());
        page.into()
    }
}

/// Where what was looked at is kept, if that was asked for.
fn kept(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("LOCKSTEP_SCREENSHOTS")?);
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder.join(name))
}

/// What is wrong with a file at every width, light and dark; its screenshots are kept under its name.
fn faults(browser: &mut Chromium, file: &Path) -> Vec<String> {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let mut all = Vec::new();
    for width in WIDTHS {
        for scheme in ["light", "dark"] {
            browser.screen(width, 900, scheme == "dark");
            browser.open_any(file);
            browser.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))");
            let found = browser.evaluate(FAULTS);
            let found = found.as_array().unwrap().iter().map(|fault| fault.as_str().unwrap());
            all.extend(found.map(|fault| format!("{name} at {width}, {scheme}: {fault}")));
            if let Some(kept) = kept(&format!("{name}-{width}-{scheme}.png")) {
                browser.screenshot_of_all(&kept);
            }
        }
    }
    all
}

#[test]
fn the_page_of_a_program_with_long_names_in_cpp_fits_every_width() {
    let Some(mut browser) = browser() else { return };
    let long = Long::new();
    let trace = long.traced("cpp", &[]);
    let page = long.page("cpp.html", &["--syntax", "att"], &[&trace]);
    assert_eq!(faults(&mut browser, &page), Vec::<String>::new());
}

#[test]
fn the_page_of_a_program_with_long_names_in_rust_fits_every_width() {
    let Some(mut browser) = browser() else { return };
    let long = Long::new();
    let trace = long.traced("rs", &[]);
    let page = long.page("rust.html", &["--models", "ipdom,wave"], &[&trace]);
    assert_eq!(faults(&mut browser, &page), Vec::<String>::new());
}

#[test]
fn a_comparison_of_programs_with_long_names_fits_every_width() {
    let Some(mut browser) = browser() else { return };
    let long = Long::new();
    let (few, many) = (long.traced("cpp", &["20"]), long.traced("cpp", &["40"]));
    let page = long.page("comparison.html", &[], &[&few, &many]);
    assert_eq!(faults(&mut browser, &page), Vec::<String>::new());

    // Titles keep what tells two programs apart: folders where names are the same, and the ends of long commands.
    let mut named = |commands: [&str; 2]| {
        let programs = commands.map(|command| json!({ "replayed": { "command": command, "trace": "t.bin" } }));
        browser.evaluate(&format!("namesApart({})", json!(programs)))
    };
    assert_eq!(named(["a/fft -p 4", "b/fft.fcs -p 4"]), json!(["fft -p 4", "fft.fcs -p 4"]));
    assert_eq!(named(["a/fft -p 4", "b/fft -p 4"]), json!(["a/fft -p 4", "b/fft -p 4"]));
    assert_eq!(named(["fft", "fft"]), json!(["fft (t.bin), before", "fft (t.bin), after"]));
    let long = ["1", "2"].map(|last| format!("fft {} -m {last}", "--option=value ".repeat(20)));
    let [before, after] = [0, 1].map(|i| named([&long[0], &long[1]])[i].as_str().unwrap().to_owned());
    assert!(before.ends_with("-m 1") && after.ends_with("-m 2") && before.len() < 100, "{before}, {after}");
}

/// In the control-flow graph of each function labels stand where they fit.
#[test]
fn labels_of_control_flow_graphs_cover_none_and_are_not_cut_off() {
    let Some(mut browser) = browser() else { return };
    let long = Long::new();
    let (program, trace) = (long.at("mandelbrot"), long.at("mandelbrot.bin"));
    build(&root().join("workloads/mandelbrot/mandelbrot.c"), program.as_ref(), &["-fopenmp"]);
    succeed("trace", &["-o", &trace, &program, "-p", "8", "-n", "60", "-i", "100"]);
    let stored = root().join("replay/benches/fft-p16-m12.trace.bin");
    for (name, trace) in [("mandelbrot.html", &*trace), ("fft.html", stored.to_str().unwrap())] {
        let page = long.page(name, &["--models", "ipdom"], &[trace]);
        browser.screen(1440, 900, false);
        browser.open_any(&page);
        let found = browser.evaluate(&format!(
            "(() => {{ const select = document.querySelector('#graph-function'); \
             return [...select.options].flatMap((option) => {{ select.value = option.value; \
             select.dispatchEvent(new Event('change')); return {}; }}); }})()",
            FAULTS.trim_start_matches(|c| c != '(')
        ));
        assert_eq!(found, json!([]), "{name}");
    }
}

#[test]
fn charts_of_all_models_fit_their_pictures() {
    let Some(mut browser) = browser() else { return };
    let long = Long::new();
    let (trace, other) = (long.traced("cpp", &["20"]), long.traced("cpp", &["40"]));
    let models = "all,hanoi:placement=structured,predicate=4,ipdom:placement=nak";
    let rows = |name: &str, options: &[&str], trace: &str| {
        let file = long.at(name);
        succeed("replay", &[&["--heuristic", models, "--csv", &file], options, &[trace]].concat());
        file
    };
    let one = [rows("one.csv", &[], &trace)];
    let two = [one[0].clone(), rows("two.csv", &[], &other)];
    let threads = ["4", "8"].map(|n| rows(&format!("{n}-threads.csv"), &[], &long.traced("cpp", &["20", n])));
    let widths = ["2", "4", "8"].map(|size| rows(&format!("{size}.csv"), &["-W", size], &trace));
    let mut found = Vec::new();
    for kind in report::CHARTS.iter().map(|chart| chart.name()) {
        // What a chart compares.
        let files: &[String] = match kind {
            "divergent" | "speedup" => &two,
            "threads" => &threads,
            "width" => &widths,
            _ => &one,
        };
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        for columns in ["1", "2"] {
            let chart = |extension: &str| long.at(&format!("{kind}-{columns}.{extension}"));
            // A PNG takes seconds: without `scripts/check --whole` one is made.
            let with_png = is_whole() || kept("").is_some() || (kind, columns) == (report::CHARTS[0].name(), "1");
            for chart in ["svg", "pdf"].into_iter().chain(with_png.then_some("png")).map(chart) {
                let options = ["--kind", kind, "--columns", columns, "-o", &chart];
                succeed("lockstep", &[&["plot"], &files[..], &options].concat());
                let name = Path::new(&chart).file_name().unwrap().to_str().unwrap().to_owned();
                if let Some(kept) = kept(&name) {
                    std::fs::copy(&chart, kept).unwrap();
                }
            }
            browser.screen(1440, 900, false);
            browser.open_any(chart("svg").as_ref());
            let faults = browser.evaluate(FAULTS);
            found.extend(faults.as_array().unwrap().iter().map(|fault| format!("{kind}-{columns}.svg: {fault}")));
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_page_of_an_experiment_fits_every_width() {
    let Some(mut browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("experiment");
    let stored = root().join("results/2026-11-22-quick");
    std::fs::create_dir_all(results.join("charts")).unwrap();
    std::fs::copy(stored.join("summary.csv"), results.join("summary.csv")).unwrap();
    for chart in std::fs::read_dir(stored.join("charts")).unwrap() {
        let chart = chart.unwrap().path();
        std::fs::copy(&chart, results.join("charts").join(chart.file_name().unwrap())).unwrap();
    }
    let made = Command::new("python3")
        .current_dir(root())
        .args(["scripts/experiments/page.py", "page", "scripts/experiments/matrices/quick.toml"])
        .arg(&results)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let page = results.join("experiment.html");
    std::fs::rename(results.join("index.html"), &page).unwrap();
    assert_eq!(faults(&mut browser, &page), Vec::<String>::new());

    // Its table sorts and filters, and a chart is as large as it says.
    browser.screen(1440, 900, false);
    browser.open_any(&page);
    let column = "[...document.querySelectorAll('tbody tr:not([hidden])')].map((row) => Number(row.querySelector('td:nth-last-child(6)').textContent.replaceAll(',', '')))";
    let sorted =
        |order: &str| format!("((c) => c.length > 9 && c.every((n, i) => i === 0 || c[i - 1] {order} n))({column})");
    for order in [">=", "<="] {
        browser.click("thead th:nth-last-child(6) button");
        assert_eq!(browser.evaluate(&sorted(order)), true, "{}", browser.evaluate(column));
    }
    browser.evaluate("(() => { const f = document.getElementById('filter'); f.value = 'radix minsp-pc'; f.dispatchEvent(new Event('input')); })()");
    let shown = browser.evaluate("[...document.querySelectorAll('tbody tr:not([hidden])')].map((r) => r.textContent)");
    let shown = shown.as_array().unwrap();
    assert!(!shown.is_empty() && shown.iter().all(|r| r.as_str().unwrap().contains("radix")), "{shown:?}");
    assert_eq!(browser.evaluate("document.querySelector('figure svg').getBoundingClientRect().width"), 624, "468 pt");
}
