//! Over programs that a pass once broke, in `sources`, at every level of optimisation. What a program calls in another
//! file is in `sources/callees`.

use std::fs;

use crate::build::{self, Printed};

#[test]
fn programs_that_were_broken_once_print_the_same_after_every_pass() {
    let sources = build::root().join("transform/tests/programs/sources");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut pipelines = build::pipelines();
    pipelines.push("fcs,tail-merge".to_owned());
    let listed = fs::read_dir(&sources).unwrap().map(|entry| entry.unwrap().path());
    let programs: Vec<_> = listed.filter(|path| path.is_file()).collect();
    assert!(programs.len() >= 2, "the programs were not found: {programs:?}");
    for source in programs {
        let callees = sources.join("callees").join(source.file_name().unwrap());
        let with: Vec<&str> = callees.to_str().filter(|_| callees.exists()).into_iter().collect();
        for level in ["-O1", "-O2", "-O3", "-Os"] {
            let (bitcode, after) = (path("a.bc"), path("b.bc"));
            build::to_bitcode(&source, &bitcode, &[level]);
            let mut printed = Printed::default();
            let expected = printed.by(&bitcode, &with, &[]);
            for passes in &pipelines {
                build::transform(&bitcode, passes, &after);
                let got = printed.by(&after, &with, &[]);
                assert_eq!(got, expected, "{} at {level} after {passes}", source.display());
            }
        }
    }
}
