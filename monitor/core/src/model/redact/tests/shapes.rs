//! Two tables: command lines with secrets, none of which may show, and ordinary command lines with what is shown of them.

use std::fmt::Write as _;

use super::super::argv;

const SECRETS: &str = include_str!("secrets.txt");
const ORDINARY: &str = include_str!("ordinary.txt");

/// The rows of a table.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn arguments(row: &str) -> Vec<String> {
    row.split(" ¦ ").map(|argument| argument.replace("\\n", "\n")).collect()
}

/// A secret of `length` characters of one kind. Its end has a capital, a digit and a small letter if the kind allows
/// them.
fn secret(kind: char, length: usize, seed: &mut u64) -> String {
    let letters = match kind {
        'a' | 'b' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        'h' => "0123456789abcdef",
        'd' => "0123456789",
        'c' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        'm' => "abcdefghijklmnopqrstuvwxyz0123456789",
        'w' => "абвгдежзийклмнопрстуфхцчшщъыьэюя",
        'p' => return format!("hunter2{}", secret('d', 3, seed)),
        'u' => {
            let parts: Vec<_> = [8, 4, 4, 4, 12].iter().map(|length| secret('h', *length, seed)).collect();
            return parts.join("-");
        }
        other => panic!("no kind {other:?}"),
    };
    let letters: Vec<char> = letters.chars().collect();
    let mut draw = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        letters[usize::try_from(*seed >> 33).unwrap() % letters.len()]
    };
    let end = match kind {
        'a' | 'b' => "x7Q",
        'c' => "X7Q",
        'm' => "x7q",
        _ => "",
    };
    let made: String = (0..length - end.len().min(length)).map(|_| draw()).collect();
    made + end
}

/// A row with generated secrets, and these secrets.
fn fill(row: &str, seed: &mut u64) -> (String, Vec<String>) {
    let (mut filled, mut made, mut rest) = (String::new(), Vec::new(), row);
    while let Some((head, tail)) = rest.split_once("<<") {
        let (what, tail) = tail.split_once(">>").unwrap();
        let kind = what.chars().next().unwrap();
        let new = secret(kind, what[1..].parse().unwrap_or(0), seed);
        write!(filled, "{head}{new}").unwrap();
        made.push(new);
        rest = tail;
    }
    (filled + rest, made)
}

#[test]
fn no_secret_of_the_table_shows() {
    let (mut all, mut shown) = (0, Vec::new());
    for seed in 1..=8 {
        let mut seed = seed;
        for row in rows(SECRETS) {
            let (filled, secrets) = fill(row, &mut seed);
            assert!(!secrets.is_empty(), "no secret in {row}");
            let redacted = argv(&arguments(&filled));
            assert_eq!(argv(&redacted), redacted, "twice is another thing than once: {row}");
            all += 1;
            if secrets.iter().any(|secret| super::shows(&redacted, secret)) {
                shown.push(format!("{row} => {redacted:?}"));
            }
        }
    }
    assert!(all >= 8 * 250, "only {all} rows");
    assert!(shown.is_empty(), "{} of {all}: {}", shown.len(), shown.join("\n"));
}

/// The kernel keeps only the start of a long command line. Wherever it cuts, next to no start of a secret is visible.
#[test]
fn a_secret_cut_in_half_does_not_show() {
    let (mut all, mut shown) = (0, Vec::new());
    let mut seed = 7;
    for row in rows(SECRETS) {
        let (filled, secrets) = fill(row, &mut seed);
        for secret in &secrets {
            let begin = filled.find(secret.as_str()).unwrap();
            for (length, _) in secret.char_indices().skip(10) {
                let redacted = argv(&arguments(&filled[..begin + length]));
                all += 1;
                if super::shows(&redacted, &secret[..length]) {
                    shown.push(format!("{row} => {redacted:?}"));
                }
            }
        }
    }
    // The first ten letters may by chance be such as can be spoken.
    assert!(shown.len() * 500 < all, "{} of {all} shown: {}", shown.len(), shown.join("\n"));
}

/// Rows in pairs: what was run, and what is shown. One row alone is shown as it is.
#[test]
fn ordinary_command_lines_stay_recognisable() {
    let (mut all, mut wrong) = (0, Vec::new());
    for row in rows(ORDINARY) {
        let (line, expected) = row.split_once(" => ").unwrap_or((row, row));
        let shown = argv(&arguments(line)).join(" ¦ ");
        all += 1;
        if shown != expected {
            wrong.push(format!("{line} => {shown}"));
        }
    }
    assert!(all >= 60, "only {all} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
