//! Secrets in URLs: passwords, and secret paths (webhooks, keys of gateways).

use super::{MASK, shape, word::split_while};

/// The longest user name in an HTTP URL. A longer one is a token.
const LONGEST_USER: usize = 20;

/// Hosts, each with the path segment after which everything is a secret. If the segment is empty, the whole
/// path is secret.
const PATHS: &[(&str, &str)] = &[
    ("hooks.slack.com", "services"),
    ("hooks.slack.com", "workflows"),
    ("hooks.slack.com", "triggers"),
    ("discord.com", "webhooks"),
    ("discordapp.com", "webhooks"),
    ("webhook.office.com", "webhookb2"),
    ("outlook.office.com", "webhook"),
    ("outlook.office365.com", "webhook"),
    ("hooks.zapier.com", "catch"),
    ("hooks.zapier.com", "standard"),
    ("mcp.zapier.com", "s"),
    ("mcp.zapier.com", "u"),
    ("actions.zapier.com", "mcp"),
    ("make.com", "u"),
    ("maker.ifttt.com", "key"),
    ("events.pagerduty.com", "integration"),
    ("infura.io", "v3"),
    ("alchemy.com", "v2"),
    ("alchemyapi.io", "v2"),
    ("quiknode.pro", ""),
    ("rpc.ankr.com", "eth"),
    ("hc-ping.com", ""),
    ("webhook.site", ""),
    ("m.pipedream.net", ""),
    ("mcp.pipedream.net", ""),
    ("hooks.airtable.com", "v1"),
    ("open.feishu.cn", "hook"),
    ("open.larksuite.com", "hook"),
    ("integromat.com", ""),
    ("hook.eu1.make.com", ""),
    ("hook.eu2.make.com", ""),
    ("hook.us1.make.com", ""),
    ("hook.us2.make.com", ""),
];

/// Path segments after which an opaque word is a secret, on any host.
const HOOKS: &[&str] =
    &["webhook", "webhooks", "webhook-test", "webhookb2", "hook", "hooks", "token", "key", "secret"];

/// Path segments after which an opaque word is the name of a document.
const DOCUMENTS: &[&str] = &["d", "folders", "commit", "blob", "tree", "raw"];

/// Writes the start of `text`, the part of a URL after `scheme://`: user, host and path with their secrets
/// masked. Returns the rest of `text`. `cut`: `text` ends because the kernel cut it.
pub(super) fn mask<'a>(scheme: &str, text: &'a str, cut: bool, out: &mut String) -> &'a str {
    let rest = mask_userinfo(scheme, text, cut, out);
    let (at, rest) = split_while(rest, |c| c == '@');
    out.push_str(at);
    mask_path(rest, cut, out)
}

/// Whether `host` is known to have secrets in its paths.
pub(super) fn is_known(host: &str) -> bool {
    PATHS.iter().any(|(known, _)| is_below(host, known)) || host == "api.telegram.org"
}

/// Writes the host and the path at the start of `text`. Returns the rest.
pub(super) fn mask_path<'a>(text: &'a str, cut: bool, out: &mut String) -> &'a str {
    let (host, rest) =
        split_while(text, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '[' | ']'));
    let mut before = Some('/');
    let mut left = host;
    while !left.is_empty() {
        (left, before) = shape::mask(left, left, before, false, out);
    }
    let name = split_while(host, |c| c != ':').0;
    let secret_behind = |step: &str| PATHS.iter().any(|(known, at)| *at == step && is_below(name, known));
    let mut rest = rest;
    let mut step = "";
    while let Some(tail) = rest.strip_prefix('/') {
        out.push('/');
        if secret_behind(step) {
            let (secret, tail) = split_while(tail, |c| in_step(c) || c == '/');
            if !secret.is_empty() {
                out.push_str(MASK);
            }
            return tail;
        }
        let (next, tail) = split_while(tail, in_step);
        if next.starts_with("eyJ") && next.len() >= 16 {
            // `/` is one of the characters of Base64.
            out.push_str("eyJ");
            out.push_str(MASK);
            return split_while(tail, |c| in_step(c) || c == '/').1;
        }
        rest = mask_step(step, next, tail, cut && tail.is_empty(), out);
        step = next;
    }
    rest
}

/// Writes `next`, the path segment after `step`, and returns the rest.
fn mask_step<'a>(step: &str, next: &'a str, tail: &'a str, cut: bool, out: &mut String) -> &'a str {
    // Telegram: the id of a bot and its token.
    if let Some((bot, token)) = next.split_once(':')
        && bot.starts_with("bot")
        && !token.is_empty()
    {
        out.push_str(bot);
        out.push(':');
        out.push_str(MASK);
        return tail;
    }
    let is_hook = HOOKS.iter().any(|hook| step.eq_ignore_ascii_case(hook));
    let is_document = DOCUMENTS.contains(&step);
    let least = if is_hook || cut { 12 } else { 24 };
    if !is_document && (is_opaque(next, least) || (is_hook && next.len() >= 16 && has_digit(next))) {
        out.push_str(MASK);
        return tail;
    }
    let mut before = Some('/');
    let mut rest = next;
    while !rest.is_empty() {
        (rest, before) = shape::mask(rest, rest, before, cut, out);
    }
    tail
}

const fn in_step(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '-' | '_' | '.' | '~' | '%' | '!' | '$' | '*' | '+' | ':' | '@' | '=')
}

/// Whether `word` has `least` letters and digits in a row that mix capitals, small letters and digits.
fn is_opaque(word: &str, least: usize) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        part.len() >= least
            && has_digit(part)
            && part.bytes().any(|b| b.is_ascii_uppercase())
            && part.bytes().any(|b| b.is_ascii_lowercase())
    })
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit())
}

/// Whether `host` is `domain` or a subdomain of it.
fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.'))
}

/// Writes the user information at the start of `text` with its password masked. Returns the rest.
fn mask_userinfo<'a>(scheme: &str, text: &'a str, cut: bool, out: &mut String) -> &'a str {
    let Some(end) = end_of_userinfo(scheme, text, cut) else { return text };
    let (userinfo, tail) = text.split_at(end);
    let (user, password) = split_while(userinfo, |c| c != ':');
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    // `https://TOKEN@github.com`: without a password, the user name is the secret unless it is `git`.
    let is_token = web && ((password.is_empty() && user != "git") || user.len() >= LONGEST_USER);
    if is_token && !user.is_empty() {
        out.push_str(MASK);
    } else {
        let (mut rest, mut before) = (user, None);
        while !rest.is_empty() {
            (rest, before) = shape::mask(rest, rest, before, false, out);
        }
    }
    if !password.is_empty() {
        out.push(':');
        out.push_str(MASK);
    }
    tail
}

/// Where the user information ends: at the last `@` of the authority. A password with an unescaped `/` makes
/// the authority seem to end early; then the part after `:` is not a port.
fn end_of_userinfo(scheme: &str, text: &str, cut: bool) -> Option<usize> {
    let (authority, rest) = split_while(text, |c| {
        !(matches!(c, '/' | '?' | '#' | '"' | '\'' | '\\' | '<' | '>') || c == ';' && scheme == "sqlserver")
    });
    if let Some(end) = authority.rfind('@') {
        return Some(end);
    }
    if cut && rest.is_empty() {
        // The kernel cut the text before its `@`: a port cannot be told from a password.
        let has_password = authority.contains(':') && !authority.starts_with('[');
        let is_token = authority.len() >= LONGEST_USER && has_digit(authority) && !authority.contains('.');
        return (has_password || is_token).then_some(authority.len());
    }
    let (_, port) = authority.split_once(':')?;
    if port.bytes().all(|b| b.is_ascii_digit()) || authority.starts_with('[') || scheme == "sqlserver" {
        return None;
    }
    // Stops at the next URL, which keeps the time linear.
    let rest = rest.split("://").next().unwrap_or_default();
    rest.rfind('@').map(|end| authority.len() + end)
}
