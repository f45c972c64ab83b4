//! Whatever is promised says by what: no gain is promised by a model that docs/fidelity.md rejects.

use std::path::PathBuf;

use heuristics::Spec;
use serde_json::Value;

use crate::support::{build, root, succeed};

/// How the gain of a remedy or a pass is known.
const BASES: [&str; 3] = ["replayed", "at most", "about"];

/// More points of error on gcc's code at -O2 than these, and a model promises nothing (docs/fidelity.md).
const MOST: f64 = 6.0;

/// The models that may promise, spelt out: those of the first table of docs/fidelity.md.
fn trusted() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/fidelity.md")).unwrap();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| model | placement | gcc -O1 | gcc -O2"));
    let at = lines.next().unwrap().split(" | ").position(|column| column == "gcc -O2").unwrap();
    let rows = lines.skip(1).map_while(|line| line.strip_prefix("| `")?.split_once('`'));
    let rows = rows.filter(|(_, errors)| errors.split(" | ").nth(at).unwrap().parse::<f64>().unwrap() <= MOST);
    rows.map(|(model, _)| Spec::parse(model).unwrap().to_string()).collect()
}

fn assert_trusted(model: &Value, what: &str) {
    let model = Spec::parse(model.as_str().unwrap()).unwrap().to_string();
    assert!(trusted().contains(&model), "{what} promises by {model}");
}

#[test]
fn what_commands_promise_is_by_a_model_that_is_trusted_and_says_how_it_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let [program, trace, page] = ["julia", "trace.bin", "page.html"].map(|name| folder.path().join(name));
    build(&root().join("workloads/gpu-kernels/julia.c"), &program, &[]);
    let [program, trace, page] = [&program, &trace, &page].map(|path| path.to_str().unwrap());
    succeed("trace", &["-o", trace, program]);
    let json = |program: &str, words: &[&str]| -> Value {
        serde_json::from_str(&succeed(program, &[words, &["--json"]].concat())).unwrap()
    };
    for machine in ["nvidia", "amd", "intel-gpu"] {
        let found = json("lockstep", &["suggest", "--machine", machine, trace]);
        assert_trusted(&found["heuristic"], machine);
        assert!(
            found["passes"]
                .as_array()
                .unwrap()
                .iter()
                .all(|pass| BASES.iter().any(|basis| pass["known_by"] == **basis))
        );
    }
    let said = succeed("lockstep", &["suggest", trace]);
    assert!(said.contains(", under hanoi:predicate=4\n") && said.contains(" GPU instructions"), "{said}");
    let verdict = &json("replay", &[trace])["verdict"];
    assert_trusted(&verdict["heuristic"], "replay");
    let places = verdict["places"].as_array().unwrap();
    let remedies: Vec<&Value> = places.iter().map(|place| &place["remedy"]).filter(|of| !of.is_null()).collect();
    assert!(!remedies.is_empty() && remedies.iter().all(|of| BASES.iter().any(|basis| of["known_by"] == **basis)));
    let compared = json("lockstep", &["diff", program, program]);
    assert_trusted(&compared["results"][0]["heuristic"], "compare");
    assert_eq!(compared["instructions"], "GPU instructions");
    succeed("lockstep", &["report", "--models", "minpc", "-o", page, trace]);
    let collecting = &crate::page::data(page.as_ref())["programs"][0]["collecting"];
    assert!(!collecting["places"].as_array().unwrap().is_empty());
    assert_trusted(&collecting["model"], "the page");
}

/// The pages of a folder, `README.md` of each folder in it.
fn pages() -> Vec<PathBuf> {
    let entries = |folder: &str| std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let results = entries("results").map(|folder| folder.join("README.md")).filter(|page| page.exists());
    results
        .chain(entries("docs"))
        .chain([root().join("README.md")])
        .filter(|page| page.extension().is_some_and(|of| of == "md"))
        .collect()
}

/// Whether it speaks of a gain.
fn promises(text: &str) -> bool {
    ["speed-up", " gain ", " gains ", "fewer fetches"].iter().any(|word| text.contains(word))
}

/// Models in a text, spelt out.
fn models(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|name| Spec::parse(name).ok()).map(|spec| spec.to_string()).collect()
}

#[test]
fn each_page_of_results_that_shows_a_gain_says_its_basis() {
    let trusted = trusted();
    let (mut faults, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let own = page.strip_prefix(root()).unwrap().display().to_string();
        let bases: Vec<&str> = text.split("\n\n").filter(|part| part.starts_with("Basis: ")).collect();
        if own.starts_with("results/20") && promises(&text) && bases.is_empty() {
            faults.push(format!("{own}: shows gains, and no paragraph begins with \"Basis: \""));
        }
        for basis in bases {
            seen += 1;
            let first = basis.split_once(';').map_or(basis, |(first, _)| first);
            let is_known = ["the paper's", "counters"].iter().any(|word| first.contains(word));
            let models = models(first);
            if !is_known && (models.is_empty() || models.iter().any(|model| !trusted.contains(model))) {
                faults.push(format!("{own}: {first}: not a model that docs/fidelity.md trusts, nor the paper's"));
            }
        }
    }
    assert!(faults.is_empty() && seen >= 5, "{faults:#?}");
}
