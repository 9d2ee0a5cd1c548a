//! Programs that are neither agents nor servers: negative twins, and hosts, shells, launchers and tools.

use super::{check, image};
use crate::recognise::Rules;

#[test]
fn names_in_other_places_prove_nothing() {
    check(
        "
        vim mcp-server.js => other vim
        nano /x/foo-mcp/index.js => other nano
        code /home/u/mcp-server => other code
        grep -rn mcp-server . => other grep
        grep mcp => other grep
        rg mcp serve => other rg
        tail -f /var/log/mcp-server.log => other tail
        git clone https://github.com/a/foo-mcp => other git
        git log mcp serve => other git
        make mcp-server => launcher
        make -s mcp-serve ARGS=mcp => launcher
        cat mcp_server.py => other cat
        curl http://localhost/mcp => other curl
        sleep 100 mcp serve => other sleep
        ps aux mcp => other ps
        node /home/u/mcp-projects/app/server.js => other server.js
        node dist/index.js --name mcp-server => other index.js
        python3 /srv/mcp/server.py => other server.py
        python3 server.py --mcp => other server.py
        python3 search.py mcp => other search.py
        python3 agent.py npx foo-mcp => other agent.py
        python3 /home/u/mcp/app/main.py mcp_server => other main.py
        /home/u/mcp-tools/bin/worker --mcp => other worker
        python -c 'import mcp_server' => other python
        python -m pytest tests/mcp_server => other pytest
        python -m pip install mcp-server-git => other pip
        python -m uvicorn mcp_server:app => other uvicorn
        python -m http.server mcp => other http.server
        python /v/bin/pytest tests/test_mcp_server.py => other pytest
        python3 test_mcp_server.py => other test_mcp_server.py
        node -e 'require(1)' mcp-server.js => other node
        node --test test/mcp-server.js => other node
        node --check mcp-server.js => other node
        node -r mcp-server app.js => other app.js
        node --import mcp-server.js app.js => other app.js
        node /x/node_modules/vitest/vitest.mjs mcp serve => other vitest
        node /x/node_modules/.bin/vitest run mcp-server.test.ts => other vitest
        node /x/foo-mcp/node_modules/.bin/tsc --watch => other tsc
        node /x/foo-mcp/node_modules/vite/bin/vite.js => other vite
        node /x/foo-mcp/node_modules/typescript/bin/tsc => other tsc
        node /x/node_modules/foo-mcp/scripts/postinstall.js => other postinstall
        node client_node.mjs -- node /x/node_modules/@modelcontextprotocol/server-everything/dist/index.js => other client_node.mjs
        /z/venv/bin/python /s/client_py.py sdk -- npx -y @modelcontextprotocol/server-everything => other client_py.py
        # the other side of the protocol
        npx @modelcontextprotocol/inspector npx foo-mcp => launcher
        npx @modelcontextprotocol/inspector dab start --mcp-stdio => launcher
        node /x/node_modules/.bin/mcp-inspector node mcp-server.js => other mcp-inspector
        node /x/node_modules/@modelcontextprotocol/inspector/server/build/index.js => other inspector
        node /x/node_modules/@modelcontextprotocol/sdk/dist/cli.js => other sdk
        node /x/node_modules/@modelcontextprotocol/inspector/cli/build/mcp-server.js => other inspector
        mcp dev server.py => other mcp
        mcp install server.py => other mcp
        python /v/bin/mcp dev x.py => other mcp
        python -m mcp.client.x => other mcp.client.x
        fastmcp dev server.py => other fastmcp
        npx -y mcp-cli list => launcher
        npx create-mcp-server foo => launcher
        ",
    );
}

#[test]
fn folders_that_are_not_the_project_of_a_server() {
    check(
        "
        # the other side of the protocol, and what is about it
        node /home/u/src/mcp-client/dist/index.js => other index.js
        python3 /home/u/mcp-agent/src/main.py => other main.py
        python3 /home/u/mcp-chatbot/src/main.py => other main.py
        node /x/mcp-docs/build/index.js => other index.js
        node /x/weather-mcp-docs/build/server.js => other server.js
        node /x/mcp-server-website/dist/index.js => other index.js
        node /x/mcp-hub/dist/index.js => other index.js
        node /x/mcp-inspector/server/build/index.js => other index.js
        node /x/mcp-inspector/build/index.js => other index.js
        node /x/create-mcp-server/build/index.js => other index.js
        node /x/mcp-test/dist/index.js => other index.js
        python3 /x/mcp-tutorial/src/main.py => other main.py
        # folders above the project: users, folders of projects, parts of one
        python3 /home/mcp/project/src/main.py => other main.py
        python3 /home/mcp/src/main.py => other main.py
        python3 /home/mcp-server/src/main.py => other main.py
        python3 /data/home/mcp-user/server.py => other server.py
        python3 /home/u/src/mcp/server.py => other server.py
        node /srv/mcp/dist/index.js => other index.js
        node /x/mcp-monorepo/packages/web/dist/server.js => other server.js
        node /x/mcp-monorepo/dist/server.js => other server.js
        node /x/weather-mcp/web/dist/index.js => other index.js
        node /x/weather-mcp/tests/server.js => other server.js
        node /x/weather-mcp/dist/test/index.js => other index.js
        node /x/weather-mcp/main/index.js => other index.js
        python3 /x/weather-mcp/examples/server.py => other server.py
        /x/weather-mcp/.venv/bin/python /x/weather-mcp/.venv/bin/app => other app
        node /x/weather-mcp/build/../web/index.js => other index.js
        # without a build folder only a script that is called a server
        python3 /home/u/weather-mcp/main.py => other main.py
        node /home/u/weather-mcp/index.js => other index.js
        python3 /home/u/weather-mcp/app.py => other app.py
        # scripts with a name of their own, and commands that do not serve
        node /x/weather-mcp/dist/worker.js => other worker.js
        node /x/weather-mcp/build/install.js => other install.js
        node /x/weather-mcp/dist/cli.js login => other cli.js
        node /x/weather-mcp/dist/cli.js --version => other cli.js
        python3 -c 1 /x/weather-mcp/src/main.py => other python3
        python3 -m pytest /x/weather-mcp/src/main.py => other pytest
        node --test /x/weather-mcp/dist/index.js => other node
        node --check /x/weather-mcp/dist/index.js => other node
        vim /x/weather-mcp/dist/index.js => other vim
        cat /x/weather-mcp/src/server.py => other cat
        node /x/weather-mcp/node_modules/foo/dist/index.js => other foo
        node /x/weather-mcp/node_modules/.bin/tsc => other tsc
        # no folder in the path
        node build/index.js => other index.js
        node ./src/index.js => other index.js
        node /dist/index.js => other index.js
        node index.js => other index.js
        ",
    );
}

#[test]
fn package_managers_at_other_work() {
    check(
        "
        npm install foo-mcp => launcher
        npm i -g @playwright/mcp => launcher
        npm run dev => launcher
        npm run mcp-server => launcher
        npm test mcp => launcher
        exe: /usr/bin/node 'npm run mcp-server' => launcher
        exe: /usr/bin/node 'npm install foo-mcp' => launcher
        node /usr/lib/node_modules/npm/bin/npm-cli.js install foo-mcp => launcher
        npx -c 'foo-mcp --x' => launcher
        npx vitest run mcp-server => launcher
        npx vitest mcp serve => launcher
        npx -p foo-mcp tsc => launcher
        npx tsx src/index.ts => launcher
        npx cowsay mcp-server => launcher
        npx degit mcp-server x => launcher
        mkdir mcp-server => other mkdir
        lolcat mcp-server => other lolcat
        /opt/conda/bin/python /opt/conda/bin/conda run -n env python server.py => launcher
        /usr/bin/python3 /usr/bin/pipenv run mcp-server => launcher
        python3 -m hatch run mcp-server => launcher
        ruby /usr/bin/bundle exec foo-mcp => launcher
        pnpm exec X mcp --help => launcher
        pnpm exec X mcp list => launcher
        pnpm add foo-mcp => launcher
        pnpm run mcp-server => launcher
        pnpm exec tsc --watch => launcher
        yarn add foo-mcp => launcher
        yarn mcp-server => launcher
        bun install foo-mcp => launcher
        bun add foo-mcp => launcher
        bun run mcp-server => launcher
        bun test mcp-server.ts => other bun
        bun run server.ts => other server.ts
        deno task mcp-server => launcher
        deno test mcp_server.ts => other deno
        uv pip install mcp-server-git => launcher
        uv add mcp-server-git => launcher
        uv sync => launcher
        uv run pytest tests/mcp_server => launcher
        uv run server.py => launcher
        uv --directory X run server.py => launcher
        uv run --with foo-mcp python app.py => launcher
        uvx ruff check mcp_server.py => launcher
        pipx install mcp-server-git => launcher
        cargo run -p foo-mcp => launcher
        go run ./cmd/mcp-server => launcher
        dotnet run --project Foo.Mcp => launcher
        dotnet build Foo.Mcp.csproj => launcher
        ",
    );
}

#[test]
fn shells_and_launchers() {
    check(
        "
        sh -c mcp-server-foo => shell
        bash -lc 'npx -y foo-mcp' => shell
        /bin/bash -c 'source nvm.sh && npx foo-mcp' => shell
        bash -c 'exec mcp-server \"$@\"' mcp-server x => shell
        bash -euo pipefail -c 'npx foo-mcp' => shell
        sh -c \"trap '' 1 2\" => shell
        -bash => shell
        bash => shell
        bash --login => shell
        bash /home/u/mcp/start.sh => shell
        bash test-mcp-server.sh => shell
        zsh -ic 'claude mcp serve' => shell
        exe: /bin/busybox sh -c mcp-server => shell
        busybox sh -c mcp-server => shell
        env FOO=1 node mcp-server.js => launcher
        /usr/bin/env node /x/.bin/foo-mcp => launcher
        timeout 10 npx foo-mcp => launcher
        nohup node mcp-server.js => launcher
        nice -n 5 mcp-server => launcher
        stdbuf -oL mcp-server => launcher
        setsid mcp-server => launcher
        sudo -u x mcp-server => launcher
        strace -f mcp-server => launcher
        ssh host mcp-server => other ssh
        kubectl exec -i pod -- mcp-server => other kubectl
        systemd-run --user --scope mcp-server => launcher
        xargs mcp-server => launcher
        poetry run foo-mcp => launcher
        bundle exec foo-mcp => launcher
        ",
    );
}

#[test]
fn multiplexers_stewards_and_exempt() {
    check(
        "
        python3 init.py => other init.py
        node login.js => other login.js
        node /x/node_modules/nodemon/bin/nodemon.js app.js => steward
        tmux new-session -d => multiplexer
        exe: /usr/bin/tmux 'tmux: server' => multiplexer
        exe: /usr/bin/tmux 'tmux: server (/tmp/tmux-0/default)' => multiplexer
        SCREEN -dmS x claude => multiplexer
        screen -dmS x node mcp-server.js => multiplexer
        zellij --server /run/x => multiplexer
        dtach -n /tmp/s mcp-server => multiplexer
        abduco -n s claude => multiplexer
        /usr/bin/conmon --api-version 1 -c x => exempt by conmon
        /sbin/init => steward
        exe: /usr/lib/systemd/systemd /sbin/init splash => steward
        /lib/systemd/systemd --user => steward
        exe: /usr/lib/systemd/systemd (sd-pam) => steward
        /usr/lib/systemd/systemd-executor --deserialize 40 => steward
        /usr/bin/containerd-shim-runc-v2 -namespace moby => steward
        /usr/bin/dockerd -H fd:// => steward
        runc --root /x => steward
        /usr/bin/tini -- node mcp-server.js => steward
        catatonit -P => steward
        dumb-init claude => steward
        s6-svscan /x => steward
        runsv mcp-server => steward
        /usr/sbin/cron -f => steward
        /usr/bin/python3 /usr/bin/supervisord -n => steward
        exe: /usr/bin/node 'PM2 v5.3.0: God Daemon (/root/.pm2)' => steward
        node /usr/lib/node_modules/pm2/lib/Daemon.js => steward
        node /usr/lib/node_modules/pm2/lib/ProcessContainerFork.js => other ProcessContainerFork
        node /x/node_modules/.bin/nodemon --exec dab start --mcp-stdio => steward
        ",
    );
}

/// Of these the standard streams are read when /proc is: a supervisor may feed a server, or be one by its first message, and who
/// spoke to an agent may be gone.
#[test]
fn whose_streams_matter() {
    let rules = Rules::from_source("[[exempt]]\nname = 'mine'\nprogram = 'mcp-server-mine'").unwrap();
    for line in [
        "node mcp-server.js",
        "npx x",
        "sh -c x",
        "nodemon -q x.js",
        "python3 x.py",
        "mcp-server-mine",
        "claude",
    ] {
        assert!(rules.may_have_wires(&image(line)), "{line}");
    }
    for line in ["tmux", "conmon"] {
        assert!(!rules.may_have_wires(&image(line)), "{line}");
    }
}

#[test]
fn odd_images() {
    check(
        "
        exe: /usr/bin/mcp-server => server mcp-server by program-mcp
        exe: /usr/bin/mcp-server '' => server mcp-server by program-mcp
        exe: /usr/bin/mcp-server ' ' => server mcp-server by program-mcp
        exe: /usr/bin/node 'npm exec foo-mcp' '' '' => server foo-mcp by package-mcp
        '/home/u/My Programs/mcp-server' => server mcp-server by program-mcp
        '/home/u/My mcp Programs/worker' => other worker
        exe: /nix/store/x/bin/node /nix/store/y/bin/foo-tool /nix/store/z/lib/mcp-server.js --x => server mcp-server by script-mcp
        exe: /nix/store/x/bin/node /nix/store/y/bin/foo-mcp /nix/store/z/lib/index.js => server foo-mcp by program-mcp
        exe: /usr/bin/node MainThread => other MainThread
        nginx: => other nginx:
        / => other /
        - => other -
        -- => other --
        ",
    );
}

#[test]
fn a_replaced_file_is_still_its_program() {
    let image = |exe: &str, argv: &[&str]| crate::model::Image {
        exe: exe.into(),
        argv: argv.iter().map(ToString::to_string).collect(),
        argv_truncated: false,
    };
    let role = |image| super::told(&super::Rules::default().role(&image));
    assert_eq!(role(image("/h/claude/versions/1.2.3 (deleted)", &[])), "agent claude");
    assert_eq!(role(image("/usr/bin/conmon (deleted)", &[])), "exempt by conmon");
    assert_eq!(
        role(image("/usr/bin/node (deleted)", &["x", "/srv/bin/foo-mcp"])),
        "server foo-mcp by script-mcp"
    );
    assert_eq!(role(image("", &[])), "other ");
}
