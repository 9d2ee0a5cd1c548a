//! Checks the host name in requests for metrics. Pure.
//!
//! A web page whose own name resolves to 127.0.0.1 could read the metrics (DNS rebinding); the browser then
//! sends the page's name. So on a loopback address, only names that always mean this host are accepted.

use std::net::{IpAddr, Ipv6Addr};

/// Names that always mean this host.
const LOCAL_NAMES: [&str; 3] = ["localhost", "ip6-localhost", "ip6-loopback"];

/// Whether a request with this `Host` (with or without a port) may be answered on a loopback address: it is
/// an IP address, or one of `LOCAL_NAMES`.
pub(super) fn is_local(host: &str) -> bool {
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
    LOCAL_NAMES.contains(&name.as_str()) || name.ends_with(".localhost")
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
            assert!(is_local(host), "{host}");
        }
        for host in ["[::1]:9477", "[::1]", "::1", "ip6-localhost:9477"] {
            assert!(is_local(host), "{host}");
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
            assert!(!is_local(host), "{host}");
        }
    }
}
