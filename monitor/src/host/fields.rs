//! Parses files of /proc that consist of lines `NAME: value` (`status`, `io`, `smaps_rollup`). Pure.

use std::str::{FromStr, SplitAsciiWhitespace};

/// The words after `name:`.
pub(super) fn words<'a>(text: &'a [u8], name: &str) -> Option<SplitAsciiWhitespace<'a>> {
    let value = |line: &'a [u8]| line.strip_prefix(name.as_bytes())?.strip_prefix(b":");
    let value = text.split(|&byte| byte == b'\n').find_map(value)?;
    Some(std::str::from_utf8(value).ok()?.split_ascii_whitespace())
}

/// The first word after `name:`, parsed as a number.
pub(super) fn number<N: FromStr>(text: &[u8], name: &str) -> Option<N> {
    words(text, name)?.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let text =
            b"Name:\tU\nTgid:\t7\nUid:\t1000\t0\t0\t0\nPss:     12 kB\nPss_Dirty:  3 kB\nBad:\t\xff\nNone:\n";
        assert_eq!(number::<u32>(text, "Uid"), Some(1000));
        assert_eq!(words(text, "Uid").unwrap().nth(1), Some("0"));
        assert_eq!(number::<u64>(text, "Pss"), Some(12));
        for name in ["U", "Name", "Ps", "Bad", "None", "Other"] {
            assert_eq!(number::<u32>(text, name), None, "{name}");
        }
        assert_eq!(number::<u32>(b"", "Uid"), None);
    }
}
