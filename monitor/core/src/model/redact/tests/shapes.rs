//! Command lines with and without secrets: two tables with one row each.

use std::fmt::Write as _;

use super::super::argv;

const SECRETS: &str = include_str!("secrets.txt");
const INNOCENTS: &str = include_str!("innocents.txt");

/// The rows of a table as lists of arguments.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn arguments(row: &str) -> Vec<String> {
    row.split(" ¦ ").map(str::to_owned).collect()
}

/// A secret of `length` characters of one kind. Its end has a capital, a digit and a small letter if the kind
/// allows them.
fn secret(kind: char, length: usize, seed: &mut u64) -> String {
    let letters = match kind {
        'a' | 'b' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        'h' => "0123456789abcdef",
        'd' => "0123456789",
        'c' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        'm' => "abcdefghijklmnopqrstuvwxyz0123456789",
        'p' => return format!("hunter2{}", secret('d', 3, seed)),
        'u' => {
            let parts: Vec<_> = [8, 4, 4, 4, 12].iter().map(|length| secret('h', *length, seed)).collect();
            return parts.join("-");
        }
        other => panic!("no kind {other:?}"),
    };
    let mut made: String = (0..length)
        .map(|_| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(*seed >> 33).unwrap() % letters.len();
            letters.as_bytes()[at] as char
        })
        .collect();
    let end = match kind {
        'a' | 'b' => "x7Q",
        'c' => "X7Q",
        'm' => "x7q",
        _ => "",
    };
    made.truncate(length - end.len().min(length));
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

/// Whether eight characters at either end of a secret are visible.
fn shows(redacted: &str, secret: &str) -> bool {
    let n = secret.len().min(8);
    redacted.contains(&secret[..n]) || redacted.contains(&secret[secret.len() - n..])
}

#[test]
fn known_shapes_never_show_and_others_seldom() {
    let (mut all, mut shown, mut known_shown) = (0, Vec::new(), Vec::new());
    for seed in 1..=8 {
        let mut seed = seed;
        for row in rows(SECRETS) {
            let (filled, secrets) = fill(row.strip_prefix("! ").unwrap_or(row), &mut seed);
            assert!(!secrets.is_empty(), "no secret in {row}");
            let redacted = argv(arguments(&filled), false).join(" ¦ ");
            let again = argv(arguments(&redacted), false).join(" ¦ ");
            assert_eq!(again, redacted, "twice is another thing than once: {row}");
            all += 1;
            if secrets.iter().any(|secret| shows(&redacted, secret)) {
                let list = if row.starts_with('!') { &mut known_shown } else { &mut shown };
                list.push(format!("{row} => {redacted}"));
            }
        }
    }
    assert!(all >= 8 * 150, "only {all} rows");
    assert!(known_shown.is_empty(), "{}", known_shown.join("\n"));
    assert!(shown.len() * 10 < all, "{} of {all}: {}", shown.len(), shown.join("\n"));
}

#[test]
fn innocent_words_stay() {
    assert!(rows(INNOCENTS).count() >= 100);
    let masked: Vec<_> = rows(INNOCENTS)
        .map(|row| (row, argv(arguments(row), false).join(" ¦ ")))
        .filter(|(row, out)| row != out)
        .collect();
    assert!(masked.is_empty(), "{masked:#?}");
}

/// The kernel keeps only the start of a long command line. Wherever it cuts, no start of a secret is visible.
#[test]
fn a_secret_cut_in_half_does_not_show() {
    // How many characters of a secret, after its prefix, are needed to recognise it.
    const BEGUN: usize = 10;
    let mut shown = Vec::new();
    let mut seed = 7;
    for row in rows(SECRETS).filter_map(|row| row.strip_prefix("! ")) {
        let (filled, secrets) = fill(row, &mut seed);
        for secret in &secrets {
            let begin = filled.find(secret.as_str()).unwrap();
            for length in [BEGUN, secret.len() * 3 / 4] {
                if length < BEGUN || length >= secret.len() {
                    continue;
                }
                let cut = &filled[..begin + length];
                let redacted = argv(arguments(cut), true).join(" ¦ ");
                if redacted.contains(&secret[..length]) {
                    shown.push(format!("{row} => {redacted}"));
                }
                let again = argv(arguments(&redacted), true).join(" ¦ ");
                assert_eq!(again, redacted, "twice is another thing than once: {row}");
            }
        }
    }
    // These cannot be recognised before they are complete: webhooks of unknown hosts, tokens of Discord and
    // Terraform.
    assert!(shown.len() <= 8, "{} shown: {}", shown.len(), shown.join("\n"));
}
