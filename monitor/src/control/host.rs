//! By what name a scraper has reached us. Pure.
//!
//! A web page whose own name leads to 127.0.0.1 could read what is served there (DNS rebinding): the browser sends the page's
//! name. On an address of this host alone, only names that lead nowhere else are served.

use std::net::{IpAddr, Ipv6Addr};

/// Names of this host by which no other can be meant.
const OURS: [&str; 3] = ["localhost", "ip6-localhost", "ip6-loopback"];

/// Whether a request with this `Host`, port and all, may be answered on a loopback address: an address, or a name of OURS.
pub(super) fn is_ours(host: &str) -> bool {
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    if host.parse::<IpAddr>().is_ok() || name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    OURS.contains(&name.as_str()) || name.ends_with(".localhost")
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_host() {
        for host in
            ["localhost", "LocalHost:9477", "localhost.", "a.localhost:1", "127.0.0.1:9477", "192.0.2.1"]
        {
            assert!(is_ours(host), "{host}");
        }
        for host in ["[::1]:9477", "[::1]", "::1", "ip6-localhost:9477"] {
            assert!(is_ours(host), "{host}");
        }
    }

    #[test]
    fn names_that_somebody_else_has() {
        for host in [
            "rebind.example",
            "rebind.example:9477",
            "localhost.example",
            "notlocalhost",
            "127.0.0.1.example",
            "localhost:9477.example",
            "[::1].example",
            "[rebind.example]",
            "",
            ":9477",
            "a b",
        ] {
            assert!(!is_ours(host), "{host}");
        }
    }
}
