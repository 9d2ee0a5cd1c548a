//! Text for people: sanitised names, sizes, durations. Pure and total.

use std::{borrow::Cow, error::Error, fmt::Write as _, time::Duration};

use serde::Serialize;

use super::StuckProcess;

/// Whether a terminal may act on this character instead of showing it: control characters, marks that change
/// the writing direction, and invisible characters, which make names look alike.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The last component of a path without trailing slashes; the whole text if there is no slash.
pub fn base(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    trimmed.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The words of a name. It is split at characters that are neither letter nor digit, and at camel case.
pub fn tokens(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric()).flat_map(|piece| {
        let byte = |at: usize| piece.as_bytes().get(at).copied().unwrap_or(b' ');
        let begins_word = move |at: usize| {
            let (before, here, after) = (byte(at - 1), byte(at), byte(at + 1));
            here.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_ascii_lowercase()))
        };
        let mut begin = 0;
        let ends = (1..=piece.len()).filter(move |at| *at == piece.len() || begins_word(*at));
        ends.filter_map(move |end| piece.get(std::mem::replace(&mut begin, end)..end))
    })
}

/// Makes a name safe for one line of a terminal: hostile characters become visible (`\n`, `\x1b`,
/// `\u{202e}`). The function is idempotent.
pub fn sanitise(name: &str) -> Cow<'_, str> {
    if !name.contains(is_hostile) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len() + 16);
    for c in name.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '\n' | '\r' | '\t' => write!(shown, "{}", c.escape_default()),
            _ if c.is_ascii_control() => write!(shown, "\\x{:02x}", u32::from(c)),
            _ if is_hostile(c) => write!(shown, "{}", c.escape_unicode()),
            _ => shown.write_char(c),
        };
    }
    Cow::Owned(shown)
}

pub fn clean(name: &str) -> String {
    sanitise(name).into_owned()
}

/// A name as one word of a shell's command, whoever has chosen it.
pub fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@/+,".contains(c);
    let name = sanitise(name);
    if !name.is_empty() && name.chars().all(is_plain) { name.into_owned() } else { in_quotes(&name) }
}

/// A text in quotes that nothing in it can end.
pub fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A name and the number of a run: `claude #3`.
pub fn numbered(name: &str, generation: Option<u64>) -> String {
    let number = generation.map(|number| format!(" #{number}")).unwrap_or_default();
    format!("{}{number}", sanitise(name))
}

/// Makes a log line safe: line feeds and terminal control in names become visible. With `colours`, the log's
/// own colour codes stay.
pub fn log_line(line: &str, colours: bool) -> Cow<'_, str> {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    if !body.contains(is_hostile) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for (n, piece) in body.split('\u{1b}').enumerate() {
        let colour = (n > 0 && colours).then(|| piece.strip_prefix('[')?.split_once('m')).flatten();
        let colour = colour.filter(|(numbers, _)| numbers.bytes().all(|b| b.is_ascii_digit() || b == b';'));
        if let Some((numbers, rest)) = colour {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\u{1b}[{numbers}m{}", sanitise(rest));
        } else {
            shown.push_str(if n > 0 { "\\x1b" } else { "" });
            shown.push_str(&sanitise(piece));
        }
    }
    shown.push_str(end);
    Cow::Owned(shown)
}

/// Appends JSON and escapes the hostile characters that serde leaves as they are. They occur only within
/// strings (except line feeds between values), so the value stays the same.
pub fn push_json(json: &str, out: &mut String) {
    let escape = |c: char| c != '\n' && is_hostile(c);
    if !json.contains(escape) {
        return out.push_str(json);
    }
    for c in json.chars() {
        if escape(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
}

/// What was there, and what the host regained: `1.1 GB (PSS 479 MB) freed`. Where only resident memory is known, which counts
/// what processes share once for each of them, it is a limit: `at most 1.1 GB freed`.
pub fn freed(resident: u64, proportional: Option<u64>) -> String {
    match proportional {
        Some(_) => format!("{} freed", both_sizes(resident, proportional)),
        None => format!("at most {} freed", size(resident)),
    }
}

/// `1.1 GB (PSS 479 MB)`, or without the proportional memory where that is not known.
pub fn both_sizes(resident: u64, proportional: Option<u64>) -> String {
    let proportional = proportional.map(|bytes| format!(" (PSS {})", size(bytes)));
    size(resident) + &proportional.unwrap_or_default()
}

/// A size with at least two significant digits: `812 B`, `64 kB`, `197 MB`, `10.3 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (bytes, mut scale, mut unit) = (u128::from(bytes), 1, "B");
    for larger in UNITS {
        if bytes * 10 < scale * 9_995 {
            break;
        }
        scale *= 1000;
        unit = larger;
    }
    let tenths = (bytes * 10 + scale / 2) / scale;
    // Tenths are shown for GB and above only.
    if tenths >= 1000 || matches!(unit, "kB" | "MB") {
        format!("{} {unit}", (bytes + scale / 2) / scale)
    } else {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// A duration with the two most significant units: `3 ms`, `2.3 s`, `10 s`, `4 min 5 s`, `3 h 20 min`, `2 d 4
/// h`.
pub fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    let seconds = (millis + 500) / 1000;
    let minutes = seconds / 60;
    let hours = minutes / 60;
    let pair = |large: u128, unit: &str, small: u128, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller}"),
    };
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..9_950 => {
            let tenths = (millis + 50) / 100;
            if tenths.is_multiple_of(10) {
                format!("{} s", tenths / 10)
            } else {
                format!("{}.{} s", tenths / 10, tenths % 10)
            }
        }
        9_950..59_500 => format!("{seconds} s"),
        59_500..3_599_500 => pair(minutes, "min", seconds % 60, "s"),
        3_599_500..86_399_500 => pair(hours, "h", minutes % 60, "min"),
        _ => pair(hours / 24, "d", hours % 24, "h"),
    }
}

pub fn millis(time: u64) -> String {
    duration(Duration::from_millis(time))
}

/// `1 process`, `4 processes`, `no agents`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// The word for a value as it stands in events: `owner_exited`.
pub fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

/// An error with its causes. A cause that the text names already is not named again.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

/// How many such processes are named in one line.
const UNANSWERED_NAMED: usize = 8;

/// A sentence about processes whose /proc files do not answer.
pub fn unanswered(stuck: &[StuckProcess]) -> String {
    let named: Vec<String> = stuck.iter().take(UNANSWERED_NAMED).map(ToString::to_string).collect();
    let others = match stuck.len().saturating_sub(UNANSWERED_NAMED) {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    let (noun, verb) = if stuck.len() == 1 { ("process", "does") } else { ("processes", "do") };
    format!(
        "{noun} {}{others} {verb} not answer: reads of their files in /proc block (stuck in execve, or memory locked) or take too long; everything else is judged without them",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_freed_is_no_more_than_what_is_regained() {
        assert_eq!(freed(1_107_000_000, Some(479_000_000)), "1.1 GB (PSS 479 MB) freed");
        assert_eq!(freed(1_107_000_000, None), "at most 1.1 GB freed");
    }

    #[test]
    fn hostile_characters_become_visible() {
        assert_eq!(sanitise("server-filesystem"), "server-filesystem");
        assert_eq!(sanitise("\u{1b}[31mred\u{1b}[0m"), r"\x1b[31mred\x1b[0m");
        assert_eq!(sanitise("a\nb\tc\rd\0"), r"a\nb\tc\rd\x00");
        assert_eq!(sanitise("\u{202e}evil\u{2066}"), r"\u{202e}evil\u{2066}");
        assert_eq!(sanitise("\u{9b}31m\u{7f}"), r"\u{9b}31m\x7f");
        assert_eq!(sanitise("a\u{200b}b\u{feff}c\u{e0041}"), r"a\u{200b}b\u{feff}c\u{e0041}");
        assert_eq!(sanitise("größe 日本 🦀 \u{fffd} C:\\x"), "größe 日本 🦀 \u{fffd} C:\\x");
    }

    #[test]
    fn a_name_is_one_word_of_a_command() {
        assert_eq!(quoted("gateway@1.service"), "gateway@1.service");
        assert_eq!(quoted(r"app-a\x2db.service"), r"'app-a\x2db.service'");
        assert_eq!(quoted("x'; reboot #\n"), r"'x'\''; reboot #\n'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_line_of_the_log_is_one_line_and_moves_no_cursor() {
        let evil = "WARN a\nERROR forged\r\u{1b}[2J\u{9b}1m\u{202e}b\u{1b}[31m\u{1b}]0;x\u{7}\n";
        let plain = r"WARN a\nERROR forged\r\x1b[2J\u{9b}1m\u{202e}b\x1b[31m\x1b]0;x\x07".to_owned() + "\n";
        assert_eq!(log_line(evil, false), plain);
        let own = "\u{1b}[2m2026\u{1b}[0m \u{1b}[1;33m WARN\u{1b}[0m a\nb\u{1b}[2J\n";
        let coloured = "\u{1b}[2m2026\u{1b}[0m \u{1b}[1;33m WARN\u{1b}[0m a\\nb\\x1b[2J\n";
        assert_eq!(log_line(own, true), coloured);
        assert!(matches!(log_line("INFO größe\n", true), Cow::Borrowed(_)));
    }

    #[test]
    fn a_cause_is_named_once() {
        #[derive(Debug, thiserror::Error)]
        enum Failed {
            #[error("cannot read the file: {source}; is it there?")]
            Named { source: std::io::Error },
            #[error("cannot begin")]
            Unnamed(#[source] Box<Self>),
        }
        let named = || Failed::Named { source: std::io::Error::other("no disk") };
        assert_eq!(with_causes(&named()), "cannot read the file: no disk; is it there?");
        let unnamed = Failed::Unnamed(Box::new(named()));
        assert_eq!(with_causes(&unnamed), "cannot begin: cannot read the file: no disk; is it there?");
    }

    #[test]
    fn sizes() {
        for (bytes, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1 kB"),
            (64_400, "64 kB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (197_132_288, "197 MB"),
            (999_949_999, "1.0 GB"),
            (1_234_000_000, "1.2 GB"),
            (10_300_000_000, "10.3 GB"),
            (48_000_000_000_000, "48.0 TB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn durations() {
        for (millis, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (2_340, "2.3 s"),
            (9_949, "9.9 s"),
            (9_960, "10 s"),
            (59_499, "59 s"),
            (59_500, "1 min"),
            (245_000, "4 min 5 s"),
            (3_600_000, "1 h"),
            (12_000_000, "3 h 20 min"),
            (187_200_000, "2 d 4 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), shown);
        }
    }

    proptest! {
        #[test]
        fn nothing_hostile_is_left(name in any::<String>()) {
            let shown = sanitise(&name).into_owned();
            prop_assert!(!shown.contains(is_hostile));
            prop_assert_eq!(sanitise(&shown), shown.as_str());
        }

        #[test]
        fn every_number_can_be_told(bytes in any::<u64>(), secs in any::<u64>(), nanos in 0u32..1_000_000_000) {
            prop_assert!(size(bytes).len() < 12);
            prop_assert!(duration(Duration::new(secs, nanos)).len() < 32);
        }
    }
}
