//! Doing the jobs.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::jobs::{Answer, Job, Product};
use super::{Build, Built, Layout};
use crate::llvm::Module;
use crate::{Candidate, Error, Pipeline, Result};

/// Runs the compiler as if we were not there.
pub(super) fn unchanged(build: &Build) -> Result<Built> {
    let status = Command::new(&build.compiler)
        .args(&build.arguments)
        .status()
        .map_err(|source| Error::NoCompiler { program: build.compiler.display().to_string(), source })?;
    Ok(Built { status: number(status), candidates: Vec::new() })
}

/// Does all jobs. As with the driver, a job that fails does not keep the others from being done, but those that need its file; its status
/// is the one returned.
pub(super) fn all(build: &Build, answer: &Answer) -> Result<Built> {
    let passes = pipeline(build)?;
    let mut built = Built::default();
    let mut missing: Vec<OsString> = Vec::new();
    for (number, job) in answer.jobs.iter().enumerate() {
        if missing.iter().any(|file| job.mentions(file)) {
            missing.extend(job.output().map(OsStr::to_owned));
            continue;
        }
        let status = match job.product() {
            Some(product) => {
                let files = [1, 2].map(|half| answer.folder.path().join(format!("{number}.{half}.bc")));
                compile(job, product, &files, (build, &passes), &mut built.candidates)?
            }
            None => run(job)?,
        };
        if status != 0 {
            missing.extend(job.output().map(OsStr::to_owned));
            if built.status == 0 {
                built.status = status;
            }
        }
    }
    Ok(built)
}

fn pipeline(build: &Build) -> Result<Pipeline> {
    match build.layout {
        Layout::Ordered => build.passes.clone().then("layout"),
        Layout::Default => Ok(build.passes.clone()),
    }
}

/// A compile job in three steps.
fn compile(
    job: &Job,
    product: Product,
    [optimised, transformed]: &[std::path::PathBuf; 2],
    (build, passes): (&Build, &Pipeline),
    candidates: &mut Vec<Candidate>,
) -> Result<u8> {
    let status = run(&job.until_bitcode(optimised.as_os_str()))?;
    // Some jobs succeed without an output, as when only syntax was checked.
    if status != 0 || !optimised.exists() {
        return Ok(status);
    }
    let (module, looked_at) = passes.apply(|| Module::read(optimised), &build.options)?;
    candidates.extend(looked_at);
    let output = Path::new(job.output().unwrap_or_default());
    match product {
        Product::Code(_) => {
            write(transformed, &module.to_bitcode())?;
            run(&job.after_bitcode(transformed.as_os_str()))
        }
        Product::Bitcode => write(output, &module.to_bitcode()).map(|()| 0),
        Product::IrText => write(output, module.to_text().as_bytes()).map(|()| 0),
    }
}

/// Writes to a file, or to standard output for `-`.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = if path.as_os_str() == "-" {
        std::io::Write::write_all(&mut std::io::stdout(), bytes)
    } else {
        std::fs::write(path, bytes)
    };
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn run(job: &Job) -> Result<u8> {
    let status = Command::new(&job.0[0])
        .args(&job.0[1..])
        .status()
        .map_err(|source| Error::NoCompiler { program: job.0[0].display().to_string(), source })?;
    Ok(number(status))
}

/// As a shell would put it.
fn number(status: ExitStatus) -> u8 {
    match status.code() {
        Some(code) => code as u8,
        None => 128_u8.wrapping_add(status.signal().unwrap_or(0) as u8),
    }
}
