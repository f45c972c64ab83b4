//! Doing the jobs.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::SystemTime;

use super::build::{Build, Built, Layout, Shape};
use super::direct::Command;
use super::jobs::{Answer, Job, Level, Product};
use super::scratch::{Scratch, Streams};
use super::{by_products, code, diagnostics, words};
use crate::llvm::{CodeOptions, Module, WellFormed};
use crate::{Error, Pipeline, Remark, Result, cost, iterations};

/// Runs the compiler as if we were not there.
pub(super) fn unchanged(build: &Build, scratch: &Scratch) -> Result<Built> {
    let output = scratch.run(&build.compiler, &build.arguments, Streams::Ours)?;
    Ok(Built { status: number(output.status), ..Built::default() })
}

/// Does a plain compilation; none where it turns out not to be one.
pub(super) fn direct(build: &Build, command: &Command, scratch: &Scratch) -> Result<Option<Built>> {
    let passes = pipeline(build)?;
    let files = ["1.bc", "2.bc"].map(|name| scratch.path().join(name));
    let log = scratch.path().join("jobs");
    let (words, environment) = command.until_bitcode(files[0].as_os_str(), log.as_os_str());
    let output = scratch.run_in(&environment, &build.compiler, &words, Streams::Ours)?;
    let mut built = Built { status: number(output.status), ..Built::default() };
    if built.status == 0 {
        let Some(job) = command.job(&log) else { return Ok(None) };
        let lines = asks_for_lines(build);
        let (optimised_here, keep_ir) = (None, None);
        let if_structured = build.keeps_if_structured();
        let halves = Halves {
            job: &job,
            files,
            scratch,
            optimised_here,
            marks: false,
            alone: true,
            lines,
            if_structured,
            keep_ir,
        };
        built.status = halves.finish(Product::OBJECT, &passes, &mut built.remarks)?;
    }
    Ok(Some(built))
}

/// Does all jobs. As with the driver, a job that fails does not keep the others from being done, but those that need
/// its file; its status is the one returned.
pub(super) fn all(build: &Build, answer: &Answer, scratch: &Scratch) -> Result<Built> {
    let passes = pipeline(build)?;
    let mut built = Built::default();
    let mut missing: Vec<OsString> = Vec::new();
    let alone = answer.jobs.iter().filter(|job| job.product().is_some()).count() == 1;
    for (number, job) in answer.jobs.iter().enumerate() {
        if missing.iter().any(|file| job.mentions(file)) {
            missing.extend(job.output().map(OsStr::to_owned));
            continue;
        }
        let status = match job.product() {
            Some(product) => {
                let files = [1, 2].map(|half| scratch.path().join(format!("{number}.{half}.bc")));
                let halves = Halves {
                    job,
                    files,
                    scratch,
                    optimised_here: optimised_here(build, job),
                    marks: build.marks_iterations && job.has_openmp(),
                    alone,
                    lines: asks_for_lines(build),
                    if_structured: build.keeps_if_structured(),
                    keep_ir: build.keep_ir.as_deref(),
                };
                halves.compile(product, &passes, &mut built.remarks)?
            }
            None => run(job, scratch)?,
        };
        if status != 0 {
            missing.extend(job.output().map(OsStr::to_owned));
            if built.status == 0 {
                built.status = status;
            }
        }
    }
    let links = answer.jobs.last().is_some_and(|job| job.product().is_none());
    built.is_program = links && answer.jobs.iter().any(|job| job.product().is_some());
    Ok(built)
}

fn pipeline(build: &Build) -> Result<Pipeline> {
    let passes = build.passes.clone().with_whole_arms(build.leaves_arms_whole());
    match build.layout {
        Layout::Ordered => passes.then("layout"),
        Layout::Default => Ok(passes),
    }
}

/// A compile job in three steps.
struct Halves<'a> {
    job: &'a Job,
    /// Bitcode between the first and the second step, and between the second and the third.
    files: [PathBuf; 2],
    scratch: &'a Scratch,
    /// The level at which the optimiser runs here, before the passes, where it does not run in the first step.
    optimised_here: Option<Level>,
    /// Whether the iterations of OpenMP's loops are marked before the optimiser.
    marks: bool,
    /// The only one of this call.
    alone: bool,
    /// Whether the user has asked for line tables.
    lines: bool,
    /// What code generation is to keep only where a pass has made control flow structured.
    if_structured: Vec<&'static str>,
    /// Where the IR from which code is generated is kept.
    keep_ir: Option<&'a Path>,
}

/// Whether the user's words ask for line tables and no more. Else those in a job are there since we ask for them, so
/// that remarks have places.
fn asks_for_lines(build: &Build) -> bool {
    const WORDS: [&str; 4] = ["-g1", "-ggdb1", "-gline-tables-only", "-gmlt"];
    words::expanded(&build.arguments).iter().any(|word| WORDS.iter().any(|asks| word == asks))
}

/// Where a build has the optimiser run here: at which level.
fn optimised_here(build: &Build, job: &Job) -> Option<Level> {
    if build.shape == Shape::Cpu {
        return None;
    }
    let level = job.level();
    if level.is_none() {
        super::build::warn(&format!(
            "{}: not given a GPU's shape, since nothing is optimised, or since instrumentation or remarks need the \
             compiler's own optimiser; compile with -O1 or more and without those",
            job.source().unwrap_or_default().display()
        ));
        return None;
    }
    for option in job.not_heard() {
        super::build::warn(&format!(
            "compiling {}: {} has no effect, since the optimiser runs in this process for a GPU's shape; leave it \
             out, or compile with --shape cpu",
            job.source().unwrap_or_default().display(),
            option.display()
        ));
    }
    level
}

/// The module with the costs of its blocks noted. What a GPU compares for a switch is in blocks then.
fn with_costs(module: WellFormed) -> Result<WellFormed> {
    let mut module = module.into_module();
    module.run_passes("function(lower-switch)")?;
    cost::blocks::note(&module);
    module.well_formed().map_err(|text| Error::BadIr { name: "the module with costs".to_owned(), text })
}

impl Halves<'_> {
    fn compile(&self, product: Product, passes: &Pipeline, remarks: &mut Vec<Remark>) -> Result<u8> {
        let [optimised, _] = &self.files;
        let first = self.job.until_bitcode(optimised.as_os_str());
        let first = if self.optimised_here.is_some() || self.marks { first.without_optimiser() } else { first };
        let status = run(&first, self.scratch)?;
        // Some jobs succeed without an output, as when only syntax was checked.
        if status != 0 || !optimised.exists() {
            return Ok(status);
        }
        if self.marks {
            let status = self.mark(remarks)?;
            if status != 0 {
                return Ok(status);
            }
        }
        self.finish(product, passes, remarks)
    }

    /// Marks iterations in what the first step made without its optimiser, and has the compiler optimise that, unless
    /// that is done here.
    fn mark(&self, remarks: &mut Vec<Remark>) -> Result<u8> {
        let start = SystemTime::now();
        let [optimised, marked] = &self.files;
        let module = Module::read(optimised)?;
        remarks.extend(iterations::mark(&module));
        let bad = |text| Error::BadIr { name: "the module with marks".to_owned(), text };
        let bitcode = module.well_formed().map_err(bad)?.to_bitcode();
        if self.optimised_here.is_some() {
            return write(optimised, &bitcode).map(|()| 0);
        }
        write(marked, &bitcode)?;
        let job = self.job.only_optimiser(marked.as_os_str(), optimised.as_os_str());
        self.run_on_bitcode(job, (start, SystemTime::now()))
    }

    /// The second and the third step.
    fn finish(&self, product: Product, passes: &Pipeline, remarks: &mut Vec<Remark>) -> Result<u8> {
        let start = SystemTime::now();
        let (mut module, looked_at) = self.transformed(product, passes)?;
        let loose = (!passes.has_structured(&looked_at)).then(|| self.job.without_llvm(&self.if_structured));
        let job = loose.as_ref().unwrap_or(self.job);
        remarks.extend(looked_at);
        let output = Path::new(self.job.output().unwrap_or_default());
        match product {
            Product::Code(_) => {
                if let Some(folder) = self.keep_ir {
                    module = self.keep(folder, module)?;
                } else if let Some(options) = self.code_options(job, product) {
                    if let Some(object) = module.into_object(&options) {
                        return status_of_output(replace(output, &object));
                    }
                    module = self.transformed(product, passes)?.0;
                }
                let [_, transformed] = &self.files;
                write(transformed, &module.to_bitcode())?;
                self.generate_code(job, transformed, (start, SystemTime::now()))
            }
            Product::Bitcode => status_of_output(write(output, &module.to_bitcode())),
            Product::IrText => status_of_output(write(output, module.to_text().as_bytes())),
        }
    }

    /// The second step.
    fn transformed(&self, product: Product, passes: &Pipeline) -> Result<(WellFormed, Vec<Remark>)> {
        let (module, remarks) = passes.apply(|| {
            let mut module = Module::read(&self.files[0])?;
            if let Some(level) = self.optimised_here {
                module.run_passes_for_gpu(&format!("default<{level}>"), &self.job.tuning())?;
            }
            Ok(module)
        })?;
        let notes = self.optimised_here.is_some() && matches!(product, Product::Code(_));
        let module = if notes { with_costs(module)? } else { module };
        // The compiler would make no line tables that the user has not asked for.
        // Where code generation is asked for remarks, they have their places from these.
        let ours = !self.lines && self.keep_ir.is_none() && self.job.has_line_tables_only() && !self.job.asks_remarks();
        Ok((if ours { module.without_debug_information() } else { module }, remarks))
    }

    /// With what the third step may be done in this process.
    fn code_options(&self, job: &Job, product: Product) -> Option<CodeOptions> {
        // LLVM's options stay: an optimiser that ran here for the next job would see them.
        let apart = self.alone || self.optimised_here.is_none();
        if product == Product::OBJECT && apart { code::options(job) } else { None }
    }

    /// Keeps the IR under a name that its contents give it, and has the code's lines lead there.
    fn keep(&self, folder: &Path, module: WellFormed) -> Result<WellFormed> {
        let bitcode = module.to_bitcode();
        let mut hasher = DefaultHasher::new();
        bitcode.hash(&mut hasher);
        let stem = Path::new(self.job.source().unwrap_or_default()).file_stem().unwrap_or_default();
        let name = format!("{}-{:016x}.bc", stem.to_string_lossy(), hasher.finish());
        let failed = |source| Error::Write { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        write(&folder.join(&name), &bitcode)?;
        let module = module.into_module();
        module.number_places(&folder.to_string_lossy(), &name);
        module.well_formed().map_err(|text| Error::BadIr { name, text })
    }

    /// The third step. `passes` is when the second was done.
    fn generate_code(&self, job: &Job, transformed: &Path, passes: (SystemTime, SystemTime)) -> Result<u8> {
        self.run_on_bitcode(job.after_bitcode(transformed.as_os_str()), passes)
    }

    /// Does a part of the job that reads bitcode. `passes` is when that was changed last.
    fn run_on_bitcode(&self, job: Job, passes: (SystemTime, SystemTime)) -> Result<u8> {
        let (job, files) = by_products::redirected(job, self.scratch.path());
        let output = self.scratch.run(&job.0[0], &job.0[1..], Streams::KeepErrors)?;
        self.pass_on(&output.stderr)?;
        if output.status.success() {
            for file in files {
                file.join(passes)?;
            }
        }
        Ok(number(output.status))
    }

    /// Prints what code generation said.
    fn pass_on(&self, said: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(said);
        let folder = self.scratch.path();
        let mut shown = said.to_vec();
        if !diagnostics::all_have_places(&text, folder) {
            let mut all = Vec::new();
            if let Some(job) = self.job.only_messages() {
                all = self.scratch.run(&job.0[0], &job.0[1..], Streams::KeepErrors)?.stderr;
            }
            shown = diagnostics::placed(&text, &String::from_utf8_lossy(&all), folder).into_bytes();
        }
        // Standard error may be closed; then nobody wants to read it.
        let _ = std::io::stderr().write_all(&shown);
        Ok(())
    }
}

/// Writes to a file, or to standard output for `-`.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written =
        if path.as_os_str() == "-" { std::io::stdout().write_all(bytes) } else { std::fs::write(path, bytes) };
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// The status of a job whose output was written or could not be: the compiler's, which makes no difference between that
/// and a source that does not compile. A pipe without a reader ends us as it would end the compiler.
fn status_of_output(written: Result<()>) -> Result<u8> {
    match written {
        Err(Error::Write { path, source }) if source.kind() != ErrorKind::BrokenPipe => {
            let error = Error::Write { path, source };
            // Standard error may be closed; then nobody wants to read it.
            let _ = writeln!(std::io::stderr(), "lockstep: {error}");
            Ok(1)
        }
        written => written.map(|()| 0),
    }
}

/// Writes an object file at once: as with clang, nobody finds a part of it. What is no file, such as `/dev/null`, is
/// written to.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) || path.as_os_str() == "-" {
        return write(path, bytes);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder);
    let written = made.and_then(|mut file| file.write_all(bytes).map(|()| file));
    let replaced = written.and_then(|file| file.persist(path).map_err(|error| error.error));
    replaced.map(|_| ()).map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn run(job: &Job, scratch: &Scratch) -> Result<u8> {
    let output = scratch.run(&job.0[0], &job.0[1..], Streams::Ours)?;
    Ok(number(output.status))
}

/// As a shell would put it.
pub(super) fn number(status: ExitStatus) -> u8 {
    match status.code() {
        Some(code) => code as u8,
        None => 128_u8.wrapping_add(status.signal().unwrap_or(0) as u8),
    }
}
