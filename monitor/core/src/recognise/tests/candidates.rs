//! The process names for the kernel side.

use crate::recognise::{Candidate, Rules};

fn find(rules: &Rules, comm: &str) -> Option<bool> {
    rules.candidates().into_iter().find(|c| c.comm == comm).map(|c| c.needs_wire)
}

#[test]
fn the_built_in_ones() {
    let rules = Rules::default();
    let words = "claude claude.exe .claude-wrapped .gemini-real opencode.exe bun.exe codex gemini hermes openclaw node nodejs bun deno \
        python3 python3.6 python3.12 python3.20 python3.13t";
    for always in words.split(' ') {
        assert_eq!(find(&rules, always), Some(false), "{always}");
    }
    let words = "sh bash dash env timeout npx npm uv uvx pnpm docker podman supergateway task-master-ai \
        desktop-command gbrain dab ruby java make sudo";
    for wired in words.split(' ') {
        assert_eq!(find(&rules, wired), Some(true), "{wired}");
    }
    for never in ["vim", "grep", "tmux", "systemd", "cat", "ls", "git", ""] {
        assert_eq!(find(&rules, never), None, "{never}");
    }
}

#[test]
fn they_fit_the_kernel_and_are_few() {
    let all = Rules::default().candidates();
    assert!(all.iter().all(|c| !c.comm.is_empty() && c.comm.len() <= 15 && !c.comm.contains('/')));
    assert!(all.windows(2).all(|pair| pair[0].comm < pair[1].comm), "sorted, each once");
    assert!(all.len() <= 448, "{} do not fit the kernel's map with room for the user's", all.len());
}

#[test]
fn those_of_the_configuration() {
    let rules = Rules::from_source(
        r#"
        [[agent]]
        name = "a"
        program = "my-very-long-agent-name"
        [[agent]]
        name = "b"
        program = "bot*"
        [[program]]
        kind = "server"
        name = "c"
        program = "/srv/*/serve-it"
        [[program]]
        kind = "server"
        name = "d"
        program = "@me/thing"
        [[exempt]]
        name = "e"
        program = "/opt/x/*"
        [[agent]]
        name = "f"
        program = "make"
        "#,
    )
    .unwrap();
    assert_eq!(find(&rules, "my-very-long-ag"), Some(false));
    assert_eq!(find(&rules, "serve-it"), Some(true));
    assert_eq!(find(&rules, "thing"), Some(true));
    assert_eq!(find(&rules, ".thing-wrapped"), Some(true));
    assert_eq!(find(&rules, "make"), Some(false), "an agent's name counts more than a launcher's");
    assert!(!rules.candidates().contains(&Candidate { comm: "bot*".into(), needs_wire: false }));
    assert_eq!(rules.candidates().len(), Rules::default().candidates().len() + 10);
}
