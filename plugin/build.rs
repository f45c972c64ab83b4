//! Builds the file of C++ of this crate, as the crate `transform` does its own.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/plugin.cpp");
    println!("cargo:rerun-if-env-changed=DEP_LLVM_19_CONFIG_PATH");
    let config = std::env::var_os("DEP_LLVM_19_CONFIG_PATH").expect("llvm-sys says where llvm-config is");
    let output = Command::new(&config).arg("--includedir").output().expect("llvm-config runs");
    let folder = String::from_utf8(output.stdout).expect("a path in UTF-8");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/plugin.cpp")
        // Warnings in LLVM's headers are not ours.
        .flag("-isystem")
        .flag(folder.trim())
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .define("NDEBUG", None)
        .compile("lockstep_plugin");
}
