//! Command lines that a record of the kernel has cut short, completed from `/proc/PID/cmdline`. Pure.
//!
//! Invariant: what is found in /proc belongs to the very process of the record (whoever reads it sees to that) and begins with what
//! the record says. A process that has begun to run another program meanwhile, or has written a title over its arguments, is left as
//! the record says.

use monitor_common::ARGV_MAX;

use super::decode::arguments;
use crate::host::CommandLine;
use orphand_core::model::{Image, text::base};

/// The whole image, where `found` goes on from what the record said.
pub fn completed(record: &Image, found: &CommandLine) -> Option<Image> {
    if !record.argv_truncated || found.cmdline.is_empty() {
        return None;
    }
    let goes_on = if record.argv.is_empty() {
        // Nothing could be read: the program at least has to be the same.
        base(&record.exe) == base(&found.exe)
    } else {
        let beginning = found.cmdline.get(..ARGV_MAX)?;
        Image::new(String::new(), arguments(beginning), true).argv == record.argv
    };
    goes_on.then(|| Image::new(record.exe.clone(), arguments(&found.cmdline), found.more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cmdline: &[u8]) -> Image {
        let argv = arguments(&cmdline[..ARGV_MAX.min(cmdline.len())]);
        Image { exe: "/usr/bin/docker".to_owned(), argv, argv_truncated: true }
    }

    fn found(cmdline: &[u8]) -> CommandLine {
        CommandLine { exe: "/usr/bin/docker".to_owned(), cmdline: cmdline.to_vec(), more: false }
    }

    fn docker(image: &str) -> Vec<u8> {
        format!("docker\0run\0-i\0-e\0NOTE={}\0{image}\0", "x".repeat(3000)).into_bytes()
    }

    #[test]
    fn what_begins_the_same_goes_on() {
        let whole = docker("mcp/fetch");
        let image = completed(&record(&whole), &found(&whole)).unwrap();
        assert_eq!((image.argv.len(), image.argv[5].as_str()), (6, "mcp/fetch"));
        assert!(!image.argv_truncated);
        let cut = CommandLine { more: true, ..found(&whole) };
        assert!(completed(&record(&whole), &cut).unwrap().argv_truncated);
    }

    #[test]
    fn another_beginning_is_another_program() {
        let mut other = docker("mcp/fetch");
        other[9] = b'x';
        assert_eq!(completed(&record(&docker("mcp/fetch")), &found(&other)), None);
        assert_eq!(completed(&record(&docker("mcp/fetch")), &found(b"a title")), None);
        assert_eq!(completed(&record(&docker("mcp/fetch")), &found(b"")), None);
    }

    #[test]
    fn where_nothing_could_be_read_the_program_tells() {
        let whole = docker("mcp/fetch");
        let record = Image { argv: Vec::new(), ..record(&whole) };
        assert_eq!(completed(&record, &found(&whole)).unwrap().argv.len(), 6);
        assert_eq!(
            completed(&record, &CommandLine { exe: "/usr/bin/node".to_owned(), ..found(&whole) }),
            None
        );
    }

    #[test]
    fn a_whole_record_is_left_alone() {
        let whole = b"docker\0run\0mcp/fetch\0";
        let record = Image { argv_truncated: false, ..record(whole) };
        assert_eq!(completed(&record, &found(whole)), None);
    }
}
