//! `replay --reorder`: lanes regrouped at a place, as a program would do it that sorts its items by hand.

use serde_json::Value;

use crate::support::{build, command, root, succeed};

const SOURCE: &str = "cli/tests/lanes/reorder.c";

/// The number of the source's only line that ends with this comment.
fn line(comment: &str) -> usize {
    let text = std::fs::read_to_string(root().join(SOURCE)).unwrap();
    1 + text.lines().position(|line| line.ends_with(comment)).unwrap()
}

fn traced(folder: &tempfile::TempDir, define: &str, options: &[&str]) -> String {
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (program, trace) = (at(define), at(&format!("{define}.bin")));
    build(&root().join(SOURCE), program.as_ref(), &[&format!("-D{define}")]);
    succeed("trace", &[options, &["-o", &trace, &program]].concat());
    trace
}

fn replayed(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed("replay", &[&["--json"], arguments].concat())).unwrap()
}

/// The fetches of the two functions that items take.
fn of_bodies(json: &Value) -> [u64; 2] {
    let rows = json["results"][0]["by"]["rows"].as_array().unwrap_or_else(|| panic!("{json}"));
    ["glass", "matte"].map(|name| {
        let row = rows.iter().find(|row| row["function"] == name || row["name"] == name || row["at"] == name);
        row.unwrap_or_else(|| panic!("{name}: {rows:?}"))["fetches"].as_u64().unwrap()
    })
}

#[test]
fn items_regrouped_at_a_line_run_as_those_that_a_program_sorts_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let (lanes, compact) = (traced(&folder, "LANES", &["--memory"]), traced(&folder, "COMPACT", &[]));
    let items = format!("reorder.c:{}", line("// items"));
    let place = format!("reorder.c:{}", line("// regroup"));
    let sorted = format!("reorder.c:{}", line("// sorted"));
    let of_rows = ["-W", "32", "-H", "ipdom", "--by", "function"];
    let regrouped = replayed(&[&of_rows[..], &["--loop", &items, "--reorder", &place, "--check", &lanes]].concat());
    let by_hand = replayed(&[&of_rows[..], &["--loop", &sorted, &compact]].concat());
    assert_eq!(of_bodies(&regrouped), of_bodies(&by_hand));
    let reorder = &regrouped["reorder"];
    // Four rounds of 256 items, all at once.
    assert_eq!([&reorder["regroupings"], &reorder["visits"]], [4, 256 * 4]);
    let efficiency = |row: usize| reorder["rows"][row]["simt_efficiency"].as_f64().unwrap();
    assert!((0.50..0.56).contains(&efficiency(0)), "{reorder}");
    assert!(efficiency(1) > 0.999, "{reorder}");
    assert_eq!(reorder["rows"][1]["fetches"], regrouped["results"][0]["fetches"]);
    let alone = replayed(&["-W", "32", "-H", "ipdom", "--loop", &items, &lanes]);
    assert_eq!(reorder["rows"][0]["fetches"], alone["results"][0]["fetches"]);
    assert!(reorder["rows"].as_array().unwrap().iter().all(|row| row["transactions_32"].as_u64().unwrap() > 0));
    let shown = succeed("replay", &["-W", "32", "--loop", &items, "--reorder", &place, "--key", "path", &lanes]);
    let said = format!("lanes regrouped at {place} by path: 4 times, 1,024 visits by lanes in all");
    for word in [said.as_str(), "as they are", "regrouped", "gain", "cost", "32B transactions"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn what_cannot_be_regrouped_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(&folder, "LANES", &[]);
    let items = format!("reorder.c:{}", line("// items"));
    let refused = |arguments: &[&str]| {
        let output = command("replay", &[arguments, &["--loop", &items, &trace]].concat()).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["--reorder", "reorder.c:1"]);
    assert!(
        said.contains("no lane of the region runs that line; the nearest line that lanes run is reorder.c:"),
        "{said}"
    );
    let said = refused(&["--reorder", "other.c:7"]);
    assert!(said.contains("lanes run no line of other.c"), "{said}");
    let said = refused(&["--reorder", "0x1"]);
    assert!(said.contains("no lane of the region runs code at that address"), "{said}");
    let place = format!("reorder.c:{}", line("// regroup"));
    let said = refused(&["--reorder", &place, "--group", "similarity"]);
    assert!(said.contains("--reorder <PLACE>") && said.contains("--group <HOW>"), "{said}");
    let said = refused(&["--key", "path"]);
    assert!(said.contains("--reorder <PLACE>"), "{said}");
    let said = refused(&["--reorder", &place, "--key", "size"]);
    assert!(said.contains("it is path, trips or instructions"), "{said}");
    let said = refused(&["--reorder", &place, "-W", "4,8"]);
    assert!(said.contains("'--warp-size 4,8' cannot be used with '--reorder <PLACE>'"), "{said}");
}

/// Where each lane is a warp of its own, regrouping changes nothing: not the fetches, nor the memory transactions of a
/// real program, wherever its lanes are cut, in rows of segments or between them, in functions called or not.
#[test]
fn lanes_alone_in_their_warps_run_and_access_the_same_however_they_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (program, trace) = (at("fft"), at("trace.bin"));
    let source = root().join("workloads/fft/fft.c");
    build(&source, program.as_ref(), &[]);
    succeed("trace", &["--memory", "-o", &trace, &program, "-p", "8"]);
    let text = std::fs::read_to_string(&source).unwrap();
    let line = |function: &str, text_of_loop: &str| {
        let begin = text.find(function).unwrap();
        let loop_at = begin + text[begin..].find(text_of_loop).unwrap();
        format!("fft.c:{}", 1 + text[..loop_at].matches('\n').count())
    };
    for place in
        [line(" transform_row(", "for (long start"), line(" reverse_row(", "for ("), line(" transform(", "for (")]
    {
        let json = replayed(&["-W", "1", "-H", "ipdom", "--reorder", &place, "--check", &trace]);
        let rows = json["reorder"]["rows"].as_array().unwrap();
        assert!(json["reorder"]["visits"].as_u64().unwrap() > 8, "{place}: {json}");
        assert!(rows[0]["transactions_32"].as_u64().unwrap() > 10_000, "{place}: {rows:?}");
        for column in ["fetches", "transactions_32"] {
            assert_eq!(rows[0][column], rows[1][column], "{place}: {column}");
        }
    }
}
