//! No list of passes makes an interpreter many times its size.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use transform::llvm::Module;
use transform::{Kind, Pipeline, Reason, Remark};

/// Passes whose output another pass takes as its input, and each that may copy code or join many paths.
const LISTS: [&str; 9] = [
    "fcs",
    "meld",
    "linearize:threshold=-1000",
    "split-nodes",
    "structurizecfg",
    "fcs,linearize:threshold=-1000",
    "fcs,meld,linearize:threshold=-1000",
    "fcs,split-nodes",
    "meld,fcs,tail-merge,branch-fusion,linearize:threshold=-1000",
];

/// A machine with a stack in C: a switch of so many cases in a loop. All of them call the same functions and have
/// values in common; some leave the loop's turn early.
fn interpreter(cases: usize) -> String {
    let mut text = String::from(
        "long pop(void); void push(long); void say(long, long);\nlong run(const unsigned char *p, long n, long k) {\n\
         long a, b, c = k, sum = 0;\nfor (long pc = 0; pc < n; pc++) {\nswitch (p[pc]) {\n",
    );
    for i in 0..cases {
        writeln!(text, "case {i}: b = pop(); a = pop();").unwrap();
        match i % 4 {
            0 => writeln!(text, "if (a > {i}) {{ push(a * b + c); if (b == {i}) break; }} else if (b < c) {{ push(a ^ {i}); continue; }} sum += a;"),
            1 => writeln!(text, "while (a-- > b) {{ c += pop(); if (c == {i}) goto out; }} say({i}, c);"),
            2 => writeln!(text, "if (a || b > c) {{ say(a, b); if (c & 1) {{ push(c); continue; }} }} say(b, {i}); sum ^= b;"),
            _ => writeln!(text, "c = a + {i}; if (b) push(c); else {{ say(c, {i}); return sum; }}"),
        }
        .unwrap();
        writeln!(text, "push(sum + {i}); break;").unwrap();
    }
    text + "default: return sum;\n}\nsum ^= pc + c;\n}\nout: return sum + c;\n}\n"
}

fn clang(arguments: &[&str]) {
    let status = Command::new("clang-19").args(arguments).status().expect("clang-19");
    assert!(status.success(), "{arguments:?}");
}

/// The bytes of code in an object file, as binutils' `size` counts them.
fn code(object: &Path) -> f64 {
    let said = Command::new("size").arg(object).output().expect("size, of binutils");
    let text = String::from_utf8(said.stdout).unwrap();
    text.lines().nth(1).and_then(|line| line.split_whitespace().next()).unwrap().parse().unwrap()
}

/// What passes leave of an interpreter of so many cases: its code as a multiple of what it was, and their remarks.
fn grown(cases: usize, passes: &str) -> (f64, Vec<Remark>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("a.c"), interpreter(cases)).unwrap();
    clang(&["-O2", "-emit-llvm", "-c", &path("a.c"), "-o", &path("a.bc")]);
    let mut module = Module::read(Path::new(&path("a.bc"))).unwrap();
    let remarks = Pipeline::parse(passes).unwrap().run(&mut module).unwrap();
    std::fs::write(path("b.bc"), module.to_bitcode()).unwrap();
    let sizes = ["a", "b"].map(|name| {
        let object = path(&format!("{name}.o"));
        clang(&["-O2", "-Xclang", "-disable-llvm-passes", "-c", &path(&format!("{name}.bc")), "-o", &object]);
        code(Path::new(&object))
    });
    (sizes[1] / sizes[0], remarks)
}

#[test]
fn code_grows_to_twice_its_size_at_most() {
    for cases in [40, 120] {
        for passes in LISTS {
            let (times, _) = grown(cases, passes);
            assert!(times <= 2.0, "{passes} makes {times:.2} times the code of {cases} cases");
        }
    }
}

#[test]
fn where_rows_or_copies_would_take_too_much_a_remark_says_how_much() {
    let (_, remarks) = grown(120, "linearize:threshold=-1000");
    let left = |remark: &Remark| match remark.reason {
        Reason::GrowsTooMuch { added, most } => added > most && remark.kind() == Kind::Left,
        _ => false,
    };
    assert!(remarks.iter().any(left), "{remarks:?}");
    let (times, remarks) = grown(120, "linearize:threshold=-1000,growth=1000000");
    assert!(!remarks.iter().any(left) && times > 1.2, "{times} {remarks:?}");
    let (_, remarks) = grown(120, "split-nodes");
    assert!(remarks.iter().any(|remark| matches!(remark.reason, Reason::GoneOver { left } if left > 1)), "{remarks:?}");
}

#[test]
fn small_functions_are_made_structured_whatever_they_grow_to() {
    for passes in ["linearize:threshold=-1000", "split-nodes"] {
        let (_, remarks) = grown(2, passes);
        assert!(remarks.iter().all(Remark::is_taken) && !remarks.is_empty(), "{passes}: {remarks:?}");
    }
}
