//! Names that announce a secret: of variables, options and headers.

use super::word::split_while;

/// Parts of a name (in lower case, `-` and `.` as `_`) that make its value a secret.
const SECRET_PARTS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "apikey",
    "credential",
    "private_key",
    "privatekey",
    "access_key",
    "accesskey",
    "bearer",
];

/// Last words of a name that make its value a secret.
const SECRET_ENDS: &[&str] = &["key", "pass", "pwd", "pat", "jwt"];

/// Last words of a name that make its value something about a secret: where it lies, how it is used.
const ABOUT_ENDS: &[&str] = &[
    "file", "path", "dir", "url", "uri", "type", "mode", "method", "provider", "host", "port", "endpoint",
    "ttl", "timeout", "expiry", "stdin", "limit", "budget", "count",
];

/// Last words of an option that takes a secret as its next argument.
const OPTION_ENDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "key",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
    "jwt",
    "pat",
    "pass",
    "pwd",
];

/// First words of options that switch something and take no value.
const SWITCHES: &[&str] =
    &["no", "use", "enable", "disable", "skip", "require", "allow", "with", "without", "show", "print"];

/// Whether the value of `name` is a secret, in `name=value`.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    let last = last_word(name);
    if matches!(name, "PWD" | "OLDPWD") || is_any(last, ABOUT_ENDS) {
        return false;
    }
    if is_any(last, &["tokens"]) && is_any(first_word(name), &["max", "min", "num", "total"]) {
        return false;
    }
    let plain = name.to_ascii_lowercase().replace(['-', '.'], "_");
    is_any(last, SECRET_ENDS)
        || SECRET_PARTS.iter().any(|part| plain.contains(part))
        || speaks_of_auth(&plain)
}

/// Whether the argument after the option `word` is a secret.
pub(super) fn takes_secret(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    // Options of one letter mean something else to every program.
    name.len() > 1
        && is_secret(name)
        && is_any(last_word(name), OPTION_ENDS)
        && !is_any(first_word(name), SWITCHES)
}

/// Whether `name` is that of an HTTP header with a secret, so that `name:value` is a pair.
pub(super) fn is_header(name: &str) -> bool {
    let has_prefix = |prefix: &str| name.get(..prefix.len()).is_some_and(|p| p.eq_ignore_ascii_case(prefix));
    name.eq_ignore_ascii_case("authorization") || has_prefix("x-") || has_prefix("proxy-auth")
}

/// `auth`, but not `author` and `authority`.
fn speaks_of_auth(plain: &str) -> bool {
    plain.match_indices("auth").any(|(at, found)| {
        let tail = plain.split_at(at + found.len()).1;
        !tail.starts_with("or") || tail.starts_with("oriz") || tail.starts_with("oris")
    })
}

fn is_any(word: &str, list: &[&str]) -> bool {
    list.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// `tokenFile`, `TOKEN_FILE` and `token-file` end in `file`.
fn last_word(name: &str) -> &str {
    let mut upper_seen = false;
    for (at, c) in name.char_indices().rev() {
        // A capital begins a word only where none precedes it.
        if matches!(c, '-' | '_' | '.') || (upper_seen && !c.is_ascii_uppercase()) {
            return name.split_at(at + c.len_utf8()).1;
        }
        upper_seen = c.is_ascii_uppercase();
    }
    name
}

fn first_word(name: &str) -> &str {
    split_while(name, |c| !matches!(c, '-' | '_' | '.')).0
}
