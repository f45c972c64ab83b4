//! Divergence analysis against LLVM's own: `opt-19 -passes='print<uniformity>'` on code for AMD's and NVIDIA's GPUs.
//!
//! What LLVM calls uniform and we do not must follow from one of a few listed reasons; what we call uniform or affine
//! and LLVM does not has an argument, the chain of rules, which is printed with `--nocapture`.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use transform::llvm::{Module, Opcode};
use transform::spmd::{Class, Decision, FunctionFacts, Options, Program, Rule, ValueId};

/// The values that LLVM calls divergent, by function; arguments and unnamed instructions by their names.
fn of_llvm(file: &Path) -> BTreeMap<String, HashSet<String>> {
    let output =
        Command::new("opt-19").args(["-passes=print<uniformity>", "-disable-output"]).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "opt-19 refuses {}: {text}", file.display());
    let (mut all, mut function): (BTreeMap<String, HashSet<String>>, String) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("UniformityInfo for function '") {
            function = name.trim_end_matches("':").to_owned();
            all.entry(function.clone()).or_default();
        } else if let Some(rest) = line.trim_start().strip_prefix("DIVERGENT:") {
            let rest = rest.trim();
            let name = match rest.split_once(" = ") {
                Some((name, _)) => name,
                // An argument: its type, then its name; or what makes no value.
                None => rest.rsplit(' ').next().unwrap_or_default(),
            };
            all.entry(function.clone()).or_default().insert(name.to_owned());
        }
    }
    all
}

/// How many values both analyses put into which class.
#[derive(Default, Debug, PartialEq, Eq, Clone, Copy)]
struct Counts {
    functions: usize,
    values: usize,
    both_uniform: usize,
    both_divergent: usize,
    /// We call them affine; LLVM divergent.
    affine: usize,
    /// We call them uniform; LLVM divergent.
    uniform_beyond: usize,
    /// LLVM calls them uniform; we do not.
    less: usize,
}

/// Why a value may be uniform for LLVM and not for us.
fn listed(facts: &FunctionFacts<'_>, id: ValueId) -> Option<&'static str> {
    let analysis = facts.analysis();
    let gated = analysis.gated();
    match analysis.rule(id) {
        Rule::Atma => return Some("an atomic load: another thread may write between two lanes' loads"),
        Rule::Ldpa => return Some("a volatile load"),
        Rule::Irra => return Some("an irreducible loop in which lanes part"),
        _ => {}
    }
    // Bits of a work item's number above the lowest six.
    if let Some(and) = facts.instruction(id).filter(|by| by.opcode() == Opcode::LLVMAnd)
        && let Some(mask) = and.operand(1).as_number()
        && mask % 64 == 0
        && facts.id(and.operand(0)).is_some_and(|item| analysis.rule(item) == Rule::Tida)
    {
        return Some("a wavefront of 64 begins at a multiple of 64");
    }
    let left = |node: ValueId| gated.eta(node).is_some_and(|eta| gated.gates().is_inner_turn(eta.scope));
    let operands = analysis.operands(id);
    operands
        .iter()
        .any(|(node, _)| left(*node))
        .then_some("lanes of several turns of a loop meet inside of it, under reconvergence at post-dominators")
}

/// Compares both analyses of a file; `show` gets what we know and LLVM does not.
fn compare(file: &Path, show: &mut dyn FnMut(&str)) -> (Counts, Vec<String>, BTreeMap<&'static str, usize>) {
    let (mut counts, mut unexplained, mut reasons) = (Counts::default(), Vec::new(), BTreeMap::new());
    let module = Module::read(file).unwrap();
    let program = Program::of(&module, &Options::default()).unwrap();
    let llvm = of_llvm(file);
    for facts in program.functions() {
        let name = facts.function().name();
        let divergent = &llvm[&name];
        counts.functions += 1;
        let mut less: Vec<ValueId> = Vec::new();
        for instruction in facts.function().blocks().into_iter().flat_map(|b| b.instructions()) {
            let Some(id) = facts.id(instruction.as_value()).filter(|_| !instruction.type_of().is_void()) else {
                continue;
            };
            let text = instruction.to_string();
            let Some((own, _)) = text.split_once(" = ") else { continue };
            let theirs = divergent.contains(own.trim());
            let class = facts.analysis().class(id);
            counts.values += 1;
            match (theirs, class) {
                (false, Class::Uniform) => counts.both_uniform += 1,
                (true, Class::Divergent) => counts.both_divergent += 1,
                (true, Class::Affine) => counts.affine += 1,
                (true, Class::Uniform) => {
                    counts.uniform_beyond += 1;
                    show(&format!("{name}: {}", facts.analysis().explain(id, 6)));
                }
                (false, _) => {
                    counts.less += 1;
                    less.push(id);
                }
            }
        }
        // What follows from another such value has its reason.
        let gated = facts.analysis().gated();
        let all: HashSet<ValueId> = less.iter().copied().collect();
        for &id in &less {
            let follows = facts.analysis().operands(id).iter().any(|(node, _)| all.contains(&gated.value_of(*node)));
            let decided = gated.gate(id).is_some_and(|gate| {
                gated.gates().deciders(gate).iter().any(|&block| match gated.decision(block) {
                    Decision::By(node) => all.contains(&gated.value_of(node)),
                    _ => false,
                })
            });
            match listed(facts, id) {
                Some(reason) => *reasons.entry(reason).or_default() += 1,
                None if follows || decided => *reasons.entry("follows from another").or_default() += 1,
                None => unexplained.push(format!("{}: {name}: {}", file.display(), facts.analysis().explain(id, 8))),
            }
        }
    }
    (counts, unexplained, reasons)
}

fn add(a: &mut Counts, b: Counts) {
    a.functions += b.functions;
    a.values += b.values;
    a.both_uniform += b.both_uniform;
    a.both_divergent += b.both_divergent;
    a.affine += b.affine;
    a.uniform_beyond += b.uniform_beyond;
    a.less += b.less;
}

/// Compares all of these files, and prints counts.
fn all(files: &[PathBuf]) -> Counts {
    let (mut counts, mut unexplained) = (Counts::default(), Vec::new());
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let (own, bad, why) = compare(file, &mut |text| println!("uniform beyond LLVM: {text}"));
        add(&mut counts, own);
        unexplained.extend(bad);
        for (reason, count) in why {
            *reasons.entry(reason).or_default() += count;
        }
    }
    println!("{counts:?}");
    for (reason, count) in &reasons {
        println!("less than LLVM: {count}: {reason}");
    }
    assert!(unexplained.is_empty(), "{} without a reason:\n{}", unexplained.len(), unexplained.join("\n"));
    assert_eq!(counts.less, reasons.values().sum::<usize>());
    counts
}

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lockstep-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const AMD: &[&str] = &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx900", "-nogpulib"];
const NVIDIA: &[&str] = &["--target=nvptx64-nvidia-cuda", "-march=sm_70", "-nocudalib"];

/// The kernels of workloads/gpu-kernels for a GPU, each `step`th.
fn own_kernels(folder: &Folder, target: &[&str], step: usize) -> Vec<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/gpu-kernels");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&sources).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "c"));
    files.sort();
    let compile = |source: &PathBuf| {
        let output = folder.0.join(source.file_stem().unwrap()).with_extension("ll");
        let status = Command::new("clang-19")
            .args(target)
            .args(["-O2", "-S", "-emit-llvm", "-fno-discard-value-names", "-o"])
            .args([&output, source])
            .status();
        assert!(status.unwrap().success(), "{}", source.display());
        output
    };
    files.iter().step_by(step).map(compile).collect()
}

const BY_HAND: &str = "target triple = \"amdgcn-amd-amdhsa\"
@memory = addrspace(1) global [64 x i32] zeroinitializer
declare i32 @llvm.amdgcn.workitem.id.x()

define amdgpu_kernel void @temporal(i32 %n) {
entry:
  %tid = call i32 @llvm.amdgcn.workitem.id.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %c = icmp ult i32 %next, %tid
  br i1 %c, label %loop, label %out
out:
  %after = add i32 %next, 5
  ret void
}

define amdgpu_kernel void @joins(i32 %n) {
entry:
  %tid = call i32 @llvm.amdgcn.workitem.id.x()
  %parted = icmp ult i32 %tid, 7
  %shared = icmp ult i32 %n, 7
  br i1 %parted, label %a, label %b
a:
  br i1 %shared, label %c, label %d
b:
  br label %e
c:
  br label %d
d:
  %inner = phi i32 [ 1, %a ], [ 2, %c ]
  br label %e
e:
  %outer = phi i32 [ %inner, %d ], [ 3, %b ]
  %same = phi i32 [ %n, %d ], [ %n, %b ]
  %difference = sub i32 %tid, %tid
  %equal = icmp eq i32 %tid, %outer
  ret void
}

define amdgpu_kernel void @irreducible(i32 %n) {
entry:
  %tid = call i32 @llvm.amdgcn.workitem.id.x()
  %parted = icmp ult i32 %tid, 7
  br i1 %parted, label %a, label %b
a:
  %i = phi i32 [ 0, %entry ], [ %j, %b ]
  %i1 = add i32 %i, 1
  br label %b
b:
  %j = phi i32 [ 5, %entry ], [ %i1, %a ]
  %more = icmp ult i32 %j, %n
  br i1 %more, label %a, label %out
out:
  %last = add i32 %j, 1
  ret void
}

define amdgpu_kernel void @meet_inside(i32 %n) {
entry:
  %tid = call i32 @llvm.amdgcn.workitem.id.x()
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %head ], [ %next, %use ]
  %next = add i32 %i, 1
  %address = getelementptr [64 x i32], ptr addrspace(1) @memory, i64 0, i32 %tid
  %x = load i32, ptr addrspace(1) %address
  %again = icmp ult i32 %x, %next
  br i1 %again, label %head, label %use
use:
  %later = add i32 %next, 2
  %more = icmp ult i32 %n, 9
  br i1 %more, label %head, label %out
out:
  ret void
}
";

#[test]
fn llvm_agrees_about_functions_written_by_hand() {
    let folder = Folder::new("by-hand");
    let file = folder.0.join("by_hand.ll");
    std::fs::write(&file, BY_HAND).unwrap();
    let module = Module::read(&file).unwrap();
    let program = Program::of(&module, &Options::default()).unwrap();
    let llvm = of_llvm(&file);
    let differs = |function: &str| -> Vec<String> {
        let facts = program.functions().iter().find(|f| f.function().name() == function).unwrap();
        let all = facts.function().blocks().into_iter().flat_map(|b| b.instructions());
        all.filter(|i| !i.type_of().is_void())
            .filter_map(|i| {
                let name = format!("%{}", i.as_value().name());
                let ours = facts.class(i.as_value())?;
                let theirs = if llvm[function].contains(&name) { "divergent" } else { "uniform" };
                let same = (ours == Class::Uniform) == (theirs == "uniform");
                (!same).then(|| format!("{name} {ours}"))
            })
            .collect()
    };
    assert_eq!(differs("temporal"), Vec::<String>::new());
    // A phi of one value, and a difference of two equal ones.
    assert_eq!(differs("joins"), ["%difference uniform"]);
    assert_eq!(differs("irreducible"), Vec::<String>::new());
    // Lanes that go round in `head` wait for each other at `use`, in different turns.
    assert_eq!(differs("meet_inside"), Vec::<String>::new());
    all(&[file]);
}

#[test]
fn llvm_agrees_about_some_of_our_kernels() {
    let folder = Folder::new("some-kernels");
    let counts = all(&own_kernels(&folder, AMD, 6));
    assert!(counts.functions >= 10 && counts.both_uniform > 100 && counts.both_divergent > 100, "{counts:?}");
}

#[test]
#[ignore = "compiles 60 kernels: scripts/reproduce-affine runs it"]
fn llvm_agrees_about_all_of_our_kernels() {
    let folder = Folder::new("all-kernels");
    let counts = all(&own_kernels(&folder, AMD, 1));
    assert!(counts.functions >= 60, "{counts:?}");
}

#[test]
fn llvm_agrees_about_some_of_our_kernels_for_nvidia() {
    let folder = Folder::new("some-kernels-nvidia");
    let counts = all(&own_kernels(&folder, NVIDIA, 6));
    assert!(counts.functions >= 10 && counts.both_uniform > 100 && counts.both_divergent > 100, "{counts:?}");
}

#[test]
#[ignore = "compiles 60 kernels: scripts/reproduce-affine runs it"]
fn llvm_agrees_about_all_of_our_kernels_for_nvidia() {
    let folder = Folder::new("all-kernels-nvidia");
    let counts = all(&own_kernels(&folder, NVIDIA, 1));
    assert!(counts.functions >= 60, "{counts:?}");
}

#[test]
#[ignore = "needs IR in the folder LOCKSTEP_IR: scripts/reproduce-affine runs it"]
fn llvm_agrees_about_the_files_of_a_folder() {
    let folder = std::env::var_os("LOCKSTEP_IR").expect("LOCKSTEP_IR names a folder of IR for amdgcn");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ll"));
    files.sort();
    all(&files);
}
