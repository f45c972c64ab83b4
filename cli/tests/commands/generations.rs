//! Threads that are joined before others are started, in a real program.

use serde_json::Value;

use crate::support::{build, root, succeed};

#[test]
fn threads_that_were_joined_before_others_began_share_no_fetch_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    build(&root().join("cli/tests/programs/generations.c"), &program, &[]);
    let trace = trace.to_str().unwrap();
    for engine in ["translate", "step"] {
        succeed("trace", &["--engine", engine, "-o", trace, program.to_str().unwrap()]);
        for size in [None, Some("2"), Some("32")] {
            let mut arguments = vec!["--json", "--check", "-H", "minsp-pc,ipdom,dwf,none"];
            arguments.extend(size.iter().flat_map(|size| ["-W", size]));
            arguments.push(trace);
            let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
            let view = json["view"].as_str().unwrap();
            assert!(view.contains("12 lanes") && view.contains("in 3 generations"), "{view}");
            assert!(!view.contains("not sure"), "{view}");
            let results = json["results"].as_array().unwrap();
            // All lanes run the same, so the least is what a lane runs, once for each generation and warp of it.
            let one = results[0]["lane_instructions"][0].as_u64().unwrap();
            assert!(one > 3000);
            let least = 3 * one * if size == Some("2") { 2 } else { 1 };
            for result in results {
                let nothing_shared = result["heuristic"] == "none";
                let fetches = result["fetches"].as_u64().unwrap();
                assert_eq!(fetches, if nothing_shared { 12 * one } else { least }, "{result}");
                let own_bound = result["lower_bound"].as_u64().unwrap();
                assert!(own_bound <= fetches && own_bound >= 3 * one, "{result}");
            }
        }
    }
}
