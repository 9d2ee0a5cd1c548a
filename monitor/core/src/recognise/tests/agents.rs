//! Agents, their servers and their management commands.

use super::check;

#[test]
fn agents() {
    check(
        "
        claude => agent claude
        claude -p 'fix mcp-server-foo' --output-format stream-json => agent claude
        claude --mcp-config /x/mcp.json --strict-mcp-config => agent claude
        claude --resume => agent claude
        claude 'npx foo-mcp is broken' => agent claude
        exe: /home/u/.local/share/claude/versions/1.2.3 claude => agent claude
        exe: /home/u/.local/share/claude/versions/2.1.34 /home/u/.local/share/claude/versions/2.1.34 --agent-id x => agent claude
        exe: /usr/bin/node claude => agent claude
        node /usr/local/bin/claude -p x => agent claude
        node --max-old-space-size=8192 /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js --ide => agent claude
        node /x/node_modules/@anthropic-ai/claude-agent-sdk/cli.js --output-format stream-json => agent claude
        /v/site-packages/claude_agent_sdk/_bundled/claude --print => agent claude
        /h/.vscode/extensions/anthropic.claude-code-2.1.3/resources/native-binary/claude => agent claude
        npx -y @anthropic-ai/claude-code => agent claude
        npx @zed-industries/claude-code-acp => agent claude
        codex -c model=o3 app-server => agent codex
        node /usr/bin/codex exec x => agent codex
        /usr/lib/node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/codex/codex exec x => agent codex
        npx -y @openai/codex@latest => agent codex
        node /usr/bin/gemini => agent gemini
        node --no-warnings=DEP0040 --max-old-space-size=7000 /usr/local/bin/gemini -p x => agent gemini
        node /x/node_modules/@google/gemini-cli/bundle/gemini.js => agent gemini
        node /x/node_modules/@google/gemini-cli/dist/index.js => agent gemini
        node /h/src/gemini-cli/bundle/gemini.js => agent gemini
        opencode serve => agent opencode
        /x/node_modules/opencode-linux-x64/bin/opencode run x => agent opencode
        node /usr/bin/qwen -p x => agent qwen
        goose session => agent goose
        goosed agent => agent goose
        hermes gateway run => agent hermes
        hermes_cli gateway run => agent hermes
        python -m hermes_cli gateway run => agent hermes
        /v/bin/python -m hermes_cli.main gateway run --replace => agent hermes
        /v/bin/python /v/bin/hermes chat => agent hermes
        /v/bin/python3 /v/bin/hermes => agent hermes
        openclaw gateway => agent openclaw
        openclaw gateway run --port 18789 => agent openclaw
        node /usr/lib/node_modules/openclaw/dist/index.js gateway --port 18789 => agent openclaw
        node /usr/lib/node_modules/openclaw/openclaw.mjs gateway => agent openclaw
        exe: /usr/bin/node openclaw-gateway => agent openclaw
        exe: /h/.local/share/cursor-agent/versions/2025.09.18-a/node /h/.local/bin/cursor-agent --use-system-ca /h/.local/share/cursor-agent/versions/2025.09.18-a/index.js -p x => agent cursor-agent
        /v/bin/python /v/bin/aider --model x => agent aider
        uvx --from aider-chat aider => agent aider
        python -m aider => agent aider
        node /usr/bin/cline => agent cline
        node /usr/bin/amp => agent amp
        crush => agent crush
        node /usr/bin/copilot -p x => agent copilot
        droid exec => agent droid
        # native programs of npm's packages, on Linux too
        /x/node_modules/@anthropic-ai/claude-code/bin/claude.exe --output-format stream-json => agent claude
        /usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe mcp serve => server claude by mcp-arguments
        claude.exe => agent claude
        /nix/store/a-claude-code-2/bin/.claude-wrapped -p x => agent claude
        exe: /nix/store/n/bin/node node /nix/store/g-gemini-cli/bin/.gemini-wrapped -p x => agent gemini
        node /gnu/store/c/bin/.codex-real exec x => agent codex
        node /nix/store/g-gemini-cli/bin/.gemini-wrapped mcp list => other gemini
        node /x/bin/gemini-wrapped => other gemini-wrapped
        /x/node_modules/@anthropic-ai/claude-code-linux-x64/claude -p x => agent claude
        /x/node_modules/@anthropic-ai/claude-agent-sdk-linux-x64-musl/claude --input-format stream-json => agent claude
        /h/.vscode/extensions/anthropic.claude-code-2.1.330-linux-x64/resources/native-binary/claude => agent claude
        /x/node_modules/opencode-ai/bin/opencode.exe serve => agent opencode
        /x/node_modules/opencode-linux-x64-baseline/bin/opencode => agent opencode
        /x/node_modules/@sourcegraph/amp/node_modules/@ampcode/cli/bin/amp.exe => agent amp
        npx -y @sourcegraph/amp => agent amp
        # scripts of their packages
        node /x/node_modules/@openai/codex/bin/codex.js exec x => agent codex
        /x/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex/codex app-server => agent codex
        node /x/node_modules/@qwen-code/qwen-code/cli-entry.js -p x => agent qwen
        node /x/node_modules/@github/copilot/npm-loader.js -p x => agent copilot
        node /x/node_modules/@github/copilot/index.js --acp => agent copilot
        /x/node_modules/@github/copilot-linux-x64/copilot --server --stdio => agent copilot
        node /x/node_modules/@augmentcode/auggie/augment.mjs => agent auggie
        node /x/node_modules/@charmland/crush/run-crush.js => agent crush
        node /x/node_modules/cline/bin/cline => agent cline
        node /x/node_modules/@kilocode/cli/bin/kilo => agent kilocode
        /x/node_modules/@kilocode/cli-linux-x64/bin/kilo run x => agent kilocode
        node /x/node_modules/@factory/cli/bin/droid => agent droid
        node /x/node_modules/codebuff/index.js => agent codebuff
        # its own folder of versions, whatever the command is called
        exe: /h/.local/share/cursor-agent/versions/2026.1.2-a/node /h/.local/bin/agent --use-system-ca /h/.local/share/cursor-agent/versions/2026.1.2-a/index.js -p x => agent cursor-agent
        mcphost -m x => agent mcphost
        ",
    );
}

#[test]
fn agents_as_servers() {
    check(
        "
        claude mcp serve => server claude by mcp-arguments
        node /usr/bin/claude mcp serve --debug => server claude by mcp-arguments
        npx -y @anthropic-ai/claude-code mcp serve => server claude-code by mcp-arguments
        claude --debug mcp serve => server claude by mcp-arguments
        claude --claude-in-chrome-mcp => server claude by mcp-arguments
        codex mcp-server => server codex by mcp-arguments
        codex -c model=o3 --profile p mcp-server => server codex by mcp-arguments
        goose mcp developer => server goose by mcp-arguments
        hermes mcp serve => server hermes by mcp-arguments
        openclaw mcp serve => server openclaw by mcp-arguments
        auggie --mcp => server auggie by mcp-arguments
        npx -y codex-mcp-server => server codex-mcp-server by package-mcp
        npx -y @steipete/claude-code-mcp@latest => server claude-code-mcp by npm-mcp
        npx -y gemini-mcp-tool => server gemini-mcp-tool by package-mcp
        ",
    );
}

#[test]
fn management() {
    check(
        "
        claude mcp add x -- npx foo-mcp => other claude
        claude mcp add-json x {} => other claude
        claude mcp list => other claude
        claude mcp get serve => other claude
        claude mcp remove mcp-server-foo => other claude
        claude --version => other claude
        claude update => other claude
        claude doctor => other claude
        claude --chrome-native-host => other claude
        node /usr/bin/claude mcp list => other claude
        codex mcp add x -- npx foo-mcp => other codex
        codex -c a=b mcp list => other codex
        codex login => other codex
        node /usr/bin/gemini mcp add x foo-mcp => other gemini
        node /usr/bin/gemini mcp => other gemini
        node /usr/bin/gemini extensions install mcp-server => other gemini
        npx -y @google/gemini-cli mcp list => launcher
        opencode mcp list => other opencode
        opencode auth login => other opencode
        openclaw gateway status => other openclaw
        openclaw status => other openclaw
        openclaw mcp list => other openclaw
        hermes gateway install => other hermes
        hermes mcp add x => other hermes
        hermes config edit => other hermes
        exe: /h/.local/share/cursor-agent/versions/1/node /h/.local/bin/cursor-agent --use-system-ca /h/.local/share/cursor-agent/versions/1/index.js mcp list => other cursor-agent
        ",
    );
}

#[test]
fn not_agents() {
    check(
        "
        # claude's own ripgrep, and its name in paths and arguments
        exe: /h/.local/share/claude/versions/2.1.3 rg --files => other rg
        exe: /usr/bin/node rg --files => other rg
        node /home/u/.claude/foo.js => other foo.js
        node /home/u/claude/index.js => other index.js
        python3 /home/u/claude.py => other claude.py
        vim claude => other vim
        grep -r claude /home => other grep
        tail -f /home/u/.claude/log => other tail
        sh -c claude => shell
        bash -lc 'claude -p x' => shell
        /bin/bash /usr/local/bin/claude => shell
        git commit -m codex => other git
        node /x/node_modules/openclaw/dist/plugin-worker.js => other plugin-worker
        node /x/node_modules/foo/bin/gemini.js => other gemini
        /x/node_modules/@anthropic-ai/claude-code/vendor/ripgrep/x64-linux/rg --files => other rg
        /x/node_modules/@anthropic-ai/claude-code-tools/bin/kilo => other kilo
        node /x/node_modules/@qwen-code/qwen-code/dist/worker.js => other worker
        node /x/node_modules/foo/cli-entry.js => other cli-entry
        kilo /etc/hosts => other kilo
        node /h/cursor-agent/versions/1/tool.js => other tool.js
        node /h/other/versions/1/index.js => other index.js
        /usr/bin/claude-desktop => other claude-desktop
        copilot-language-server --stdio => other copilot-language-server
        timeout 60 claude -p x => launcher
        python3 -c 'import claude' => other python3
        ",
    );
}

#[test]
fn daemons_by_design() {
    let rules = crate::recognise::Rules::default();
    let is = |argv: &[&str], wired| {
        let argv = argv.iter().map(ToString::to_string).collect();
        rules.is_daemon(&crate::model::Image { argv, ..crate::model::Image::default() }, wired)
    };
    for argv in [
        &["claude", "daemon", "run", "--origin", "transient"][..],
        &["claude", "--bg-pty-host", "/tmp/cc-daemon-1/x.sock", "200", "50", "--", "claude"],
        &["/h/.local/share/claude/versions/2.1.201", "--bg-spare", "/tmp/x.claim.sock"],
        &["codex", "app-server", "daemon", "pid-update-loop"],
        &["/x/@cline/cli-linux-x64/bin/cline", "--cline-hub-daemon", "--cwd", "/x", "--port", "25463"],
    ] {
        assert!(is(argv, false) && is(argv, true), "{argv:?}");
    }
    for argv in [
        &["codex", "app-server", "--listen", "unix://"][..],
        &["codex", "-c", "model=o3", "app-server"],
        &["node", "/usr/bin/codex", "app-server"],
        &["opencode", "serve", "--port", "4096"],
        &["opencode", "web"],
    ] {
        assert!(is(argv, false) && !is(argv, true), "{argv:?}");
    }
    for argv in [
        &["claude"][..],
        &["claude", "-p", "daemon run"],
        &["claude", "daemon", "status"],
        &["codex", "exec", "app-server"],
        &["opencode"],
        &["opencode", "run", "serve"],
        &["bash", "-c", "claude daemon run"],
        &["vim", "claude", "daemon", "run"],
    ] {
        assert!(!is(argv, false) && !is(argv, true), "{argv:?}");
    }
}
