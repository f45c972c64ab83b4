//! `lockstep cc` understands what clang understands.

use std::io::Write;
use std::process::Stdio;

use crate::folder::{Folder, TWO_CALLS, WORK, lockstep, printed};

fn two_files() -> Folder {
    Folder::with(&[("pick.c", TWO_CALLS), ("work.c", WORK)])
}

#[test]
fn several_sources_are_compiled_and_linked_in_one_call() {
    let folder = two_files();
    folder.compiles(&["-O3", "pick.c", "work.c", "-o", "program"]);
    assert_eq!(folder.succeed("./program", &[]), printed());
    assert_eq!(folder.calls("program", "work"), 1);
    let report = folder.read("report");
    assert!(report.contains("fcs taken: pick: work at pick.c:4 and pick.c:4"), "{report}");
}

#[test]
fn several_sources_make_several_objects() {
    let folder = two_files();
    folder.compiles(&["-O3", "-c", "pick.c", "work.c"]);
    folder.compiles(&["pick.o", "work.o", "-o", "program"]);
    assert_eq!(folder.succeed("./program", &[]), printed());
}

#[test]
fn dependency_files_are_those_of_clang() {
    let folder =
        Folder::with(&[("a.c", "#include \"a.h\"\n#include <stdio.h>\nint a = A;\n"), ("a.h", "#define A 1\n")]);
    folder.compiles(&["-O2", "-MMD", "-MP", "-MF", "ours.d", "-c", "a.c", "-o", "a.o"]);
    folder.succeed("clang-19", &["-O2", "-MMD", "-MP", "-MF", "theirs.d", "-c", "a.c", "-o", "a.o"]);
    assert_eq!(folder.read("ours.d"), folder.read("theirs.d"));
    assert!(folder.read("ours.d").contains("a.h"));
    let only = folder.compile("cc", &["-MM", "a.c"]);
    assert!(only.status.success() && String::from_utf8_lossy(&only.stdout).contains("a.o: a.c a.h"));
}

#[test]
fn assembly_is_assembled_with_and_without_the_preprocessor() {
    let plain = "\t.globl one\none:\tmovl $1, %eax\n\tret\n\t.section .note.GNU-stack,\"\",@progbits\n";
    let cpp = "#define TWO 2\n\t.globl two\ntwo:\tmovl $TWO, %eax\n\tret\n\t.section .note.GNU-stack,\"\",@progbits\n";
    let main = "int one(void), two(void);\nint main(void) { return one() * 10 + two(); }\n";
    let folder = Folder::with(&[("one.s", plain), ("two.S", cpp), ("main.c", main)]);
    folder.compiles(&["-O2", "main.c", "one.s", "two.S", "-o", "program"]);
    assert_eq!(folder.run("./program", &[]).status.code(), Some(12));
}

#[test]
fn a_source_comes_from_standard_input() {
    let folder = Folder::with(&[]);
    let words = ["cc", "--transform", "fcs", "--", "-O2", "-x", "c", "-", "-o", "program"];
    let mut child = folder.command(lockstep(), &words).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"int main(void) { return 7; }\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(folder.run("./program", &[]).status.code(), Some(7));
}

#[test]
fn arguments_come_from_a_response_file() {
    let folder = two_files();
    let quoted = "-O3 -DNAME=\\\"a\\ b\\\" pick.c\nwork.c -o program\n";
    std::fs::write(folder.path("arguments"), quoted).unwrap();
    folder.compiles(&["@arguments"]);
    assert_eq!(folder.succeed("./program", &[]), printed());
    assert_eq!(folder.calls("program", "work"), 1);
}

#[test]
fn our_options_cause_no_warnings() {
    let folder = two_files();
    folder.compiles(&["-Werror", "-Wall", "-Wextra", "-O3", "-c", "pick.c"]);
    folder.compiles(&["-Werror", "-Wall", "-E", "pick.c", "-o", "pick.i"]);
    folder.compiles(&["-Werror", "-Wall", "-fsyntax-only", "pick.c"]);
    folder.compiles(&["-Werror", "-O3", "-c", "work.c"]);
    folder.compiles(&["-Werror", "pick.o", "work.o", "-o", "program"]);
    assert_eq!(folder.succeed("./program", &[]), printed());
}

#[test]
fn a_warning_is_given_once_and_is_an_error_when_asked_for() {
    let folder = Folder::with(&[("a.c", "int f(void) { int unused; return 1; }\n")]);
    let warned = folder.compile("cc", &["-Wall", "-c", "a.c"]);
    let said = String::from_utf8_lossy(&warned.stderr).into_owned();
    assert!(warned.status.success() && said.matches("unused variable").count() == 1, "{said}");
    let refused = folder.compile("cc", &["-Wall", "-Werror", "-c", "a.c", "-o", "b.o"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(!folder.path("b.o").exists());
}

#[test]
fn the_drivers_own_warnings_are_passed_on() {
    let folder = two_files();
    let output = folder.compile("cc", &["-c", "pick.c", "-lm"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.matches("'linker' input unused").count() == 1, "{said}");
}

#[test]
fn a_source_that_fails_keeps_the_others_from_linking_but_not_from_compiling() {
    let folder = Folder::with(&[("good.c", "int good;\n"), ("bad.c", "int bad(\n")]);
    let output = folder.compile("cc", &["-c", "bad.c", "good.c"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(folder.path("good.o").exists() && !folder.path("bad.o").exists());
    let output = folder.compile("cc", &["bad.c", "good.c", "-o", "program"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("bad.c:1") && !said.contains("linker") && !folder.path("program").exists(), "{said}");
}

#[test]
fn openmp_programs_run() {
    let source = "#include <omp.h>\n#include <stdio.h>\nint main(void) { int sum = 0;\n#pragma omp parallel for reduction(+ : sum) num_threads(4)\n\
                  for (int i = 0; i < 100; i++) sum += i;\nprintf(\"%d\\n\", sum); return 0; }\n";
    let folder = Folder::with(&[("a.c", source)]);
    folder.compiles(&["-O3", "-fopenmp", "a.c", "-o", "program"]);
    assert_eq!(folder.succeed("./program", &[]), "4950\n");
}

#[test]
fn cxx_programs_with_exceptions_run() {
    let source = "#include <iostream>\n#include <stdexcept>\n#include <string>\n\
        __attribute__((noinline)) int work(int a) { if (a == 3) throw std::runtime_error(\"three\"); return a * 2; }\n\
        __attribute__((noinline)) int pick(int a) { std::string s(a + 20, 'x'); int r; if (a & 1) r = work(a) + 1; else r = work(a + 2); return r + (int)s.size(); }\n\
        int main() { for (int i = 0; i < 5; i++) { try { std::cout << pick(i) << '\\n'; } catch (std::exception &e) { std::cout << e.what() << '\\n'; } } }\n";
    let folder = Folder::with(&[("a.cpp", source)]);
    let output = folder.compile("c++", &["-O3", "-std=c++17", "a.cpp", "-o", "program"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.succeed("./program", &[]), "24\n24\n30\nthree\n36\n");
}

#[test]
fn assembly_bitcode_and_ir_text_are_made_of_the_transformed_program() {
    let folder = two_files();
    folder.compiles(&["-O3", "-S", "pick.c", "-o", "pick.s"]);
    assert_eq!(folder.read("pick.s").matches("work@PLT").count(), 1);
    folder.compiles(&["-O3", "-S", "-emit-llvm", "pick.c", "-o", "pick.ll"]);
    assert_eq!(folder.read("pick.ll").matches("call i32 @work").count(), 1);
    folder.compiles(&["-O3", "-c", "-emit-llvm", "pick.c", "-o", "pick.bc"]);
    folder.compiles(&["-O3", "pick.bc", "work.c", "-o", "program"]);
    assert_eq!(folder.succeed("./program", &[]), printed());
}

#[test]
fn temporary_files_can_be_kept() {
    let folder = two_files();
    folder.compiles(&["-O3", "-g0", "-save-temps", "pick.c", "work.c", "-o", "program"]);
    assert!(folder.path("pick.i").exists() && folder.path("pick.s").exists());
    assert_eq!((folder.succeed("./program", &[]), folder.calls("program", "work")), (printed(), 1));
}

#[test]
fn link_time_optimisation_is_left_out() {
    let folder = two_files();
    folder.compiles(&["-O3", "-flto", "-c", "pick.c"]);
    folder.compiles(&["-O3", "-flto=thin", "pick.o", "work.c", "-o", "program"]);
    assert_eq!((folder.succeed("./program", &[]), folder.calls("program", "work")), (printed(), 1));
}

#[test]
fn full_debug_information_is_kept() {
    let folder = two_files();
    folder.compiles(&["-O3", "-g", "pick.c", "work.c", "-o", "program"]);
    assert_eq!(folder.succeed("./program", &[]), printed());
    let lines = folder.succeed("objdump", &["--dwarf=info", "program"]);
    assert!(lines.contains("DW_TAG_variable") || lines.contains("DW_TAG_formal_parameter"));
}

#[test]
fn questions_to_the_compiler_are_answered_by_it() {
    let folder = Folder::with(&[]);
    for question in ["--version", "-dumpmachine", "-print-search-dirs", "-dumpversion"] {
        let ours = folder.succeed(lockstep(), &["cc", "--", question]);
        assert_eq!(ours, folder.succeed("clang-19", &[question]), "{question}");
    }
    let nothing = folder.compile("cc", &[]);
    assert_eq!(nothing.status.code(), folder.run("clang-19", &[]).status.code());
}

#[test]
fn a_missing_compiler_is_reported_with_the_way_to_install_it() {
    let folder = two_files();
    let output = folder.run(lockstep(), &["cc", "--compiler", "no-such-clang", "--", "-c", "pick.c"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(127));
    assert!(said.contains("no-such-clang is not installed") && said.contains("apt-get install"), "{said}");
}

#[test]
fn a_pass_that_does_not_exist_is_refused() {
    let folder = two_files();
    let output = folder.run(lockstep(), &["cc", "--transform", "fusion", "--", "-c", "pick.c"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no pass \"fusion\"; there are: none"));
}

#[test]
fn a_pass_that_finds_its_own_work_wrong_costs_the_transformation_of_one_file_and_never_the_build() {
    let folder = two_files();
    let words =
        ["cc", "--transform", "refused", "--report", "report", "--", "-O2", "pick.c", "work.c", "-o", "program"];
    let output = folder.run(lockstep(), &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("panicked"), "{said}");
    for source in ["pick.c", "work.c"] {
        let warning = format!("lockstep: warning: transforming {source}: the pass refused found its own work wrong");
        assert!(said.contains(&warning), "{said}");
        let report = folder.read("report");
        assert!(report.contains(&format!("refused refused: {source}: the whole file: ")), "{report}");
    }
    assert_eq!(folder.succeed("./program", &[]), printed());
    folder.succeed("clang-19", &["-O3", "-c", "-emit-llvm", "pick.c", "-o", "in.bc"]);
    let output = folder.run(lockstep(), &["transform", "--pass", "refused", "in.bc", "-o", "out.ll"]);
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stderr).contains("warning: transforming pick.c")
    );
    assert_eq!(folder.succeed(lockstep(), &["transform", "--pass", "none", "in.bc", "-o", "-"]), folder.read("out.ll"));
}
