//! Recognises, by its command line, a program that was told to serve others over the network.

use crate::model::Image;

/// The transports of the protocol that are no standard streams, as options call them.
#[rustfmt::skip]
const TRANSPORTS: &[&str] = &[
    "http", "http-stream", "http_stream", "httpstream", "shttp", "sse", "streamable", "streamable-http", "streamable_http",
    "streamablehttp", "websocket", "ws",
];

/// Whether the command line names a transport other than the standard streams, or a port: `--transport sse`, `--http`,
/// `streamableHttp`, `--port 8931`, `-p 8931`. Then somebody knows where to find it. A command line that was cut may.
///
/// A port may be that of a database, and a transport may be that of the server at its other side. So this alone proves
/// nothing; it matters only for a program that listens.
pub fn is_told_to_serve(image: &Image) -> bool {
    let arguments = image.argv.get(1..).unwrap_or_default();
    let is_number = |word: &String| word.parse::<u16>().is_ok();
    let short = || arguments.windows(2).any(|pair| matches!(pair, [p, port] if p == "-p" && is_number(port)));
    image.argv_truncated || arguments.iter().any(|word| names_service(word)) || short()
}

/// Whether an entry of an environment names such a transport: `MCP_TRANSPORT=streamable-http`, `TRANSPORT_TYPE=sse`.
pub fn entry_names_service(entry: &[u8]) -> bool {
    let entry = std::str::from_utf8(entry).ok().and_then(|entry| entry.split_once('='));
    entry.is_some_and(|(name, value)| name.to_ascii_uppercase().contains("TRANSPORT") && is_transport(value))
}

fn is_transport(name: &str) -> bool {
    TRANSPORTS.contains(&name.to_ascii_lowercase().as_str())
}

fn names_service(word: &str) -> bool {
    let Some(option) = word.strip_prefix('-') else { return is_transport(word) };
    let (name, value) = option.trim_start_matches('-').split_once('=').unwrap_or((option, ""));
    let name = name.trim_start_matches('-');
    let is_port = ["port", "PORT"].contains(&name)
        || ["-port", "_port", "Port", "_PORT"].iter().any(|end| name.ends_with(end));
    is_port || is_transport(name) || is_transport(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(line: &str) -> Image {
        Image { argv: line.split_whitespace().map(str::to_owned).collect(), ..Image::default() }
    }

    #[test]
    fn what_was_told_to_serve_by_its_environment() {
        for (entry, is_told) in [
            ("MCP_TRANSPORT=streamable-http", true),
            ("TRANSPORT=SSE", true),
            ("FASTMCP_TRANSPORT_TYPE=http", true),
            ("MCP_TRANSPORT=stdio", false),
            ("TRANSPORT=", false),
            ("PORT=8000", false),
            ("LANG=http", false),
            ("TRANSPORT", false),
        ] {
            assert_eq!(entry_names_service(entry.as_bytes()), is_told, "{entry}");
        }
        assert!(!entry_names_service(b"TRANSPORT=\xff"));
    }

    #[test]
    fn what_was_told_to_serve() {
        for line in [
            "node /usr/bin/mcp-server-playwright --port 8931",
            "npx -y @playwright/mcp@latest --port=8931",
            "node server-everything/dist/index.js streamableHttp",
            "node server-everything/dist/index.js sse",
            "python3 /venv/bin/fastmcp run server.py --transport http",
            "fastmcp run server.py -t sse",
            "python3 -m my_mcp_server --transport=streamable-http",
            "supergateway --stdio x --outputTransport streamableHttp",
            "mcp-proxy --sse-port 8000 -- npx x",
            "toolbox --http",
            "server --httpPort 3000",
            "server -p 3000",
        ] {
            assert!(is_told_to_serve(&image(line)), "{line}");
        }
        let cut = Image { argv_truncated: true, ..image("docker run") };
        assert!(is_told_to_serve(&cut));
    }

    #[test]
    fn what_was_not() {
        for line in [
            "",
            "http",
            "npx -y @modelcontextprotocol/server-filesystem /home/me/port",
            "node server-everything/dist/index.js stdio",
            "mcp-server-x --transport stdio",
            "mcp-remote https://example.com/sse 3334 --transport http-only",
            "server --import x --export y --support z --report",
            "server -p me",
        ] {
            assert!(!is_told_to_serve(&image(line)), "{line}");
        }
    }
}
