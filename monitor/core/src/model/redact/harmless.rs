//! Texts that are harmless by their shape: names, numbers, paths, packages and addresses. What a person has named can
//! be spoken; what a machine has drawn cannot.

use core::net::IpAddr;

use super::MASK;

/// Extensions of programs and of files that programs are started with.
#[rustfmt::skip]
const EXTENSIONS: &[&str] = &[
    "cjs", "conf", "cts", "db", "dll", "env", "exe", "ini", "jar", "js", "json", "jsx", "key", "log", "lua", "md", "mjs",
    "mts", "pem", "php", "pid", "pl", "py", "pyz", "rb", "sh", "sock", "sqlite", "toml", "ts", "tsx", "txt", "yaml", "yml",
];

/// Whether a person can have given this name: spoken parts and short numbers.
pub(super) fn is_name(text: &str) -> bool {
    let mut parts = text.split(|c: char| "-_.+~@:,".contains(c));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    !text.is_empty() && text.len() <= 64 && digits <= 8 && parts.all(is_part)
}

/// Words with a number in them.
const NUMBERED: &[&str] = &["1mcp", "21st", "a2a", "e2b", "e2e", "i18n", "k8s", "l10n", "n8n", "p2p"];

fn is_part(part: &str) -> bool {
    if NUMBERED.contains(&part) {
        return true;
    }
    let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = part.len() - letters.len();
    letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (letters.is_empty() || digits <= 1 || (letters.len() <= 3 && digits <= 3))
        && is_spoken(letters)
}

/// Whether letters are a word or two. A short one may be an abbreviation.
fn is_spoken(letters: &str) -> bool {
    let letters = ["mcp", "MCP"].iter().find_map(|end| letters.strip_suffix(end)).unwrap_or(letters);
    let (mut consonants, mut most) = (0, 0);
    for byte in letters.bytes() {
        consonants = if b"aeiouyAEIOUY".contains(&byte) { 0 } else { consonants + 1 };
        most = consonants.max(most);
    }
    let capitals = letters.bytes().filter(u8::is_ascii_uppercase).count();
    let is_cased = capitals * 3 <= letters.len() || (capitals == letters.len() && capitals <= 12);
    let is_short = letters.len() <= 5 && (capitals <= 2 || is_cased);
    is_short || (letters.len() <= 22 && most <= 4 && is_cased)
}

/// Numbers, with units and parts: `8080`, `0.5`, `10s`, `80:80`, `127.0.0.1:3000`, `localhost:80`.
pub(super) fn is_number(text: &str, most: usize) -> bool {
    const UNITS: &[&str] = &["", "%", "G", "K", "M", "b", "d", "g", "h", "k", "m", "ms", "s"];
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "0"));
    let is_port = port.parse::<u16>().is_ok();
    let host = host.trim_matches(['[', ']']);
    if is_port && (host.parse::<IpAddr>().is_ok() || host == "localhost") {
        return true;
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".:,".contains(c));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (1..=most).contains(&digits) && UNITS.contains(&unit)
}

/// Where something is: an address or a path. `None` if the text is none.
pub(super) fn place(text: &str) -> Option<String> {
    url(text).or_else(|| path(text))
}

/// A path, component by component.
fn path(text: &str) -> Option<String> {
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| text.starts_with(root));
    let of_program = text.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
        && text.rsplit('/').next().is_some_and(is_name);
    (rooted || of_program || matches!(text, "." | "..")).then(|| components(text))
}

/// A path without the parts that no person has named.
pub fn components(text: &str) -> String {
    let shown = |part| if is_name(part) || str::is_empty(part) { part } else { MASK };
    text.split('/').map(shown).collect::<Vec<_>>().join("/")
}

/// A program, package, module, image or container: `@scope/name@1.2`, `name[extra]==1.2`, `host/image:tag`.
pub(super) fn package(text: &str) -> Option<String> {
    let registries = ["npm:", "jsr:", "github:", "gitlab:", "bitbucket:"];
    let of_host =
        || text.split_once('/').map(|(host, _)| host).filter(|host| host.contains(':') && is_host(host));
    let registry = registries.into_iter().find(|registry| text.starts_with(registry)).or_else(of_host);
    let (registry, text) = text.split_at_checked(registry.map_or(0, str::len))?;
    let end =
        text.char_indices().skip(1).find(|(_, c)| "@:=<>[".contains(*c)).map_or(text.len(), |(at, _)| at);
    let (name, version) = text.split_at_checked(end)?;
    let is_whole = name.strip_prefix('@').unwrap_or(name);
    let is_whole = is_whole.strip_prefix('/').unwrap_or(is_whole).split('/').all(is_name);
    let harmless = version.is_empty()
        || version.strip_prefix("@sha256:").is_some_and(is_digest)
        || is_name(version.trim_matches(['=', '<', '>', '[', ']', '@', ':']));
    let sign = version.len() - version.trim_start_matches(['=', '<', '>', '[', '@', ':']).len();
    match (is_whole, harmless) {
        (true, true) => Some(format!("{registry}{text}")),
        (true, false) => Some(format!("{registry}{name}{}{MASK}", version.get(..sign)?)),
        (false, _) => None,
    }
}

/// Whether an engine lets a container have this name.
pub(super) fn is_container(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The digest of an image, or the number that an engine gave to a container.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A name or number of a host, perhaps with a port.
fn is_host(text: &str) -> bool {
    let named = |(name, port): (&str, &str)| is_name(name) && port.parse::<u16>().is_ok();
    is_number(text, 0) || text.rsplit_once(':').map_or(is_name(text), named)
}

/// An address without what may be secret in it: user, unspoken parts of the path, query and fragment.
fn url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    if !is_name(scheme) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, query) = rest.split_at_checked(end)?;
    let (authority, path) = place.split_at_checked(place.find('/').unwrap_or(place.len()))?;
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(_, host)| ("***@", host));
    // A password may have a slash in it.
    let is_place = is_host(host) && !(host.contains(':') && path.contains('@'));
    let is_version = |part: &str| !part.contains('@') || is_name(part);
    if !is_place || !path.split('/').all(is_version) || query.contains('@') {
        return Some(format!("{scheme}://{MASK}"));
    }
    let query = query.get(..1).map_or_else(String::new, |sign| format!("{sign}{MASK}"));
    Some(format!("{scheme}://{user}{host}{}{query}", components(path)))
}
