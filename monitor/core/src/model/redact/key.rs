//! Names that announce a secret: of variables, options, headers and query parameters.

use super::word::{is_path, split_while};

/// Parts of a name (in lower case, `-` and `.` as `_`) that make its value a secret.
const SECRET_PARTS: &[&str] = &[
    "token",
    "secret",
    "password",
    "pass_word",
    "passwd",
    "passphrase",
    "pass_phrase",
    "passcode",
    "sshpass",
    "api_key",
    "apikey",
    "credential",
    "creds",
    "mnemonic",
    "seed_phrase",
    "private_key",
    "privatekey",
    "access_key",
    "accesskey",
    "bearer",
    "sessionid",
    "sessid",
    "connect_sid",
];

/// Last words of a name that make its value a secret.
const SECRET_ENDS: &[&str] = &[
    "key",
    "pass",
    "pwd",
    "pw",
    "pat",
    "jwt",
    "psk",
    "otp",
    "totp",
    "cookie",
    "cookies",
    "signature",
    "sig",
    "sas",
    "hmac",
    "assertion",
    "passin",
    "passout",
    "passkey",
    "userpwd",
    "dbpass",
    "dbpwd",
];

/// Names of query parameters that carry a secret there and nowhere else.
const QUERY_NAMES: &[&str] = &["code", "appid", "ticket", "k"];

/// The least length of a secret in such a parameter. A code of a few letters is a state or a language.
const QUERY_LEAST: usize = 16;

/// Last words of a name whose value is only about a secret: where it is stored, how it is used.
const ABOUT_ENDS: &[&str] = &[
    "file",
    "files",
    "path",
    "paths",
    "dir",
    "url",
    "uri",
    "type",
    "mode",
    "method",
    "provider",
    "host",
    "port",
    "endpoint",
    "ttl",
    "timeout",
    "expiry",
    "stdin",
    "limit",
    "budget",
    "count",
    "name",
    "names",
    "scope",
    "scopes",
    "domain",
    "issuer",
    "audience",
    "realm",
    "tenant",
    "callback",
    "redirect",
    "region",
    "version",
    "enabled",
    "disabled",
    "required",
    "header",
    "headers",
    "flow",
    "strategy",
    "server",
    "size",
    "length",
    "len",
    "interval",
    "policy",
    "manager",
    "store",
    "backend",
    "format",
    "algorithm",
    "alg",
    "env",
    "prefix",
    "suffix",
    "minute",
    "jar",
    "browser",
    "parallelism",
    "sock",
    "socket",
    "days",
    "hours",
    "seconds",
    "placeholder",
    "rotation",
    "pattern",
    "regex",
    "field",
    "column",
];

/// Words before `key` that make it no secret: a sort key, a foreign key.
const OTHER_KEYS: &[&str] = &[
    "public",
    "pub",
    "publishable",
    "foreign",
    "partition",
    "sort",
    "cache",
    "row",
    "hot",
    "shortcut",
    "map",
    "range",
    "group",
    "hash",
    "index",
    "object",
    "routing",
    "dedup",
    "translation",
    "i18n",
    "registry",
];

/// Last words of an option that takes a secret as its next argument.
const OPTION_ENDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "phrase",
    "passcode",
    "apikey",
    "apitoken",
    "key",
    "keys",
    "credential",
    "credentials",
    "creds",
    "auth",
    "authorization",
    "bearer",
    "mnemonic",
    "value",
    "jwt",
    "pat",
    "pass",
    "pwd",
    "pw",
    "psk",
    "otp",
    "totp",
    "cookie",
    "cookies",
    "signature",
    "sig",
    "sas",
    "passin",
    "passout",
    "sessionid",
];

/// First words of options that are switches and take no value.
const SWITCHES: &[&str] =
    &["no", "use", "enable", "disable", "skip", "require", "allow", "with", "without", "show", "print"];

/// Headers that carry a secret, even if no option announces a header.
const HEADERS: &[&str] = &[
    "authorization",
    "authentication",
    "cookie",
    "set-cookie",
    "api-key",
    "apikey",
    "private-token",
    "job-token",
    "deploy-token",
    "circle-token",
    "dd-api-key",
    "dd-application-key",
    "xi-api-key",
    "ocp-apim-subscription-key",
    "cf-access-client-secret",
    "cf-access-token",
    "plaid-secret",
    "_authtoken",
    "_password",
    "_auth",
];

/// Whether the value of `name` is a secret, in `name=value`.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    let last = last_word(name);
    if is_any(last, ABOUT_ENDS) {
        return false;
    }
    if is_any(last, &["tokens"]) && is_any(first_word(name), &["max", "min", "num", "total"]) {
        return false;
    }
    let plain = name.to_ascii_lowercase().replace(['-', '.'], "_");
    if is_any(last, &["key"]) && has_other_key(&plain) {
        return false;
    }
    is_any(last, SECRET_ENDS)
        || SECRET_PARTS.iter().any(|part| speaks_of(&plain, part))
        || speaks_of_auth(&plain) && !is_any(last, &["id"])
        || ends_in_pass(&plain)
}

/// Whether `value` is a secret if `name` is a query parameter of a URL.
pub(super) fn is_secret_in_query(name: &str, value: &str) -> bool {
    is_any(name, QUERY_NAMES) && split_while(value, |c| !matches!(c, '&' | '#')).0.len() >= QUERY_LEAST
}

/// Whether `value` is not a secret although `name` announces one: it is one of a few fixed words, refers to
/// where the secret is stored, or `name` has another meaning.
pub(super) fn is_plain(name: &str, value: &str) -> bool {
    let name = name.trim_start_matches('-');
    let last = last_word(name);
    is_any(value, &["true", "false", "none", "null", "undefined", "required", "optional"])
        || is_reference(value)
        // A number of tokens.
        || (is_any(last, &["tokens"]) && is_number(value))
        // The shell's working directory.
        || (matches!(name, "PWD" | "OLDPWD") && value.starts_with(['/', '~', '$']))
        // Keys, credentials and cookies often lie in a file.
        || (is_any(last, &["key", "keys", "credential", "credentials", "creds", "cookie", "cookies", "auth"]) && is_path(value))
        // The column of a table, or `docker build --secret id=..`.
        || (is_any(last, &["key"]) && ["primary", "PRIMARY", "Primary"].iter().any(|p| name.contains(p)) && is_identifier(value))
        || (is_any(last, &["secret"]) && ["id=", "type=", "source="].iter().any(|p| value.starts_with(p)))
}

/// Whether the argument after the option `word` is a secret.
pub(super) fn takes_secret(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    // Options of one letter mean something else in every program.
    name.len() > 1
        && is_secret(name)
        && (is_any(last_word(name), OPTION_ENDS) || ends_in_pass(&name.to_ascii_lowercase()))
        && !is_any(first_word(name), SWITCHES)
}

/// Whether `name` is an HTTP header with a secret, so that `name:value` is a pair.
pub(super) fn is_header(name: &str) -> bool {
    let has_prefix = |prefix: &str| name.get(..prefix.len()).is_some_and(|p| p.eq_ignore_ascii_case(prefix));
    is_any(name, HEADERS) || has_prefix("x-") || has_prefix("proxy-auth")
}

/// Whether `name` is a header whose value is a list of secrets.
pub(super) fn is_cookie(name: &str) -> bool {
    is_any(name, &["cookie", "set-cookie"])
}

/// `token`, but not `tokenizer`; `secret`, but not `secretary`.
fn speaks_of(plain: &str, part: &str) -> bool {
    plain.match_indices(part).any(|(at, found)| {
        let tail = plain.split_at(at + found.len()).1;
        !["iz", "is", "ary"].iter().any(|other| tail.starts_with(other))
    })
}

/// `auth`, but not `author` and `authority`.
fn speaks_of_auth(plain: &str) -> bool {
    plain.match_indices("auth").any(|(at, found)| {
        let tail = plain.split_at(at + found.len()).1;
        !tail.starts_with("or") || tail.starts_with("oriz") || tail.starts_with("oris")
    })
}

/// `DBPASS` and `smtp_pass`, but not `bypass` and `compass`.
fn ends_in_pass(plain: &str) -> bool {
    const OTHERS: [&str; 9] = ["by", "com", "sur", "over", "under", "tres", "multi", "low", "high"];
    plain
        .strip_suffix("pass")
        .is_some_and(|head| !head.is_empty() && !OTHERS.iter().any(|other| head.ends_with(other)))
}

fn has_other_key(plain: &str) -> bool {
    let head = plain.strip_suffix("key").unwrap_or(plain).trim_end_matches('_');
    OTHER_KEYS.iter().any(|other| head.rsplit('_').next() == Some(*other))
}

/// Whether the value only refers to a secret: `${TOKEN}`, `$TOKEN`, `$(cat /run/token)`, `{{token}}`.
fn is_reference(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    // The command in `$(cat file)` may consist of several words.
    if value.starts_with("$(") {
        return true;
    }
    let enclosed = [("${", "}"), ("{{", "}}"), ("<", ">")].iter().any(|(open, close)| {
        value
            .strip_prefix(open)
            .is_some_and(|rest| rest.find(close).is_some_and(|at| at + close.len() == rest.len()))
    });
    let variable = value
        .strip_prefix('$')
        .is_some_and(|name| name.len() > 2 && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'));
    enclosed || variable
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit())
}

fn is_identifier(value: &str) -> bool {
    value.len() <= 24 && value.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

fn is_any(word: &str, list: &[&str]) -> bool {
    list.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// The last word of a name: `tokenFile`, `TOKEN_FILE` and `token-file` end in `file`.
fn last_word(name: &str) -> &str {
    let mut upper_seen = false;
    for (at, c) in name.char_indices().rev() {
        // A capital begins a word only if the character before it is not a capital.
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
