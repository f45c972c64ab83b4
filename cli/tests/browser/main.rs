//! The page of `lockstep report` in a browser: it shows replay's numbers, its links lead from the verdict to a branch
//! to its line, its lane map zooms to single fetches, it asks for nothing from the network and causes no error.
//! Screenshots are kept in `target/tmp/report`.
//!
//! Needs Chromium (`scripts/setup` installs it); without it the tests say that they were skipped.

#![allow(clippy::disallowed_macros, reason = "remarks of a test go where cargo shows them")]

mod chromium;
mod layout;
#[path = "../commands/support.rs"]
mod support;
mod using;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use chromium::Chromium;
use support::{build, root, succeed};

/// FFT, built and traced, with its page.
struct Fft {
    folder: tempfile::TempDir,
}

impl Fft {
    /// With 16 threads, and one trace per number of points.
    fn traced(sizes: &[&str]) -> Fft {
        let fft = Fft { folder: tempfile::tempdir().unwrap() };
        build(&root().join("workloads/fft/fft.c"), &fft.at("fft"), &[]);
        for size in sizes {
            let (trace, program) = (fft.at(&format!("{size}.bin")), fft.at("fft"));
            let command = ["--engine", "translate", "-o", trace.to_str().unwrap(), program.to_str().unwrap()];
            succeed("trace", &[&command[..], &["-p", "16", "-m", size]].concat());
        }
        fft
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A page about `minsp-pc`.
    fn page_of(&self, traces: &[&str]) -> PathBuf {
        self.page(&["--model", "minsp-pc"], traces)
    }

    fn page(&self, options: &[&str], traces: &[&str]) -> PathBuf {
        let page = self.at("report.html");
        let traces: Vec<String> = traces.iter().map(|t| self.at(t).to_str().unwrap().to_owned()).collect();
        let mut arguments = [&["report", "-o", page.to_str().unwrap()][..], options].concat();
        arguments.extend(traces.iter().map(String::as_str));
        succeed("lockstep", &arguments);
        page
    }

    fn replayed(&self, trace: &str) -> Value {
        let trace = self.at(trace);
        serde_json::from_str(&succeed("replay", &["--heuristic", "all", "--json", trace.to_str().unwrap()])).unwrap()
    }
}

/// Where screenshots are kept.
fn kept(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// A browser, or the words that there is none.
fn browser() -> Option<Chromium> {
    let browser = Chromium::start();
    if browser.is_none() {
        eprintln!("skipped: chromium is not installed (scripts/setup installs it)");
    }
    browser
}

fn grouped(number: &Value) -> String {
    let digits = number.as_u64().unwrap().to_string();
    let threes: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|t| std::str::from_utf8(t).unwrap()).collect();
    threes.join(",")
}

/// As the page writes it: what is not nothing never shows as 0.0%, and what is not all never as 100.0%.
fn percent(share: &Value) -> String {
    match share.as_f64().unwrap() {
        share if share > 0.0 && share < 0.0005 => "<0.1%".to_owned(),
        share if share < 1.0 && share > 0.9995 => ">99.9%".to_owned(),
        share => format!("{:.1}%", share * 100.0),
    }
}

/// Nothing went wrong, and nothing but the page itself was asked for.
fn assert_quiet(browser: &Chromium, page: &Path) {
    assert_eq!(browser.errors(), Vec::<String>::new());
    let asked = browser.requests();
    let own = format!("file://{}", page.display());
    assert!(!asked.is_empty() && asked.iter().all(|url| *url == own || url.starts_with("data:")), "{asked:?}");
}

#[test]
fn the_page_of_fft_leads_from_the_verdict_to_a_branch_to_its_line() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["10"]);
    let page = fft.page_of(&["10.bin"]);
    browser.screen(1280, 900, false);
    println!("ready after {:?}", browser.open(&page));

    let replayed = fft.replayed("10.bin");
    let results = replayed["results"].as_array().unwrap();
    let chosen = results.iter().find(|r| r["heuristic"] == "minsp-pc").unwrap();
    let text = |browser: &mut Chromium, selector: &str| {
        browser
            .evaluate(&format!("document.querySelector({}).textContent", json!(selector)))
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(text(&mut browser, "#efficiency"), percent(&chosen["simt_efficiency"]));
    for name in ["fetches", "thread_instructions", "lost_slots"] {
        assert_eq!(text(&mut browser, &format!("[data-number={name}]")), grouped(&chosen[name]), "{name}");
    }
    for result in results.iter().filter(|r| r["status"] == "ok") {
        let row = text(&mut browser, &format!("#models tr[data-heuristic~={}]", result["heuristic"]));
        assert!(row.contains(&grouped(&result["fetches"])), "{row}");
        let row = text(&mut browser, &format!("#divergent tr[data-heuristic~={}]", result["heuristic"]));
        let share =
            json!(result["divergent_instructions"].as_f64().unwrap() / result["thread_instructions"].as_f64().unwrap());
        assert!(row.contains(&grouped(&result["divergent_instructions"])) && row.contains(&percent(&share)), "{row}");
        // The divergent part of its bar is as long, of the whole, as the share.
        let drawn = browser.evaluate(&format!(
            "(() => {{ const s = document.querySelector({}); return (s.querySelector('i')?.getBoundingClientRect().width ?? 0) / s.clientWidth; }})()",
            json!(format!("#divergent tr[data-heuristic~={}] .stack", result["heuristic"]))
        ));
        assert!((drawn.as_f64().unwrap() - share.as_f64().unwrap()).abs() < 0.01, "{drawn} is not {share}: {row}");
    }
    browser.screenshot(&kept("verdict.png"));

    browser.click("#worst-branch");
    assert_eq!(browser.evaluate("location.hash"), "#branch-0");
    // The page scrolls smoothly: on a busy machine it takes a while until the place is seen.
    let is_seen = "(async () => {
        const seen = () => {
            const box = document.querySelector(location.hash).getBoundingClientRect();
            return box.top >= 0 && box.top < innerHeight;
        };
        for (let tries = 0; tries < 200 && !seen(); tries++) await new Promise(done => setTimeout(done, 50));
        return seen();
    })()";
    assert_eq!(browser.evaluate(is_seen), true);
    browser.screenshot(&kept("branch.png"));
    let line = text(&mut browser, "#branch-0 h3 a");
    assert!(line.starts_with("fft.c:"), "{line}");
    browser.click("#branch-0 h3 a");
    assert_eq!(browser.evaluate("document.querySelector(location.hash).dataset.line"), json!(line));
    assert_eq!(browser.evaluate(is_seen), true);
    browser.screenshot(&kept("source.png"));
    for (section, file) in [("#flame", "flame.png"), ("#graph", "graph.png")] {
        browser.evaluate(&format!("document.querySelector('{section}').scrollIntoView({{ behavior: 'instant' }})"));
        browser.screenshot(&kept(file));
    }
    assert_quiet(&browser, &page);
}

#[test]
fn the_lane_map_zooms_from_the_whole_run_to_single_fetches() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["10"]);
    let page = fft.page_of(&["10.bin"]);
    browser.screen(1280, 900, false);
    browser.open(&page);
    browser.evaluate("document.querySelector('#lanes').scrollIntoView({ behavior: 'instant' })");
    browser.screenshot(&kept("lane-map.png"));
    assert_eq!(browser.evaluate("document.querySelector('#map').dataset.detail"), "bins");
    let width = "(({ start, end }) => end - start)(document.querySelector('#map').dataset)";
    let mut shown = browser.evaluate(width).as_u64().unwrap();
    assert_eq!(shown, fft.replayed("10.bin")["results"][1]["fetches"].as_u64().unwrap());
    while browser.evaluate("document.querySelector('#map').dataset.detail") == "bins" {
        browser.click("#map-in");
        let now = browser.evaluate(width).as_u64().unwrap();
        assert!(now < shown, "{now} fetches are not fewer than {shown}");
        shown = now;
    }
    browser.click("#map-worst");
    let at = browser.evaluate("(() => { const b = document.querySelector('#map').getBoundingClientRect(); return [b.left + b.width / 2, b.top + 4]; })()");
    browser.point_at(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    let said = browser.evaluate("document.querySelector('#map-readout').textContent");
    let said = said.as_str().unwrap();
    assert!(said.contains("mask ") && said.contains("of 16 active") && said.contains("fft.c:"), "{said}");
    assert_eq!(browser.evaluate("document.querySelector('#tip').hidden"), false);
    browser.screenshot(&kept("lane-map-single-fetches.png"));
    // The same with keys alone.
    browser.evaluate("document.querySelector('#map').focus()");
    browser.press("ArrowRight");
    browser.press("ArrowDown");
    let moved = browser.evaluate("document.querySelector('#map-readout').textContent");
    assert!(moved.as_str().unwrap().contains("lane 1 "), "{moved}");
    browser.press("Home");
    assert_eq!(browser.evaluate("document.querySelector('#map').dataset.detail"), "bins");
    assert_quiet(&browser, &page);
}

#[test]
fn a_comparison_shows_what_changed_by_line_and_either_program_in_full() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8", "10"]);
    let page = fft.page_of(&["10.bin", "8.bin"]);
    browser.screen(1280, 900, false);
    println!("ready after {:?}", browser.open(&page));
    browser.screenshot(&kept("comparison.png"));
    let unlike = browser.evaluate("[...document.querySelectorAll('.unlike')].map((p) => p.textContent)");
    assert_eq!(unlike, json!(["Different inputs: -p 16 -m 10 before, -p 16 -m 8 after."]));
    let title = browser.evaluate("document.title");
    assert_eq!(title, "fft -p 16 -m 10 and fft -p 16 -m 8 in lockstep");
    divergent_bars_stand_side_by_side(&mut browser, &fft, &page);
    browser.evaluate("document.querySelector('#changes').scrollIntoView({ behavior: 'instant' })");
    browser.screenshot(&kept("comparison-lines.png"));
    let changes = browser.evaluate("[...document.querySelectorAll('#changes tr[data-line]')].map((r) => [r.dataset.line, Number(r.dataset.change)])");
    assert!(
        changes
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c[0].as_str().unwrap().starts_with("fft.c:") && c[1].as_i64().unwrap() < 0),
        "{changes}"
    );
    let all: i64 = changes.as_array().unwrap().iter().map(|c| c[1].as_i64().unwrap()).sum();
    let lost = ["10.bin", "8.bin"].map(|t| {
        let replayed = fft.replayed(t);
        let results = replayed["results"].as_array().unwrap().iter();
        results.clone().find(|r| r["heuristic"] == "minsp-pc").unwrap()["lost_slots"].as_i64().unwrap()
    });
    assert_eq!(all, lost[1] - lost[0]);
    browser.click("#show-before");
    assert_eq!(browser.evaluate("document.querySelector('#show-before').getAttribute('aria-pressed')"), "true");
    assert_eq!(
        browser.evaluate("document.querySelector('#program [data-number=lost_slots]').textContent"),
        grouped(&json!(lost[0]))
    );
    assert_quiet(&browser, &page);
}

/// Before (10.bin) over after (8.bin), in counts and in shares, with the change in figures, at three widths, in light
/// and dark.
fn divergent_bars_stand_side_by_side(browser: &mut Chromium, fft: &Fft, page: &Path) {
    let [before, after] = ["10.bin", "8.bin"].map(|trace| {
        let replayed = fft.replayed(trace);
        let results = replayed["results"].as_array().unwrap().iter();
        let result = results.clone().find(|r| r["heuristic"] == "minsp-pc").unwrap();
        ["divergent_instructions", "thread_instructions"].map(|name| result[name].as_f64().unwrap())
    });
    let row = |browser: &mut Chromium| {
        let cells = "[...document.querySelectorAll('#compared-divergent tr[data-heuristic~=minsp-pc] td.number')].map((c) => c.textContent)";
        browser.evaluate(cells)
    };
    let cells = row(browser);
    let change = (after[0] - before[0]) / before[0] * 100.0;
    let sign = if change < 0.0 { "−" } else { "+" };
    assert_eq!(
        [&cells[0], &cells[1]],
        [&json!(grouped(&json!(before[0] as u64))), &json!(grouped(&json!(after[0] as u64)))]
    );
    assert!(cells[2].as_str().unwrap().starts_with(&format!("{sign}{:.1}% ", change.abs())), "{cells}");
    browser.click("#divergent-shares");
    let cells = row(browser);
    let shares = [before, after].map(|[divergent, all]| json!(divergent / all));
    assert_eq!([&cells[0], &cells[1]], [&json!(percent(&shares[0])), &json!(percent(&shares[1]))]);
    for width in [1440, 1024, 390] {
        for dark in [false, true] {
            browser.screen(width, 900, dark);
            browser.open(page);
            assert_eq!(
                browser.evaluate("document.documentElement.scrollWidth"),
                width,
                "the page is as wide as its window"
            );
            let cut = "[...document.querySelectorAll('.stacks td')].filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.textContent)";
            assert_eq!(browser.evaluate(cut), json!([]), "no label is cut off or covers another at {width}");
            for section in ["compared-divergent", "divergent"] {
                browser.evaluate(&format!(
                    "document.querySelector('#{section}').scrollIntoView({{ behavior: 'instant' }})"
                ));
                browser.screenshot(&kept(&format!("{section}-{width}-{}.png", if dark { "dark" } else { "light" })));
            }
        }
    }
    browser.screen(1280, 900, false);
    browser.open(page);
}

#[test]
fn the_model_that_the_page_speaks_of_can_be_switched() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8"]);
    let page = fft.page(&["--model", "minsp-pc", "--models", "minsp-pc,ipdom,lee"], &["8.bin"]);
    browser.screen(1280, 900, false);
    browser.open(&page);
    let choose = |browser: &mut Chromium, name: &str| {
        browser.evaluate(&format!(
            "(() => {{ const s = document.querySelector('#model'); s.value = [...s.options].find((o) => o.text.startsWith({})).value; \
             s.dispatchEvent(new Event('change')); }})()",
            json!(name)
        ));
    };
    let read = |browser: &mut Chromium| {
        [
            browser.evaluate("document.querySelector('#efficiency').textContent"),
            browser.evaluate("document.querySelector('[data-number=lost_slots]').textContent"),
            browser.evaluate("[...document.querySelectorAll('#source tr[data-line]')].map((r) => [r.dataset.line, Number(r.dataset.lost)])"),
            browser.evaluate("Number(document.querySelector('#branch-0').dataset.lost)"),
        ]
    };
    let first = read(&mut browser);
    choose(&mut browser, "ipdom");
    let trace = fft.at("8.bin");
    let by = |what: &str| {
        let json = succeed("replay", &["-H", "ipdom", "--by", what, "--json", trace.to_str().unwrap()]);
        serde_json::from_str::<Value>(&json).unwrap()["results"][0].take()
    };
    let (lines, branches) = (by("line"), by("branch"));
    let [efficiency, lost, shown, worst] = read(&mut browser);
    assert_eq!([efficiency, lost], [json!(percent(&lines["simt_efficiency"])), json!(grouped(&lines["lost_slots"]))]);
    let shown = shown.as_array().unwrap();
    for row in lines["by"]["rows"].as_array().unwrap() {
        // What has no line is named otherwise.
        let Some(file) = row["file"].as_str() else { continue };
        let line = json!([format!("{}:{}", file.rsplit('/').next().unwrap(), row["line"]), row["lost_slots"]]);
        assert!(shown.contains(&line), "{line} is not among {shown:?}");
    }
    let most = branches["by"]["rows"].as_array().unwrap().iter().filter(|row| row["place"].is_string());
    assert_eq!(worst.as_u64(), most.map(|row| row["parted_slots"].as_u64().unwrap()).max());
    browser.screenshot(&kept("switched.png"));
    browser.click("#model-back");
    assert_eq!(read(&mut browser), first);
    assert_quiet(&browser, &page);
}

#[test]
fn tables_sort_and_filter_and_lines_lead_to_their_instructions() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8"]);
    let page = fft.page(&["--syntax", "att"], &["8.bin"]);
    browser.screen(1440, 900, false);
    browser.open(&page);

    // By fetches: the most first, then the least, then by family again.
    let fetches = "[...document.querySelectorAll('#models tr[data-heuristic] td:nth-child(5)')].map((c) => Number(c.textContent.replaceAll(',', '')))";
    let ordered = |order: &str| format!("({fetches}).every((n, i, all) => i === 0 || all[i - 1] {order} n)");
    let before = browser.evaluate(fetches);
    for order in [">=", "<="] {
        browser.click("#models th:nth-child(5) button");
        assert_eq!(browser.evaluate(&ordered(order)), true, "{}", browser.evaluate(fetches));
    }
    browser.click("#models th:nth-child(5) button");
    assert_eq!(browser.evaluate(fetches), before);
    let filtered = |browser: &mut Chromium, text: &str| {
        browser.evaluate(&format!(
            "(() => {{ const f = document.querySelector('#models input'); f.value = {}; f.dispatchEvent(new Event('input')); \
             return [...document.querySelectorAll('#models tr[data-heuristic]')].filter((r) => !r.hidden).map((r) => r.dataset.heuristic); }})()",
            json!(text)
        ))
    };
    let found = filtered(&mut browser, "tf-").as_array().unwrap().clone();
    assert!(!found.is_empty() && found.iter().all(|names| names.as_str().unwrap().contains("tf-")), "{found:?}");
    assert!(filtered(&mut browser, "").as_array().unwrap().len() > found.len());

    // A shaded line says cause and cost, and a click on it marks its instructions.
    let shaded = "[...document.querySelectorAll('#source tr.ran[data-line]')].filter((r) => r.style.cssText.includes('--heat')).map((r) => r.querySelector('.code').title)";
    let shaded = browser.evaluate(shaded);
    let says = |title: &Value| {
        title.as_str().unwrap().contains(" lane-slots, ") && title.as_str().unwrap().contains("% of all, to ")
    };
    assert!(!shaded.as_array().unwrap().is_empty() && shaded.as_array().unwrap().iter().all(says), "{shaded}");
    browser.click("#source tr[data-line='fft.c:76']:not(.instruction) .code");
    let picked =
        browser.evaluate("[...document.querySelectorAll('#source tr.instruction.picked')].map((r) => r.dataset.line)");
    let picked = picked.as_array().unwrap();
    assert!(!picked.is_empty() && picked.iter().all(|line| line == "fft.c:76"), "{picked:?}");

    // Colours of lines have their legend.
    browser.click("#map-colour");
    let legend = browser.evaluate("document.querySelector('#map-lines').textContent");
    assert!(legend.as_str().unwrap().contains("fft.c:"), "{legend}");
    assert_quiet(&browser, &page);
}

#[test]
fn the_page_fits_a_phone_the_dark_and_paper() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8"]);
    // About the model of the default machine, whose name is long.
    let page = fft.page(&[], &["8.bin"]);
    browser.screen(390, 844, true);
    browser.open(&page);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 390);
    let background =
        |b: &mut Chromium| b.evaluate("getComputedStyle(document.body).backgroundColor").as_str().unwrap().to_owned();
    assert_eq!(background(&mut browser), "rgb(15, 19, 24)");
    browser.screenshot(&kept("phone-dark.png"));
    browser.screen(1280, 900, false);
    assert_eq!(background(&mut browser), "rgb(255, 255, 255)");
    browser.print(&kept("printed.pdf"));
    assert!(std::fs::read(kept("printed.pdf")).unwrap().starts_with(b"%PDF"));
    let unnamed = "[...document.querySelectorAll('button, a[href], select, canvas, summary, [role=img]')].filter((e) => \
        !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML.slice(0, 80))";
    assert_eq!(browser.evaluate(unnamed), json!([]), "everything that can be used or looked at has a name");
    assert_quiet(&browser, &page);
}
