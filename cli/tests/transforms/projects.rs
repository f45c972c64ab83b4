//! Whole projects build with the wrapper as their compiler, without being changed.

use crate::folder::{Folder, TWO_CALLS, WORK, lockstep, printed};

/// What a user would give as CC.
fn compiler() -> String {
    format!("{} cc --transform fcs --", lockstep())
}

#[test]
fn a_project_with_a_makefile_builds_and_rebuilds() {
    let makefile = "CFLAGS = -O3 -Wall -Werror -MMD -MP\n\
        program: main.o lib/libpick.a\n\t$(CC) $(LDFLAGS) -o $@ main.o -Llib -lpick\n\
        lib/libpick.a: lib/pick.o\n\t$(AR) rcs $@ $^\n\
        -include main.d lib/pick.d\n";
    let files = [("Makefile", makefile), ("main.c", WORK), ("lib/pick.c", TWO_CALLS), ("lib/pick.h", "")];
    let folder = Folder::with(&files);
    let cc = format!("CC={}", compiler());
    folder.succeed("make", &["-j2", &cc]);
    assert_eq!((folder.succeed("./program", &[]), folder.calls("program", "work")), (printed(), 1));
    assert!(folder.succeed("make", &[&cc]).contains("up to date"), "the dependency files say something else");
}

/// Probes as Autoconf writes them: does the compiler work, which options, headers and functions are there, how large
/// are types. Wrong answers to those that must fail would be as bad as to those that must succeed.
const CONFIGURE: &str = r##"#!/bin/sh
set -e
: > config.h
probe() { # NAME, ARGUMENTS..., source on standard input
    name=$1; shift; cat > conftest.c
    if $CC "$@" -o conftest conftest.c >> config.log 2>&1; then echo "#define HAVE_$name 1" >> config.h
    else echo "#undef HAVE_$name" >> config.h; fi
    rm -f conftest conftest.c conftest.o
}
$CC --version >> config.log && $CC -v >> config.log 2>&1
$CC -V >> config.log 2>&1 && exit 9
probe COMPILER <<E
int main(void) { return 0; }
E
probe SYNTAX_ERRORS <<E
int main(void { return 0; }
E
probe LIBM -lm <<E
#include <math.h>
int main(int n, char **a) { return (int)sin(n); }
E
probe LIBMISSING -lno_such_library <<E
int main(void) { return 0; }
E
probe NO_HEADER -c <<E
#include <no_such_header.h>
E
probe INT_IS_4 -c <<E
static int test_array[1 - 2 * !(sizeof(int) == 4)];
int *use(void) { return test_array; }
E
probe INT_IS_8 -c <<E
static int test_array[1 - 2 * !(sizeof(int) == 8)];
int *use(void) { return test_array; }
E
probe OPTION_WALL -Werror -Wall -c <<E
int f(void) { return 0; }
E
probe OPTION_UNKNOWN -Werror -Wno-such-warning-at-all -c <<E
int f(void) { return 0; }
E
echo 'int a = __STDC__;' | $CC -E - | grep -q 'int a = 1;'
printf '#ifdef __clang__\nyes\n#endif\n' > conftest.c; $CC -E conftest.c | grep -q '^yes'; rm conftest.c
mkdir -p out; echo 'int x;' > x.c; $CC -c x.c -o out/x.o; test -f out/x.o
$CC -c x.c; test -f x.o
printf 'all: program\nprogram: main.c pick.c config.h\n\t%s -O3 -include config.h -o $@ main.c pick.c\n' "$CC" > Makefile
"##;

#[test]
fn a_project_with_a_configure_script_builds() {
    let folder = Folder::with(&[("configure", CONFIGURE), ("main.c", WORK), ("pick.c", TWO_CALLS)]);
    let configure = |cc: &str| {
        let done = folder.command("sh", &["./configure"]).env("CC", cc).output().unwrap();
        assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stderr), folder.read("config.log"));
        folder.read("config.h")
    };
    let theirs = configure("clang-19");
    let ours = configure(&compiler());
    assert_eq!(ours, theirs, "the probes noticed");
    for (name, there) in [("COMPILER", true), ("SYNTAX_ERRORS", false), ("INT_IS_4", true), ("INT_IS_8", false)] {
        let line = format!("#{} HAVE_{name}", if there { "define" } else { "undef" });
        assert!(ours.contains(&line), "no {line:?} in {ours}");
    }
    folder.succeed("make", &[]);
    assert_eq!((folder.succeed("./program", &[]), folder.calls("program", "work")), (printed(), 1));
}
