//! Classification and splitting of single words.

use super::MASK;

/// Whether a word after an option can be its value rather than another option.
pub(super) fn is_value(word: &str) -> bool {
    let is_option = word.starts_with("--") || word == "-" || (word.len() == 2 && word.starts_with('-'));
    !word.is_empty() && !is_option
}

/// Whether a word is a script or a scoped package, so that the option before it takes no value.
pub(super) fn is_program(word: &str) -> bool {
    const SCRIPTS: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".sh"];
    let is_script = SCRIPTS.iter().any(|end| word.ends_with(end));
    let is_package = word.starts_with('@') && word.contains('/');
    (is_script || is_package) && word.chars().all(|c| is_run(c) || matches!(c, '/' | '@' | '~' | '+'))
}

/// Whether the word is an HTTP authentication scheme, which is not a secret.
pub(super) fn is_scheme(word: &str) -> bool {
    const SCHEMES: [&str; 17] = [
        "bearer",
        "basic",
        "token",
        "digest",
        "bot",
        "apikey",
        "api-key",
        "apitoken",
        "key",
        "oauth",
        "negotiate",
        "ntlm",
        "ssws",
        "geniekey",
        "dpop",
        "sso-key",
        "zoho-oauthtoken",
    ];
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Whether a word is a path, by its start or its extension.
pub(super) fn is_path(word: &str) -> bool {
    const BEGIN: [&str; 18] = [
        "./",
        "../",
        "~/",
        "$HOME/",
        "/etc/",
        "/home/",
        "/root/",
        "/run/",
        "/var/",
        "/usr/",
        "/opt/",
        "/tmp/",
        "/mnt/",
        "/srv/",
        "/dev/",
        "/proc/",
        "/Users/",
        "/secrets/",
    ];
    const END: [&str; 11] =
        [".pem", ".key", ".crt", ".cer", ".json", ".txt", ".p12", ".pfx", ".pub", ".yaml", ".yml"];
    BEGIN.iter().any(|begin| word.starts_with(begin))
        || (END.iter().any(|end| word.ends_with(end)) && word.chars().all(|c| is_run(c) || c == '/'))
}

/// Masks a header's value: `Bearer abc` becomes `Bearer ***`, anything else `***`.
pub(super) fn mask_behind_scheme(value: &str, out: &mut String) {
    let (scheme, tail) = split_while(value, |c| c != ' ');
    if is_scheme(scheme) && !tail.is_empty() {
        out.push_str(scheme);
        out.push(' ');
    }
    mask_if_any(value, out);
}

/// Writes `user:password` as `user:***`. Returns whether it was one. `sure`: it cannot be a host and port.
pub(super) fn mask_password(text: &str, separator: char, sure: bool, out: &mut String) -> bool {
    let Some((user, password)) = text.split_once(separator) else { return false };
    let (value, close) = password.split_at(password.trim_end_matches(['"', '\'']).len());
    let other = value.starts_with('/') || value.bytes().all(|b| b.is_ascii_digit());
    if value.is_empty() || user.contains(char::is_whitespace) || (other && !sure) {
        return false;
    }
    if value.trim_start_matches(['"', '\'']) == MASK {
        out.push_str(text);
        return true;
    }
    out.push_str(user);
    out.push(separator);
    out.push_str(MASK);
    out.push_str(close);
    true
}

pub(super) fn mask_if_any(value: &str, out: &mut String) {
    if !value.is_empty() {
        out.push_str(MASK);
    }
}

/// The position of the closing `quote`, or of the backslash before it if the quote is escaped.
pub(super) fn find_close(text: &str, quote: char, escaped: bool) -> Option<usize> {
    let mut backslashes = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => backslashes += 1,
            _ if c == quote && escaped => return Some(at - backslashes),
            _ if c == quote && backslashes % 2 == 0 => return Some(at),
            _ => backslashes = 0,
        }
    }
    None
}

/// Whether the character can be part of a name: keys, options, hosts and tokens consist of these.
pub(super) const fn is_run(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Splits off the longest start whose characters all satisfy `wanted`.
pub(super) fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

/// Splits off the first character.
pub(super) fn split_first(text: &str) -> (&str, &str) {
    text.split_at(text.chars().next().map_or(0, char::len_utf8))
}

/// How far an `@` is searched; this keeps the time linear.
const LONGEST_PASSWORD: usize = 256;

/// Words before `:` that are not user names: `npm:package@1.0`.
const NO_USERS: &[&str] = &[
    "npm",
    "jsr",
    "file",
    "git",
    "github",
    "gitlab",
    "bitbucket",
    "gist",
    "mailto",
    "acct",
    "workspace",
    "link",
    "portal",
    "patch",
    "docker",
    "oci",
    "pkg",
    "pypi",
    "cargo",
    "conda",
    "catalog",
    "sip",
    "sips",
    "xmpp",
    "tel",
    "data",
    "urn",
    "http",
    "https",
    "ssh",
    "sha256",
    "sha512",
];

/// The length of the password at the start of `text`, which follows `user:`: `user:password@tcp(host)/db`,
/// `user:password@host:1`. `cut`: `text` ends because the kernel cut it.
pub(super) fn password_before_host(user: &str, text: &str, cut: bool) -> Option<usize> {
    if NO_USERS.iter().any(|other| user.eq_ignore_ascii_case(other)) || text.starts_with('/') {
        return None;
    }
    let end = text
        .char_indices()
        .find(|(at, c)| *at > LONGEST_PASSWORD || c.is_whitespace() || matches!(c, '"' | '\'' | '\\'));
    let whole = text.split_at(end.map_or(text.len(), |(at, _)| at)).0;
    let Some(at) = whole.match_indices('@').map(|(at, _)| at).rfind(|at| is_host(whole.split_at(at + 1).1))
    else {
        return (cut && end.is_none() && !text.is_empty() && !text.contains('@')).then_some(text.len());
    };
    (at > 0).then_some(at)
}

/// Whether `text` begins with a host: `tcp(`, a name with dots, an address, or a name and a port.
fn is_host(text: &str) -> bool {
    let (name, rest) = split_while(text, is_run);
    let port = || split_while(rest.strip_prefix(':').unwrap_or_default(), |c| c.is_ascii_digit());
    let has_port = (1..=5).contains(&port().0.len()) && !port().1.starts_with(is_run);
    let domain = name
        .rsplit_once('.')
        .is_some_and(|(_, last)| last.len() > 1 && last.bytes().all(|b| b.is_ascii_alphabetic()));
    let address = name.split('.').count() == 4 && name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    rest.starts_with('(') || name == "localhost" || (!name.is_empty() && has_port) || domain || address
}

/// Whether the word is `3306:3306`, which follows `-p` of a container client.
pub(super) fn is_ports(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once(':').is_some_and(|(outer, inner)| is_number(outer) && is_number(inner))
}

/// The end of the first line of an armoured private key without its last dashes; the end of `text` if there
/// is none.
pub(super) fn end_of_armour(text: &str) -> usize {
    const NAME: &str = "PRIVATE KEY";
    let begin = text.find("-----BEGIN");
    let name = begin.and_then(|begin| text.split_at(begin).1.find(NAME).map(|at| begin + at));
    name.map_or(text.len(), |at| at + NAME.len())
}
