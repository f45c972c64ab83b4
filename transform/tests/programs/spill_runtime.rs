//! Programs with values in memory that a warp shares run as without the pass wherever that memory cannot be had, or
//! several copies of the code that maps it meet.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use transform::llvm::Module;
use transform::wrapper::{self, Build, Layout, Shape};
use transform::{Pipeline, Reason, Remark};

use crate::build;

const PASSES: &str = "spill:registers=3,allocator=div,loads=simt";

/// Four threads whose loops need more values in common than there are registers. `STACKS`: where their stacks are.
const WORK: &str = r#"
#include <pthread.h>
#include <stdio.h>
static long in[16], out[4], turns = 50;
static void *work(void *p) {
    long t = (long)p, a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], f = in[5], g = in[6], h = in[7], s = 0;
    for (long i = 0; i < turns; i++) {
        s = (s + (a ^ in[i & 15])) ^ (b + i);
        s = (s + (c ^ s)) ^ d;
        s = (s + e + i) ^ f;
        s = ((s + g) ^ (h + turns * t)) & 0xffffff;
    }
    out[t] = s + a + b + c + d + e + f + g + h;
    return 0;
}
#ifdef IN_DATA
static char stacks[4][1 << 17] __attribute__((aligned(4096)));
#define STACK(i) pthread_attr_setstack(&attributes, stacks[i], sizeof stacks[i])
#elif defined ON_HEAP
#include <stdlib.h>
#define STACK(i) pthread_attr_setstack(&attributes, aligned_alloc(4096, 1 << 17), 1 << 17)
#else
#define STACK(i) 0
#endif
long threads(void) {
    pthread_t threads[4];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    for (int i = 0; i < 16; i++) in[i] = i * 3 + 1;
    for (long i = 0; i < 4; i++) {
        (void)STACK(i);
        pthread_create(&threads[i], &attributes, work, (void *)i);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return out[0] ^ out[1] ^ out[2] ^ out[3];
}
#ifdef PROGRAM
int main(void) { printf("%ld\n", threads()); return 0; }
#endif
"#;

/// Loads the libraries that its arguments name, each by itself, and runs their threads, then its own.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
long threads(void);
int main(int count, char **names) {
    for (int i = 1; i < count; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 1;
        printf("%ld\n", ((long (*)(void))dlsym(library, "threads"))());
    }
    printf("%ld\n", threads());
    return 0;
}
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        std::fs::write(folder.path("work.c"), WORK).unwrap();
        std::fs::write(folder.path("host.c"), HOST).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles and links with passes; their remarks.
    fn build(&self, passes: &str, words: &[&str], sources: &[&str], to: &str) -> Vec<Remark> {
        let files = sources.iter().map(|source| self.path(source).into_os_string());
        let common = ["-O2", "-w", "-pthread", "-o"].map(Into::into);
        let words = words.iter().map(Into::into).chain(common).chain([self.path(to).into()]).chain(files);
        let build = Build {
            compiler: "clang-19".into(),
            passes: Pipeline::parse(passes).unwrap(),
            layout: Layout::Ordered,
            shape: Shape::Cpu,
            marks_iterations: false,
            keep_ir: None,
            arguments: words.collect(),
        };
        let built = wrapper::build(&build).unwrap();
        assert_eq!(built.status, 0, "{passes}");
        built.remarks
    }

    /// What a shell's command prints, which must succeed, on standard output and standard error.
    fn run(&self, command: &str) -> (String, String) {
        let Output { status, stdout, stderr } =
            Command::new("sh").args(["-c", command]).current_dir(self.0.path()).output().unwrap();
        let [printed, said] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(status.success(), "{command}: {status}\n{said}");
        (printed, said)
    }

    /// What the program prints without the pass.
    fn expected(&self) -> String {
        self.build("none", &["-DPROGRAM"], &["work.c"], "plain");
        self.run("./plain").0
    }
}

fn shares(remarks: &[Remark]) -> bool {
    remarks.iter().any(|remark| matches!(remark.reason, Reason::Spilled(spills) if spills.shared_stores > 0))
}

#[test]
fn copies_of_the_runtime_that_meet_share_one_mapping() {
    let folder = Folder::new();
    let expected = folder.expected();
    assert!(shares(&folder.build(PASSES, &["-fPIC", "-shared"], &["work.c"], "one.so")));
    std::fs::copy(folder.path("one.so"), folder.path("two.so")).unwrap();
    std::fs::write(folder.path("only"), "{ global: threads; local: *; };").unwrap();
    let script = format!("-Wl,--version-script={}", folder.path("only").display());
    folder.build(PASSES, &["-fPIC", "-shared", &script], &["work.c"], "hidden.so");
    // A host with the pass, one without, and a program that hides nothing from its plugins.
    folder.build(PASSES, &[], &["host.c", "work.c"], "host");
    folder.build("none", &[], &["host.c", "work.c"], "plain-host");
    folder.build(PASSES, &["-rdynamic"], &["host.c", "work.c"], "open-host");
    for host in ["host", "plain-host", "open-host"] {
        let (printed, said) = folder.run(&format!("./{host} ./one.so ./two.so ./hidden.so"));
        assert_eq!((printed, said.as_str()), (expected.repeat(4), ""), "{host}");
    }
}

#[test]
fn stacks_that_a_program_lays_out_itself_are_their_own_copies() {
    let folder = Folder::new();
    let expected = folder.expected();
    for stacks in ["-DIN_DATA", "-DON_HEAP"] {
        for check in ["", ",check=yes"] {
            let remarks = folder.build(&format!("{PASSES}{check}"), &["-DPROGRAM", stacks], &["work.c"], "program");
            assert!(shares(&remarks), "{stacks}: {remarks:?}");
            assert_eq!(folder.run("./program"), (expected.clone(), String::new()), "{stacks}{check}");
        }
    }
}

#[test]
fn where_the_memory_cannot_be_mapped_a_program_says_so_and_does_the_same() {
    let folder = Folder::new();
    let expected = folder.expected();
    let taken = "#include <sys/mman.h>\n#include <string.h>\nstatic char *p;\n\
        __attribute__((constructor(101))) static void take(void) {\n\
        p = mmap((void *)AT, 8192, PROT, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0); FILL; }\n";
    std::fs::write(folder.path("taken.c"), taken).unwrap();
    for check in ["", ",check=yes"] {
        let passes = format!("{PASSES}{check}");
        folder.build(&passes, &["-DPROGRAM"], &["work.c"], "program");
        let (printed, said) = folder.run("ulimit -v 4000000; ./program");
        assert!(printed == expected && said.contains("mapping memory for values that warps share failed"), "{said}");
        // A library that is loaded first has taken the place: unreadable, empty, or with something else in it.
        for (protection, fill) in [("0", "0"), ("3", "0"), ("3", "*p = 'x'"), ("3", "memset(p, 1, 8192)")] {
            for at in ["0x3bfffff00000", "0x3d0000000000"] {
                let words = [
                    "-fPIC",
                    "-shared",
                    &format!("-DAT={at}"),
                    &format!("-DPROT={protection}"),
                    &format!("-DFILL={fill}"),
                ];
                folder.build("none", &words, &["taken.c"], "taken.so");
                let (printed, said) = folder.run("LD_PRELOAD=./taken.so ./program");
                assert!(printed == expected && said.contains("each thread keeps them"), "{at} {fill}: {said}");
            }
        }
    }
}

#[test]
fn sanitized_programs_share_nothing_where_their_shadow_lies() {
    let folder = Folder::new();
    let expected = folder.expected();
    for (sanitizer, shadowed) in [("thread", true), ("memory", true), ("address", false), ("undefined", false)] {
        let flag = format!("-fsanitize={sanitizer}");
        let remarks = folder.build(PASSES, &["-DPROGRAM", &flag], &["work.c"], "program");
        let told =
            remarks.iter().any(|remark| matches!(remark.reason, Reason::NotSpilled(why) if why.contains("shadow")));
        assert_eq!((told, shares(&remarks)), (shadowed, !shadowed), "{sanitizer}: {remarks:?}");
        assert_eq!(folder.run("setarch -R ./program"), (expected.clone(), String::new()), "{sanitizer}");
    }
    // Code of the pass in a program that is sanitized elsewhere.
    folder.build(PASSES, &["-c", "-DPROGRAM"], &["work.c"], "work.o");
    folder.build("none", &["-fsanitize=thread"], &["work.o"], "program");
    assert_eq!(folder.run("setarch -R ./program").0, expected);
}

#[test]
fn modules_for_other_machines_are_left_with_a_remark() {
    let folder = Folder::new();
    for target in
        ["aarch64-linux-gnu", "riscv64-linux-gnu", "i686-linux-gnu", "wasm32", "x86_64-linux-gnux32", "nvptx64"]
    {
        let bitcode = folder.path("a.bc");
        let source =
            "long f(long *p) { long a = p[0], b = p[1], c = p[2], d = p[3]; p[4] = 0; return a * b - c * d + p[5]; }";
        std::fs::write(folder.path("a.c"), source).unwrap();
        let words = ["-O2", "-emit-llvm", "-c", "-target", target, "-o"].map(Into::into);
        build::output(
            "clang-19",
            words.into_iter().chain([bitcode.clone().into(), folder.path("a.c").into_os_string()]),
        );
        let mut module = Module::read(Path::new(&bitcode)).unwrap();
        let before = module.to_text();
        let remarks = Pipeline::parse("spill:registers=2").unwrap().run(&mut module).unwrap();
        let [remark] = &remarks[..] else { panic!("{target}: {remarks:?}") };
        assert!(matches!(&remark.reason, Reason::OtherTarget(_)) && module.to_text() == before, "{target}: {remark}");
        let remarks = Pipeline::parse("fcs,linearize:threshold=-1000").unwrap().run(&mut module).unwrap();
        let priced = remarks.iter().filter(|remark| matches!(remark.reason, Reason::PricedAsOther(_))).count();
        assert_eq!(priced, 2 * usize::from(!target.starts_with("x86_64")), "{target}: {remarks:?}");
    }
}
