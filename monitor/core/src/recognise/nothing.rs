//! Why a process is no server, for a person who asks. What a process is, is decided elsewhere; this names the reason.

use super::{Role, Rules};
use crate::model::{Image, NoServer, Nothing, Stdio};

/// What is known of a process that is no server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Standard input and output; absent if they could not be read.
    pub streams: Option<[Stdio; 2]>,
    /// Whether it was started inside a multiplexer or an exempt program.
    pub protected: bool,
    pub made_by_shell: bool,
}

impl Rules {
    pub fn why_nothing(&self, image: &Image, known: Known) -> Nothing {
        let known_as = self.role(image);
        let rule = match &known_as {
            Role::Server { rule, .. } | Role::Agent { name: rule } | Role::Exempt { rule } => {
                Some(rule.clone())
            }
            _ => None,
        };
        let [stdin, stdout] = known.streams.unwrap_or_default();
        let has_wires = known.streams.is_some_and(|[stdin, stdout]| Stdio::are_wires(stdin, stdout));
        let reason = match known_as {
            _ if image.exe.is_empty() && image.argv.is_empty() => NoServer::Unread,
            Role::Multiplexer => NoServer::Multiplexer,
            Role::Exempt { .. } => NoServer::Exempt,
            Role::ServiceManager => NoServer::ServiceManager,
            Role::Agent { .. } => NoServer::AgentNotFollowed,
            Role::Shell => NoServer::Shell,
            Role::Launcher => NoServer::Launcher,
            _ if known.protected => NoServer::Protected,
            _ if known.streams.is_none() => NoServer::Unread,
            Role::Server { .. } if has_wires => NoServer::NotFollowed,
            Role::Server { .. } => NoServer::NoWire,
            Role::Other { ref name } if looks_like_a_server(name, image) => NoServer::NearMiss,
            Role::Other { .. } if has_wires && known.made_by_shell => NoServer::ShellsJob,
            Role::Other { .. } if has_wires => NoServer::Silent,
            Role::Other { .. } => NoServer::Unrelated,
        };
        Nothing { reason, rule, streams: [stdin, stdout] }
    }
}

/// Whether the program has `mcp` in its name, or is given it as a word of its first arguments.
fn looks_like_a_server(name: &str, image: &Image) -> bool {
    let has = |text: &str| text.to_ascii_lowercase().contains("mcp");
    let base = |text: &str| has(text.rsplit('/').next().unwrap_or(text));
    has(name) || image.argv.iter().take(3).any(|one| base(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRES: Option<[Stdio; 2]> = Some([Stdio::Pipe(1), Stdio::Pipe(2)]);
    const TERMINAL: Option<[Stdio; 2]> = Some([Stdio::Terminal; 2]);

    fn why(argv: &[&str], known: Known) -> NoServer {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let exe = argv.first().cloned().unwrap_or_default();
        Rules::default().why_nothing(&Image { exe, argv, argv_truncated: false }, known).reason
    }

    #[test]
    fn each_process_that_is_no_server_has_its_reason() {
        let on = |streams| Known { streams, ..Known::default() };
        let table = [
            (&["mcp-server-git"][..], on(TERMINAL), NoServer::NoWire),
            (&["mcp-server-git"], on(Some([Stdio::Pipe(1), Stdio::File])), NoServer::NoWire),
            (&["mcp-server-git"], on(WIRES), NoServer::NotFollowed),
            (&["mcp-server-git"], on(None), NoServer::Unread),
            (&["mcp-server-git"], Known { protected: true, ..on(WIRES) }, NoServer::Protected),
            (&["/bin/bash"], on(TERMINAL), NoServer::Shell),
            (&["npx", "cowsay"], on(WIRES), NoServer::Launcher),
            (&["/usr/bin/tmux"], on(TERMINAL), NoServer::Multiplexer),
            (&["/usr/bin/conmon"], on(WIRES), NoServer::Exempt),
            (&["/usr/lib/systemd/systemd"], on(TERMINAL), NoServer::ServiceManager),
            (&["/usr/bin/claude"], on(TERMINAL), NoServer::AgentNotFollowed),
            (&["/opt/mymcpthing"], on(WIRES), NoServer::NearMiss),
            (&["/usr/bin/jq", "."], Known { made_by_shell: true, ..on(WIRES) }, NoServer::ShellsJob),
            (&["/usr/bin/gopls"], on(WIRES), NoServer::Silent),
            (&["/usr/bin/sleep", "60"], on(TERMINAL), NoServer::Unrelated),
            (&[], on(WIRES), NoServer::Unread),
        ];
        for (argv, known, expected) in table {
            assert_eq!(why(argv, known), expected, "{argv:?} {known:?}");
        }
    }
}
