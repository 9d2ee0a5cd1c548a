//! The kinds of rules that recognise servers.

/// How a server was recognised that this rule knows, as one of four words: by its `name`, by its `arguments`, by the
/// `protocol`, or by a rule of the configuration (`config`).
pub fn recognised_by(rule: &str) -> &'static str {
    match rule {
        "protocol" => "protocol",
        "mcp-arguments" => "arguments",
        "npm-mcp" | "python-mcp" | "module-mcp" | "package-mcp" | "script-mcp" | "project-mcp"
        | "program-mcp" | "image-mcp" | "known-mcp" => "name",
        _ => "config",
    }
}

#[cfg(test)]
mod tests {
    use super::recognised_by;
    use crate::{
        model::Image,
        recognise::{Role, Rules},
    };

    fn by(argv: &[&str]) -> &'static str {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let image = Image { exe: argv[0].clone(), argv, argv_truncated: false };
        match Rules::default().role(&image) {
            Role::Server { rule, .. } => recognised_by(&rule),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_built_in_rule_has_its_kind() {
        for argv in [
            &["npx", "@playwright/mcp"][..],
            &["python3", "/v/site-packages/mcp_server_git/__main__.py"],
            &["python3", "-m", "mcp_server_git"],
            &["uvx", "mcp-server-time"],
            &["node", "mcp-server.js"],
            &["node", "/x/weather-mcp/dist/index.js"],
            &["/usr/bin/mcp-grafana"],
            &["docker", "run", "-i", "mcp/fetch"],
            &["task-master-ai"],
        ] {
            assert_eq!(by(argv), "name", "{argv:?}");
        }
        assert_eq!(by(&["gopls", "mcp"]), "arguments");
        assert_eq!(recognised_by("protocol"), "protocol");
        assert_eq!(recognised_by("weather"), "config");
    }
}
