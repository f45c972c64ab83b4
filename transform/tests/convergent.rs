//! Calls that must not depend on other branches than before (`convergent`): barriers of GPUs, exchanges between lanes.
//!
//! Each shape is IR with such a call, in which each pass is to change something else if that call is a plain one. After
//! each pass, forced, each such call is there as often as before and depends on as many conditions of the same kinds:
//! by control dependence of the function as it came out, which no pass is asked about.

use flowgraph::{ControlDependence, NodeId, PostDominators};
use transform::llvm::{Function, Module};
use transform::{Flow, Pipeline, REGISTRY, Reason, Remark};

/// The calls that are convergent: by the callee, by the call, assembly, an intrinsic.
const FORMS: [(&str, &str); 4] = [
    ("call void @barrier()", ""),
    ("call void @plain()", " convergent"),
    ("call void asm sideeffect \"nop # meet\", \"~{memory}\"()", " convergent"),
    ("call void @llvm.nvvm.barrier0()", ""),
];

/// What takes the place of such a call where it is not convergent: something that no pass minds.
const PLAIN: [&str; 2] = ["call void @plain()", "store i32 7, ptr @g"];

const TARGETS: [&str; 2] = ["nvptx64-nvidia-cuda", "x86_64-pc-linux-gnu"];

const DECLARATIONS: &str = "@g = external global i32
@h = external global i32
declare void @barrier() convergent
declare void @plain()
declare void @llvm.nvvm.barrier0() convergent
declare i32 @f(i32)
";

/// `MEET` stands for the call. The passes that are to change the shape without it.
const SHAPES: &[(&str, &[&str], &str)] = &[
    (
        "the same call on both sides",
        &["fcs"],
        "entry:
  br i1 %c, label %then, label %else
then:
  %x = mul i32 %a, 3
  MEET
  store i32 %x, ptr @g
  br label %join
else:
  MEET
  br label %join
join:
  ret void",
    ),
    (
        "behind calls of one function, on one side",
        &["fcs"],
        "entry:
  br i1 %c, label %then, label %else
then:
  %x = call i32 @f(i32 1)
  MEET
  store i32 %x, ptr @g
  br label %join
else:
  %y = call i32 @f(i32 2)
  store i32 %y, ptr @h
  br label %join
join:
  ret void",
    ),
    (
        "in the cases of a switch, with calls of one function",
        &["fcs", "linearize:threshold=-1000", "split-nodes", "structurizecfg"],
        "entry:
  switch i32 %a, label %join [ i32 1, label %one
    i32 2, label %two
    i32 5, label %three ]
one:
  %x = call i32 @f(i32 1)
  store i32 %x, ptr @g
  br label %join
two:
  %y = call i32 @f(i32 2)
  store i32 %y, ptr @h
  br label %three
three:
  MEET
  br label %join
join:
  ret void",
    ),
    (
        "at the ends of both arms",
        &["tail-merge"],
        "entry:
  br i1 %c, label %then, label %else
then:
  store i32 %a, ptr @h
  MEET
  store i32 3, ptr @g
  store i32 4, ptr @h
  br label %join
else:
  MEET
  store i32 3, ptr @g
  store i32 4, ptr @h
  br label %join
join:
  ret void",
    ),
    (
        "between what arms have in common",
        &["branch-fusion", "meld"],
        "entry:
  br i1 %c, label %then, label %else
then:
  %x1 = udiv i32 %a, 7
  %x2 = udiv i32 %x1, 3
  MEET
  store i32 %x2, ptr @g
  br label %join
else:
  %y1 = udiv i32 %b, 7
  %y2 = udiv i32 %y1, 3
  store i32 %y2, ptr @g
  br label %join
join:
  ret void",
    ),
    (
        "in one of two ifs on the sides of a branch",
        &["meld"],
        "entry:
  br i1 %c, label %then, label %else
then:
  %x = udiv i32 %a, 7
  %xc = icmp ugt i32 %x, 5
  br i1 %xc, label %then.in, label %then.out
then.in:
  store i32 %x, ptr @g
  MEET
  br label %then.out
then.out:
  br label %join
else:
  %y = udiv i32 %b, 7
  %yc = icmp ugt i32 %y, 5
  br i1 %yc, label %else.in, label %else.out
else.in:
  store i32 %y, ptr @g
  MEET
  br label %else.out
else.out:
  br label %join
join:
  ret void",
    ),
    (
        "behind a short circuit",
        &["linearize:threshold=-1000", "split-nodes", "structurizecfg"],
        "entry:
  br i1 %c, label %both, label %also
also:
  %d = icmp ugt i32 %a, 5
  br i1 %d, label %both, label %join
both:
  MEET
  store i32 5, ptr @g
  br label %join
join:
  ret void",
    ),
    (
        "in a loop with two ways in",
        &["linearize:threshold=-1000", "split-nodes", "structurizecfg"],
        "entry:
  br i1 %c, label %one, label %two
one:
  %v = load volatile i32, ptr @g
  %again = icmp ugt i32 %v, %a
  br i1 %again, label %two, label %join
two:
  MEET
  %w = load volatile i32, ptr @h
  %more = icmp ugt i32 %w, %b
  br i1 %more, label %one, label %join
join:
  ret void",
    ),
];

fn module(body: &str, meet: &str, target: &str) -> Module {
    let text = format!(
        "target triple = \"{target}\"\n{DECLARATIONS}\ndefine void @shape(i1 %c, i32 %a, i32 %b) {{\n{}\n}}\n",
        body.replace("MEET", meet)
    );
    Module::parse(text.as_bytes(), "shape.ll").unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// For each convergent call, in order of what they are: what makes the conditions that decide about it, however far
/// above. Which operands those have is left out: what two sides compute alike may have become one.
fn conditions(function: Function<'_>) -> Vec<(String, Vec<String>)> {
    let flow = Flow::of(function);
    let ends = flow.graph().nodes().filter(|&node| flow.graph().successors(node).is_empty());
    let post = PostDominators::of(flow.graph(), &ends.collect::<Vec<_>>());
    let dependence = ControlDependence::of(flow.graph(), &post);
    let mut found = Vec::new();
    for (i, block) in flow.blocks().iter().enumerate() {
        for call in block.instructions().into_iter().filter(|i| i.call_has("convergent")) {
            let mut deciding: Vec<NodeId> = Vec::new();
            let mut open = vec![NodeId(i as u32)];
            while let Some(node) = open.pop() {
                for &branch in dependence.branches(node) {
                    if !deciding.contains(&branch) {
                        deciding.push(branch);
                        open.push(branch);
                    }
                }
            }
            let by = |branch: NodeId| flow.block(branch).terminator().operand(0).opcode();
            let mut kinds: Vec<String> = deciding.into_iter().map(|branch| format!("{:?}", by(branch))).collect();
            kinds.sort();
            found.push((call.to_string(), kinds));
        }
    }
    found.sort();
    found
}

/// The pass at its most eager, and at its defaults.
fn forms(pass: &transform::Pass) -> Vec<String> {
    let eager: Vec<&str> = pass
        .parameters
        .iter()
        .filter_map(|parameter| match parameter.name {
            "threshold" => Some("threshold=-1000"),
            "only-divergent" => Some("only-divergent=no"),
            "merge-loops" => Some("merge-loops=yes"),
            "max-depth" => Some("max-depth=1"),
            "interleave" => Some("interleave=yes"),
            "registers" => Some("registers=2"),
            _ => None,
        })
        .collect();
    let forced = if eager.is_empty() { pass.name.to_owned() } else { format!("{}:{}", pass.name, eager.join(",")) };
    vec![pass.name.to_owned(), forced]
}

fn run(module: &mut Module, passes: &str) -> Vec<Remark> {
    Pipeline::parse(passes).unwrap().run(module).unwrap_or_else(|e| panic!("{passes}: {e}"))
}

#[test]
fn no_pass_changes_on_what_a_convergent_call_depends() {
    for (what, _, body) in SHAPES {
        for (target, (call, more)) in TARGETS.iter().flat_map(|target| FORMS.map(|form| (target, form))) {
            for passes in REGISTRY.iter().flat_map(forms) {
                let mut module = module(body, &format!("{call}{more}"), target);
                let before = conditions(module.functions()[0]);
                assert!(!before.is_empty(), "{what}: {call}");
                run(&mut module, &passes);
                let after = conditions(module.functions()[0]);
                assert_eq!(after, before, "{call}{more} {what}, for {target}, after {passes}:\n{}", module.to_text());
            }
        }
    }
}

#[test]
fn each_shape_is_changed_where_its_call_is_a_plain_one() {
    for (what, passes, body) in SHAPES {
        for pass in REGISTRY.iter().filter(|pass| passes.contains(&pass.name)) {
            let changes = |meet: &str| {
                let remarks = run(&mut module(body, meet, TARGETS[1]), &forms(pass)[1]);
                remarks.iter().any(Remark::is_taken)
            };
            assert!(PLAIN.iter().any(|meet| changes(meet)), "{} does nothing {what}", pass.name);
        }
    }
}

#[test]
fn calls_that_stay_apart_for_it_have_a_remark() {
    for (what, passes, body) in SHAPES {
        for pass in REGISTRY.iter().filter(|pass| passes.contains(&pass.name)) {
            // Its remark says of several kinds of instructions that one of them stands there; the last has no region.
            if ["meld", "tail-merge"].contains(&pass.name) {
                continue;
            }
            for form in if pass.name == "fcs" { &FORMS[..2] } else { &FORMS[..] } {
                let remarks = run(&mut module(body, &format!("{}{}", form.0, form.1), TARGETS[0]), &forms(pass)[1]);
                let told = remarks.iter().any(|remark| remark.reason == Reason::Convergent);
                assert!(told, "{} says nothing {what}: {remarks:?}", pass.name);
            }
        }
    }
}
