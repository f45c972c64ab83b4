//! The driver's list of jobs.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::build::{WHOLE_ARMS, is_our_llvm_option};
use super::scratch::{Scratch, Streams};
use crate::llvm::Tuning;
use crate::{Error, Result};

/// What the driver says it would do.
pub(super) struct Answer {
    pub(super) jobs: Vec<Job>,
    /// All that it printed.
    text: Vec<u8>,
}

/// A command to run: the program first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job(pub(super) Vec<OsString>);

/// Has the driver print its jobs instead of doing them.
pub(super) const ONLY_SHOW: &str = "-###";

/// Asks the driver for its jobs: an answer without jobs when there is nothing to do, or the driver refuses.
pub(super) fn ask(compiler: &OsStr, arguments: &[OsString], scratch: &Scratch) -> Result<Answer> {
    let words: Vec<_> = [OsString::from(ONLY_SHOW)].iter().chain(arguments).cloned().collect();
    let output = scratch.run(compiler, &words, Streams::Question)?;
    let jobs = if output.status.success() { parse(&output.stderr) } else { Ok(Vec::new()) };
    let jobs = jobs.map_err(|text| Error::Jobs { program: compiler.display().to_string(), text })?;
    Ok(Answer { jobs, text: output.stderr })
}

impl Answer {
    /// Prints all that the driver printed.
    pub(super) fn pass_on_all(&self) {
        // Standard error may be closed; then nobody wants to read it.
        let _ = std::io::stderr().write_all(&self.text);
    }

    /// Why the driver refuses, in its words.
    pub(super) fn refusal(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        text.lines().find(|line| line.contains(": error: ")).unwrap_or("no reason is given").to_owned()
    }

    /// Prints what the driver itself has to say: its warnings.
    pub(super) fn pass_on_messages(&self) {
        let mut out = std::io::stderr().lock();
        for line in self.text.split(|&b| b == b'\n').filter(|line| is_message(line)) {
            let _ = out.write_all(line).and_then(|()| out.write_all(b"\n"));
        }
    }
}

/// `clang-19: warning: …`, as opposed to a job, which begins with a space, and to the compiler's version.
fn is_message(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    !text.starts_with(' ') && [": warning: ", ": error: ", ": note: ", ": remark: "].iter().any(|w| text.contains(w))
}

/// The jobs in what `-###` prints: lines that begin with a space and a quote, with every word in quotes, and in them a
/// backslash before quotes, backslashes and dollars. A word may go over several lines.
pub(super) fn parse(text: &[u8]) -> std::result::Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if rest.starts_with(b" \"") {
            let (job, after) = parse_job(rest)?;
            jobs.push(job);
            rest = after;
        } else {
            let end = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |i| i + 1);
            rest = &rest[end..];
        }
    }
    Ok(jobs)
}

fn parse_job(text: &[u8]) -> std::result::Result<(Job, &[u8]), String> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b' ', b'"', after @ ..] => {
                let (word, after) = parse_word(after)?;
                words.push(OsString::from_vec(word));
                rest = after;
            }
            [b'\n', after @ ..] => return Ok((Job(words), after)),
            [] => return Ok((Job(words), rest)),
            _ => return Err(format!("a word without quotes after {:?}", words.last().unwrap_or(&OsString::new()))),
        }
    }
}

fn parse_word(text: &[u8]) -> std::result::Result<(Vec<u8>, &[u8]), String> {
    let mut word = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [b'\\', byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [b'"', after @ ..] => return Ok((word, after)),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return Err("a word whose quotes do not end".to_owned()),
        }
    }
}

/// What a compile job makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    /// An object file or assembly, by this option.
    Code(&'static str),
    /// Bitcode.
    Bitcode,
    /// IR as text.
    IrText,
}

impl Product {
    /// An object file.
    pub(super) const OBJECT: Product = Product::Code("-emit-obj");
}

/// An optimisation level, as in `default<O2>`.
pub(super) type Level = &'static str;

/// Words of jobs that have the compiler put something into the code before its optimiser, or tell what that does.
const ASKS_OPTIMISER: [&str; 10] = [
    "-fsanitize",
    "-fprofile-",
    "-fcoverage-mapping",
    "-coverage-",
    "-fmemory-profile",
    "-fxray",
    "-Rpass",
    "-opt-record",
    "-fpass-plugin",
    "-fenable-matrix",
];

/// The option with which OpenMP's directives are heard.
pub(super) const OPENMP: &str = "-fopenmp";

/// Ends a job before the optimiser.
const NO_PASSES: &str = "-disable-llvm-passes";

/// Beginnings of options for the optimiser that one which runs elsewhere does not hear.
const NOT_HEARD: [&str; 1] = ["-fveclib="];

impl Job {
    /// The level at which the optimiser of the job may run elsewhere; none where it does not run, or where something
    /// is asked of it that only the compiler can do.
    pub(super) fn level(&self) -> Option<Level> {
        let asks = |word: &OsString| ASKS_OPTIMISER.iter().any(|asks| word.as_bytes().starts_with(asks.as_bytes()));
        if self.0.iter().any(asks) || self.input().is_some_and(|place| self.0[place + 1] == "ir") {
            return None;
        }
        let levels = [("-O1", "O1"), ("-O2", "O2"), ("-O3", "O3"), ("-Os", "Os"), ("-Oz", "Oz")];
        let last = self.0.iter().rfind(|word| word.len() == 3 && word.as_bytes().starts_with(b"-O"))?;
        levels.iter().find(|(word, _)| last == word).map(|(_, level)| *level)
    }

    /// The user's other options for the optimiser.
    pub(super) fn tuning(&self) -> Tuning {
        let has = |option: &str| self.0.iter().any(|word| word == option);
        let behind = self.0.iter().zip(self.0.iter().skip(1)).filter(|(word, _)| *word == "-mllvm");
        let options = behind.map(|(_, option)| option.to_string_lossy().into_owned());
        Tuning {
            // The driver hands on the last of both, and nothing where neither is typed.
            unrolls: !has("-fno-unroll-loops"),
            vectorises: has("-vectorize-loops"),
            merges_functions: has("-fmerge-functions"),
            // Where the optimiser runs elsewhere, we do not ask it for whole arms: who does is the user.
            llvm: options.filter(|option| !is_our_llvm_option(option) || WHOLE_ARMS.contains(&&**option)).collect(),
        }
    }

    /// What is asked of the optimiser and means nothing to one that runs elsewhere.
    pub(super) fn not_heard(&self) -> Vec<&OsStr> {
        let is_one = |word: &&OsString| NOT_HEARD.iter().any(|start| word.as_bytes().starts_with(start.as_bytes()));
        self.0.iter().filter(is_one).map(OsString::as_os_str).collect()
    }

    /// The same job, ended before the optimiser.
    pub(super) fn without_optimiser(mut self) -> Job {
        let place = self.input().unwrap_or(self.0.len());
        self.0.insert(place, NO_PASSES.into());
        self
    }

    /// Whether its code may have loops of OpenMP, and is optimised.
    pub(super) fn has_openmp(&self) -> bool {
        let has = |option: &str| self.0.iter().any(|word| word == option);
        has(OPENMP) && !has(NO_PASSES)
    }

    /// The part of the job that optimises what [`Job::without_optimiser`] left: from bitcode to bitcode.
    pub(super) fn only_optimiser(&self, from: &OsStr, to: &OsStr) -> Job {
        let mut job = self.after_bitcode(from).until_bitcode(to);
        job.0.retain(|word| word != NO_PASSES);
        job
    }

    /// What the job makes, if it compiles source (or IR) with the optimiser; `None` for all other jobs.
    pub(super) fn product(&self) -> Option<Product> {
        let has = |word: &str| self.0.iter().any(|w| w == word);
        if self.0.get(1).is_none_or(|w| w != "-cc1") || self.input().is_none() || self.output().is_none() {
            return None;
        }
        // With -save-temps the optimiser has a job of its own after this one.
        let optimises = !has(NO_PASSES);
        if has("-emit-obj") {
            Some(Product::Code("-emit-obj"))
        } else if has("-S") {
            Some(Product::Code("-S"))
        } else if has("-emit-llvm-bc") && optimises {
            Some(Product::Bitcode)
        } else if has("-emit-llvm") && optimises {
            Some(Product::IrText)
        } else {
            None
        }
    }

    /// Where the language and the input stand: `-x c fft.c`.
    fn input(&self) -> Option<usize> {
        self.0.iter().rposition(|w| w == "-x").filter(|&i| i + 2 < self.0.len())
    }

    /// The file that the job compiles.
    pub(super) fn source(&self) -> Option<&OsStr> {
        self.input().map(|place| self.0[place + 2].as_os_str())
    }

    /// The place of the output's name.
    fn output_place(&self) -> Option<usize> {
        self.0.iter().rposition(|w| w == "-o").map(|i| i + 1).filter(|&i| i < self.0.len())
    }

    /// The file that the job makes.
    pub(super) fn output(&self) -> Option<&OsStr> {
        self.output_place().map(|i| self.0[i].as_os_str())
    }

    /// The same job, ended after the optimiser: writes bitcode to `to`.
    pub(super) fn until_bitcode(&self, to: &OsStr) -> Job {
        let mut words: Vec<OsString> = Vec::with_capacity(self.0.len() + 1);
        for word in &self.0 {
            if ["-emit-obj", "-S", "-emit-llvm", "-emit-llvm-bc"].iter().any(|action| word == action) {
                words.push("-emit-llvm-bc".into());
                // The order in which values are used decides ties in code generation: keep it.
                words.push("-emit-llvm-uselists".into());
            } else {
                words.push(word.clone());
            }
        }
        let mut job = Job(words);
        if let Some(place) = job.output_place() {
            job.0[place] = to.to_owned();
        }
        job
    }

    /// The job that makes an object file, of one that makes bitcode: what the driver says with and without
    /// `-emit-llvm`.
    pub(super) fn with_object(mut self, output: &OsStr) -> Job {
        self.0.retain(|word| word != "-emit-llvm-uselists");
        if let Some(action) = self.0.iter_mut().find(|word| *word == "-emit-llvm-bc") {
            *action = "-emit-obj".into();
        }
        if let Some(place) = self.output_place() {
            self.0[place] = output.to_owned();
        }
        self
    }

    /// The same job without the optimiser, from bitcode.
    pub(super) fn after_bitcode(&self, from: &OsStr) -> Job {
        let mut job = self.clone();
        if let Some(place) = job.input() {
            let new = [NO_PASSES.into(), "-x".into(), "ir".into(), from.to_owned()];
            job.0.splice(place..place + 3, new);
        }
        // It was written by the first half, and would be overwritten with less.
        job.leave_out(&["-serialize-diagnostic-file"]);
        // What other modules give was taken over by the first half, which said what there is to say of that.
        job.0.retain(|word| !word.as_bytes().starts_with(b"-fthinlto-index="));
        job
    }

    /// The same job for what it prints about code, without making any. None when its source can be read only once.
    pub(super) fn only_messages(&self) -> Option<Job> {
        let source = self.input().map(|place| &self.0[place + 2]).filter(|source| *source != "-")?;
        if !std::path::Path::new(source).is_file() {
            return None;
        }
        let mut job = self.clone();
        for word in &mut job.0 {
            if word == "-emit-obj" || word == "-S" {
                *word = "-emit-codegen-only".into();
            }
        }
        job.leave_out(&["-opt-record-file", "-dependency-file", "-header-include-file"]);
        let writes = ["-ftime-trace=", "-stats-file=", "-stack-usage-file="];
        job.0.retain(|word| !writes.iter().any(|option| word.as_bytes().starts_with(option.as_bytes())));
        Some(job)
    }

    /// Takes options with their values away.
    pub(super) fn leave_out(&mut self, options: &[&str]) {
        for option in options {
            if let Some(place) = self.0.iter().position(|w| w == option).filter(|&i| i + 1 < self.0.len()) {
                self.0.drain(place..place + 2);
            }
        }
    }

    /// The same job without options of LLVM's, given as on a command line: of each, the first.
    pub(super) fn without_llvm(&self, words: &[&str]) -> Job {
        let mut job = self.clone();
        for pair in words.chunks(2) {
            if let Some(place) = job.0.windows(2).position(|found| found[0] == pair[0] && found[1] == pair[1]) {
                job.0.drain(place..place + 2);
            }
        }
        job
    }

    /// Whether the compiler is to tell what it optimised.
    pub(super) fn asks_remarks(&self) -> bool {
        let asks = ["-Rpass", "-opt-record"];
        self.0.iter().any(|word| asks.iter().any(|start| word.as_bytes().starts_with(start.as_bytes())))
    }

    /// Whether the job makes line tables and no other debug information.
    pub(super) fn has_line_tables_only(&self) -> bool {
        let mut kinds = self.0.iter().filter_map(|word| word.as_bytes().strip_prefix(b"-debug-info-kind="));
        kinds.next_back().is_some_and(|kind| kind == b"line-tables-only")
    }

    /// The word after an option.
    pub(super) fn value_of(&self, option: &str) -> Option<&OsStr> {
        let place = self.0.iter().rposition(|w| w == option)?;
        self.0.get(place + 1).map(OsString::as_os_str)
    }

    /// Whether the job uses this file.
    pub(super) fn mentions(&self, file: &OsStr) -> bool {
        self.0.iter().any(|w| w == file || w.as_bytes().strip_prefix(b"@").is_some_and(|name| name == file.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &[&str]) -> Job {
        Job(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn words_hold_spaces_quotes_backslashes_dollars_and_line_ends() {
        let text = b"clang version 19\nTarget: x\n (in-process)\n \"/bin/cc\" \"-D\" \"A=\\\"b c\\\\\\$\\\"\" \"two\nlines\"\n \"ld\" \"-o\" \"a\"\n";
        let jobs = parse(text).unwrap();
        assert_eq!(jobs, [job(&["/bin/cc", "-D", "A=\"b c\\$\"", "two\nlines"]), job(&["ld", "-o", "a"])]);
    }

    #[test]
    fn a_word_without_an_end_is_refused() {
        assert!(parse(b" \"cc\" \"-D").unwrap_err().contains("do not end"));
    }

    #[test]
    fn a_compile_job_is_cut_in_two() {
        let whole = job(&["clang", "-cc1", "-emit-obj", "-O3", "-o", "a.o", "-x", "c", "a.c"]);
        assert_eq!(whole.product(), Some(Product::Code("-emit-obj")));
        let first = ["clang", "-cc1", "-emit-llvm-bc", "-emit-llvm-uselists", "-O3", "-o", "1.bc", "-x", "c", "a.c"];
        assert_eq!(whole.until_bitcode(OsStr::new("1.bc")), job(&first));
        let second = ["clang", "-cc1", "-emit-obj", "-O3", "-o", "a.o", "-disable-llvm-passes", "-x", "ir", "2.bc"];
        assert_eq!(whole.after_bitcode(OsStr::new("2.bc")), job(&second));
    }

    #[test]
    fn what_is_asked_of_the_optimiser_is_found() {
        let plain = job(&["clang", "-cc1", "-O2", "-vectorize-loops", "-mllvm", "-enable-tail-merge=0"]);
        assert_eq!((plain.tuning(), plain.not_heard().len()), (Tuning::default(), 0));
        let words = ["clang", "-cc1", "-O2", "-fno-unroll-loops", "-mllvm", "-inline-threshold=1", "-fveclib=SVML"];
        let asked = job(&words);
        let llvm = vec!["-inline-threshold=1".to_owned()];
        assert_eq!(asked.tuning(), Tuning { unrolls: false, vectorises: false, merges_functions: false, llvm });
        assert_eq!(asked.not_heard(), ["-fveclib=SVML"]);
    }

    #[test]
    fn linking_preprocessing_and_assembling_are_left_alone() {
        assert_eq!(job(&["ld", "-o", "a", "a.o"]).product(), None);
        assert_eq!(job(&["clang", "-cc1", "-E", "-o", "a.i", "-x", "c", "a.c"]).product(), None);
        assert_eq!(job(&["clang", "-cc1as", "-filetype", "obj", "-o", "a.o", "a.s"]).product(), None);
    }
}
