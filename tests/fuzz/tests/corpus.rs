//! Every target on every file of its corpus, without the engine.

use std::{fs, path::Path};

#[test]
fn every_target_reads_its_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in fuzz::TARGETS {
        let files: Vec<_> =
            fs::read_dir(corpus.join(target.name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            let bytes = fs::read(&file).unwrap();
            println!("{}", file.display());
            (target.run)(&bytes);
            // What is cut short anywhere is read, too.
            for end in (0..bytes.len()).step_by(bytes.len() / 64 + 1) {
                (target.run)(&bytes[..end]);
            }
        }
    }
}
