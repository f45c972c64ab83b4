//! Builds the one file of C++ of this crate, `src/llvm/code.cpp`, against the LLVM that `llvm-sys` has found.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/llvm/code.cpp");
    println!("cargo:rerun-if-env-changed=DEP_LLVM_19_CONFIG_PATH");
    let config = std::env::var_os("DEP_LLVM_19_CONFIG_PATH").expect("llvm-sys says where llvm-config is");
    let output = Command::new(&config).arg("--includedir").output().expect("llvm-config runs");
    let folder = String::from_utf8(output.stdout).expect("a path in UTF-8");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/llvm/code.cpp")
        // Warnings in LLVM's headers are not ours.
        .flag("-isystem")
        .flag(folder.trim())
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .define("NDEBUG", None)
        .compile("lockstep_code");
}
