//! A folder to compile in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Two calls of one function on the two sides of a branch, in a function of their own.
pub(crate) const TWO_CALLS: &str = "int work(int, int);
int pick(int id) {
    int r;
    if (id & 1) { r = work(id, 3) + 1; } else { r = work(id * 7, 5) - id; }
    return r;
}
";

/// What they call, and a main that prints.
pub(crate) const WORK: &str = "#include <stdio.h>
int pick(int);
__attribute__((noinline)) int work(int a, int b) { for (int i = 0; i < 20; i++) a = a * 3 + b; return a; }
int main(void) { for (int i = 0; i < 4; i++) printf(\"%d\\n\", pick(i)); return 0; }
";

/// What that program prints.
pub(crate) fn printed() -> String {
    let work = |a: i32, b: i32| (0..20).fold(a, |a, _| a.wrapping_mul(3).wrapping_add(b));
    let pick = |id: i32| if id & 1 != 0 { work(id, 3).wrapping_add(1) } else { work(id * 7, 5).wrapping_sub(id) };
    (0..4).map(|id| format!("{}\n", pick(id))).collect()
}

/// A folder that goes when the test ends.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// With these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, text) in files {
            fs::create_dir_all(folder.path(name).parent().unwrap()).unwrap();
            fs::write(folder.path(name), text).unwrap();
        }
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Runs a command here.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"))
    }

    /// A command to run here, with nothing on its standard input.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command here that must succeed; what it printed.
    pub(crate) fn succeed(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Compiles with `lockstep VERB --transform fcs --`.
    pub(crate) fn compile(&self, verb: &str, arguments: &[&str]) -> Output {
        self.run(lockstep(), &[&[verb, "--transform", "fcs", "--report", "report", "--"], arguments].concat())
    }

    /// Compiles with `lockstep cc`, which must succeed and say nothing.
    pub(crate) fn compiles(&self, arguments: &[&str]) {
        let output = self.compile("cc", arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{arguments:?}: {}: {said}", output.status);
    }

    /// How often a function is called in a program, by its disassembly.
    pub(crate) fn calls(&self, program: &str, function: &str) -> usize {
        let listing = self.succeed("objdump", &["-d", "--no-show-raw-insn", program]);
        let is_call = |line: &&str| line.contains("call") && line.ends_with(&format!("<{function}>"));
        listing.lines().filter(is_call).count()
    }
}

/// The program under test.
pub(crate) fn lockstep() -> &'static str {
    env!("CARGO_BIN_EXE_lockstep")
}

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
