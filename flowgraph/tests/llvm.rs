//! Dominators, post-dominators, loops and regions against LLVM's own analyses: of all workloads as clang compiles them,
//! and of random functions.
//!
//! `opt-19` prints what it finds; the graph is read off the labels that it prints. Where LLVM has another rule, the
//! function is counted and left out of that comparison: post-dominators and regions where a loop never ends
//! ([`flowgraph::PostDominators`] says how they differ), loops where one is irreducible (LLVM lists natural loops
//! only).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flowgraph::{Builder, DepthFirst, Dominators, Graph, Loops, NodeId, PostDominators, Regions};

const ANALYSES: &str = "print<domtree>,print<postdomtree>,print<loops>,print<regions>";

/// Runs a tool on `input`; its standard output and what it printed as analyses.
fn run(tool: &str, arguments: &[&str], input: &str) -> (String, String) {
    let mut command = Command::new(tool);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{tool}: {e}; scripts/setup installs it"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the tool ends");
    let _ = writer.join().expect("the writer ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{tool} {arguments:?}: {stderr}");
    (stdout, stderr)
}

/// A function's graph as its text has it; the first block is the entry.
#[derive(Default)]
struct Function {
    blocks: Vec<String>,
    targets: Vec<Vec<String>>,
    exits: Vec<usize>,
}

impl Function {
    fn graph(&self) -> (Graph, HashMap<&str, NodeId>) {
        let numbers: HashMap<_, _> = self.blocks.iter().map(String::as_str).zip((0..).map(NodeId)).collect();
        let mut builder = Builder::new(self.blocks.len());
        for (from, targets) in (0..).map(NodeId).zip(&self.targets) {
            for target in targets {
                builder.edge(from, numbers[target.as_str()]);
            }
        }
        (builder.build(NodeId(0)), numbers)
    }
}

/// The functions of a module in which every value has a name. Only what ends a block mentions labels.
fn functions(module: &str) -> BTreeMap<String, Function> {
    let mut found = BTreeMap::new();
    let mut current: Option<(String, Function)> = None;
    for line in module.lines() {
        if let Some(rest) = line.strip_prefix("define ") {
            let name = rest.split_once('@').expect("a name").1;
            current = Some((name[..name.find('(').expect("parameters")].to_owned(), Function::default()));
        } else if line == "}" {
            found.extend(current.take());
        } else if let Some((_, function)) = &mut current {
            let label = line.split_once(':').map(|(label, _)| label);
            if let Some(label) = label.filter(|label| !label.starts_with([' ', '\t', ';'])) {
                function.blocks.push(label.to_owned());
                function.targets.push(Vec::new());
                continue;
            }
            let targets = line
                .split("label %")
                .skip(1)
                .map(|rest| rest[..rest.find([',', ' ', ']']).unwrap_or(rest.len())].to_owned());
            let block = function.blocks.len().wrapping_sub(1);
            if let Some(all) = function.targets.last_mut() {
                all.extend(targets);
            }
            let code = line.trim_start();
            if code.starts_with("ret ") || code.starts_with("unreachable") || code.starts_with("resume ") {
                function.exits.push(block);
            }
        }
    }
    found
}

/// What `opt` printed for each function, by the words before its name.
fn printed<'t>(analyses: &'t str, heading: &str, end: &str) -> BTreeMap<String, Vec<&'t str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut current = None;
    for line in analyses.lines() {
        if let Some(name) = line.strip_prefix(heading) {
            current = Some(name.trim_matches([':', '\'']).to_owned());
            found.entry(current.clone().expect("set")).or_default();
        } else if line.contains("or function") || line.starts_with(end) {
            current = None;
        } else if let Some(name) = &current {
            found.get_mut(name).expect("entered").push(line);
        }
    }
    found
}

/// A printed tree as (node, parent): `  [2] %name {…`, a level for each.
fn parents(lines: &[&str]) -> BTreeMap<String, Option<String>> {
    let mut path: Vec<String> = Vec::new();
    let mut parents = BTreeMap::new();
    for line in lines {
        let Some((level, rest)) = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
            continue;
        };
        let name = rest.trim_start().split(" {").next().expect("a name").trim_start_matches('%').to_owned();
        path.truncate(level.parse::<usize>().expect("a level") - 1);
        parents.insert(name.clone(), path.last().cloned());
        path.push(name);
    }
    parents
}

/// How many functions were compared in which respect.
#[derive(Debug, Default)]
struct Counts {
    functions: usize,
    blocks: usize,
    post_dominators: usize,
    loops: usize,
    irreducible: usize,
    regions: usize,
}

/// Compares every function of a module of textual IR.
fn compare(ir: &str, counts: &mut Counts) {
    let (module, analyses) = run("opt-19", &[&format!("-passes=function(instnamer,{ANALYSES})"), "-S", "-"], ir);
    let dominators = printed(&analyses, "DominatorTree for function: ", "Roots:");
    let post_dominators = printed(&analyses, "PostDominatorTree for function: ", "Roots:");
    let loops = printed(&analyses, "Loop info for function ", "Region tree");
    let regions = printed(&analyses, "Region Tree for function: ", "End region tree");
    for (name, function) in functions(&module) {
        let (graph, numbers) = function.graph();
        let label = |node: NodeId| function.blocks[node.index()].clone();
        let ours = Dominators::of(&graph);
        let reached = DepthFirst::of(&graph).preorder().to_vec();
        let tree = |parent: &dyn Fn(NodeId) -> Option<String>| -> BTreeMap<String, Option<String>> {
            reached.iter().map(|&node| (label(node), parent(node))).collect()
        };
        assert_eq!(tree(&|node| ours.idom(node).map(label)), parents(&dominators[&name]), "dominators of {name}");
        counts.functions += 1;
        counts.blocks += reached.len();

        let our_loops = Loops::of(&graph);
        if our_loops.ids().any(|id| our_loops.is_irreducible(id)) {
            counts.irreducible += 1;
        } else {
            let members = |id| our_loops.members(id).iter().map(|&node| label(node)).collect::<BTreeSet<_>>();
            let found: BTreeSet<_> =
                our_loops.ids().map(|id| (our_loops.depth(our_loops.header(id)), members(id))).collect();
            assert_eq!(found, printed_loops(&loops[&name]), "loops of {name}");
            counts.loops += found.len();
        }

        let exits: Vec<_> = function.exits.iter().map(|&block| NodeId(block as u32)).collect();
        let post = PostDominators::of(&graph, &exits);
        if post.pseudo_exits().iter().any(|exit| reached.contains(exit)) {
            continue;
        }
        let exit = "<<exit node>>".to_owned();
        let mut theirs = parents(&post_dominators[&name]);
        theirs.remove(&exit);
        theirs.retain(|block, _| reached.contains(&numbers[block.as_str()]));
        let with_exit = |node| Some(post.ipdom(node).map_or_else(|| exit.clone(), label));
        // With one exit, LLVM makes that block the root.
        let theirs: BTreeMap<_, _> =
            theirs.into_iter().map(|(block, above)| (block, Some(above.unwrap_or_else(|| exit.clone())))).collect();
        assert_eq!(tree(&with_exit), theirs, "post-dominators of {name}");
        counts.post_dominators += 1;

        let our_regions = Regions::of(&graph, &ours, &post);
        let bounds = |id| (label(our_regions.entry(id)), label(our_regions.exit(id)));
        let found: BTreeSet<_> = our_regions.ids().map(|id| (bounds(id), our_regions.parent(id).map(bounds))).collect();
        assert_eq!(found, printed_regions(&regions[&name]), "regions of {name}");
        counts.regions += found.len();
    }
}

type Bounds = (String, String);

fn printed_loops(lines: &[&str]) -> BTreeSet<(u32, BTreeSet<String>)> {
    let of_line = |line: &&str| {
        let (depth, members) = line.split_once("Loop at depth ")?.1.split_once(" containing: ")?;
        let name = |member: &str| member.split('<').next().expect("a name").trim_start_matches('%').to_owned();
        Some((depth.parse().expect("a depth"), members.split(',').map(name).collect()))
    };
    lines.iter().filter_map(of_line).collect()
}

/// (region, region around it); the whole function, level 0, is none.
fn printed_regions(lines: &[&str]) -> BTreeSet<(Bounds, Option<Bounds>)> {
    let mut path: Vec<Option<Bounds>> = Vec::new();
    let mut found = BTreeSet::new();
    for line in lines {
        let Some((level, rest)) = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
            continue;
        };
        let (entry, exit) = rest.split_once(" => ").expect("two ends");
        path.truncate(level.parse().expect("a level"));
        let region = (!path.is_empty()).then(|| (entry.to_owned(), exit.to_owned()));
        if let Some(region) = region.clone() {
            found.insert((region, path.last().cloned().flatten()));
        }
        path.push(region);
    }
    found
}

#[test]
fn workloads_have_the_trees_that_llvm_finds() {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.collect()
    };
    let folders = list(&workloads).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<_> = folders.flat_map(|folder| list(&folder)).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    let mut counts = Counts::default();
    let include = workloads.join("include").display().to_string();
    let project = workloads.join("../include").display().to_string();
    // At one level each in turn; `scripts/check --whole` asks for both.
    let is_whole = std::env::var_os("LOCKSTEP_WHOLE").is_some();
    for (number, file) in files.iter().enumerate() {
        let name = file.display().to_string();
        let levels: &[&str] = if is_whole { &["-O1", "-O2"] } else { &[["-O1", "-O2"][number % 2]] };
        for &level in levels {
            let arguments = [level, "-fopenmp", "-S", "-emit-llvm", "-w", "-I", &include, "-I", &project, "-o", "-"];
            let (ir, _) = run("clang-19", &[&arguments[..], &[&name]].concat(), "");
            compare(&ir, &mut counts);
        }
    }
    println!("{} files: {counts:?}", files.len());
    assert!(counts.functions >= 100 && counts.post_dominators > 80 && counts.loops > 50 && counts.regions > 50);
}

/// A generator of numbers (SplitMix64), the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

/// A function of `count` blocks behind its entry. Most blocks lead on to near ones, some back, some return.
fn random_function(name: usize, numbers: &mut Numbers) -> String {
    let count = 3 + numbers.below(28);
    let mut text = format!("define void @f{name}(i32 %x) {{\nentry:\n  br label %b0\n");
    for block in 0..count {
        let near = |numbers: &mut Numbers| match numbers.below(8) {
            0 => numbers.below(count),
            1 => (block + count - numbers.below(4).min(block)) % count,
            _ => (block + 1 + numbers.below(3)).min(count - 1),
        };
        let (a, b, c) = (near(numbers), near(numbers), near(numbers));
        writeln!(text, "b{block}:").expect("memory");
        let end = match numbers.below(10) {
            _ if block + 1 == count => "ret void".to_owned(),
            0 => "ret void".to_owned(),
            // Several edges to one block are one in a graph of this crate; a block that has no others is then a trivial
            // region, and not one for LLVM.
            1 if (a, b) == (b, c) => format!("br label %b{a}"),
            1 => format!("switch i32 %x, label %b{a} [ i32 0, label %b{b}\n    i32 1, label %b{c} ]"),
            2..=4 => format!("br label %b{a}"),
            _ if a == b => format!("br label %b{a}"),
            _ => format!("br i1 undef, label %b{a}, label %b{b}"),
        };
        writeln!(text, "  {end}").expect("memory");
    }
    text + "}\n"
}

#[test]
fn random_functions_have_the_trees_that_llvm_finds() {
    let mut numbers = Numbers(19);
    let ir: String = (0..600).map(|name| random_function(name, &mut numbers)).collect();
    let mut counts = Counts::default();
    compare(&ir, &mut counts);
    println!("{counts:?}");
    assert!(counts.functions == 600 && counts.post_dominators >= 300 && counts.irreducible >= 50);
    assert!(counts.loops >= 200 && counts.regions >= 300);
}
