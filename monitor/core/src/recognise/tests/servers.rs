//! MCP servers, in the forms in which they are started.

use super::check;

#[test]
fn measured_launch_chains() {
    check(
        "
        # npx: what the kernel's exec record shows, then the title, then the shell and the server's main process
        exe: /usr/bin/env /usr/bin/env node /usr/bin/npx -y @modelcontextprotocol/server-everything => launcher
        exe: /usr/bin/node node /usr/bin/npx -y @modelcontextprotocol/server-everything => server server-everything by npm-mcp
        exe: /usr/bin/node 'npm exec @modelcontextprotocol/server-everything' => server server-everything by npm-mcp
        exe: /usr/bin/node 'npm exec @modelcontextprotocol/server-filesystem /tmp/a b' => server server-filesystem by npm-mcp
        exe: /usr/bin/dash sh -c mcp-server-everything => shell
        exe: /usr/bin/dash sh -c 'mcp-server-filesystem /tmp' => shell
        exe: /usr/bin/node node /root/.npm/_npx/a1b2/node_modules/.bin/mcp-server-everything => server mcp-server-everything by script-mcp
        exe: /usr/bin/node node /root/.npm/_npx/a1/node_modules/.bin/mcp-server-filesystem /tmp => server mcp-server-filesystem by script-mcp
        exe: /usr/bin/node node /x/node_modules/@modelcontextprotocol/server-everything/dist/index.js => server server-everything by npm-mcp
        exe: /usr/bin/node node /x/node_modules/@modelcontextprotocol/server-everything/dist/index.js streamableHttp => server server-everything by npm-mcp
        exe: /usr/bin/node node /x/node_modules/@modelcontextprotocol/server-sequential-thinking/dist/index.js => server server-sequential-thinking by npm-mcp
        exe: /usr/bin/node node /x/node_modules/@modelcontextprotocol/server-memory/dist/index.js => server server-memory by npm-mcp
        # uvx
        uvx mcp-server-time => server mcp-server-time by package-mcp
        exe: /root/.local/bin/uv uv tool uvx mcp-server-time => server mcp-server-time by package-mcp
        uv tool uvx --from chroma-mcp==0.2.6 chroma-mcp --client-type persistent --data-dir /d => server chroma-mcp by package-mcp
        uv tool run mcp-server-git => server mcp-server-git by package-mcp
        exe: /usr/bin/python3.11 /root/.cache/uv/archive-v0/h/bin/python /root/.cache/uv/archive-v0/h/bin/mcp-server-time => server mcp-server-time by script-mcp
        exe: /usr/bin/python3.11 venv/bin/python3 venv/bin/mcp-server-time => server mcp-server-time by script-mcp
        /z/venv/bin/python3 /z/venv/bin/mcp-server-fetch => server mcp-server-fetch by script-mcp
        /z/venv/bin/python -m mcp_server_git --repository /r => server mcp_server_git by module-mcp
        # a title over argv, a binary, a bridge
        exe: /usr/bin/node chrome-devtools-mcp => server chrome-devtools-mcp by program-mcp
        exe: /usr/bin/node 'chrome-devtools-mcp --headless' => server chrome-devtools-mcp by program-mcp
        exe: /usr/bin/node 'node /srv/app/mcp-server.js' => server mcp-server by script-mcp
        node /z/npm-servers2/node_modules/.bin/supergateway --stdio 'node x.js' --port 80 => server supergateway by known-mcp
        node /z/node_modules/.bin/mcp-remote https://x/mcp => server mcp-remote by script-mcp
        node /z/node_modules/.bin/playwright-mcp --headless => server playwright-mcp by script-mcp
        node /z/node_modules/@playwright/mcp/cli.js --headless => server @playwright/mcp by npm-mcp
        /z/venv/bin/python /z/venv/bin/fastmcp run /z/fmserver.py => server fastmcp by mcp-arguments
        node /z/node_modules/task-master-ai/dist/mcp-server.js => server task-master-ai by known-mcp
        node /z/node_modules/.bin/task-master-ai => server task-master-ai by known-mcp
        ",
    );
}

#[test]
fn npm_and_its_kin() {
    check(
        "
        npx -y @playwright/mcp@latest --headless => server @playwright/mcp by npm-mcp
        npx --yes @upstash/context7-mcp@1.0.14 --api-key k => server context7-mcp by npm-mcp
        npx -y --package=foo-mcp bar --flag => server bar by package-mcp
        npx -y -p @scope/foo-mcp foo => server foo by npm-mcp
        npx -y --package @scope/foo-mcp -- foo-mcp => server foo-mcp by npm-mcp
        npx @scope/my-mcp-server@1.2 => server my-mcp-server by npm-mcp
        npx -y mcp-remote@0.1.29 https://x/mcp => server mcp-remote by package-mcp
        npx -y github:a/foo-mcp => server foo-mcp by package-mcp
        npx -y task-master-ai => server task-master-ai by known-mcp
        npx -y @wonderwhy-er/desktop-commander@latest => server desktop-commander by known-mcp
        npx -y @smithery/cli@latest run @x/y --key k => server @smithery/cli by mcp-arguments
        npx -y supergateway --sse http://x => server supergateway by known-mcp
        npx shadcn@latest mcp => server shadcn by mcp-arguments
        npx -y @angular/cli mcp => server @angular/cli by mcp-arguments
        npx -y firebase-tools@latest mcp --dir /x => server firebase-tools by mcp-arguments
        npx -y convex@latest mcp start => server convex by mcp-arguments
        npx claude-flow@alpha mcp start => server claude-flow by mcp-arguments
        npx tsx src/mcp-server.ts => server mcp-server by script-mcp
        npx -y tsx@4 --tsconfig t.json src/mcp-server.ts => server mcp-server by script-mcp
        npx -y something mcp => server something by mcp-arguments
        npm exec @modelcontextprotocol/server-memory => server server-memory by npm-mcp
        npm exec --yes -- foo-mcp@2 --x => server foo-mcp by package-mcp
        npm --prefix /x exec foo-mcp => server foo-mcp by package-mcp
        npm x -y -- foo-mcp => server foo-mcp by package-mcp
        node /usr/lib/node_modules/npm/bin/npm-cli.js exec @modelcontextprotocol/server-memory => server server-memory by npm-mcp
        node /usr/lib/node_modules/npm/bin/npx-cli.js -y foo-mcp => server foo-mcp by package-mcp
        node --no-warnings /usr/bin/npx foo-mcp => server foo-mcp by package-mcp
        pnpm dlx foo-mcp => server foo-mcp by package-mcp
        pnpm --package=@a/foo-mcp dlx foo => launcher
        pnpm dlx --package @a/foo-mcp foo => server foo by npm-mcp
        pnpm exec memtomem mcp => server memtomem by mcp-arguments
        pnpm -C /srv/x exec X mcp => server X by mcp-arguments
        pnpm exec tsx src/mcp-server.ts => server mcp-server by script-mcp
        node /usr/lib/node_modules/pnpm/bin/pnpm.cjs dlx foo-mcp => server foo-mcp by package-mcp
        node /x/.yarn/releases/yarn-4.1.0.cjs dlx foo-mcp => server foo-mcp by package-mcp
        node /usr/lib/node_modules/corepack/dist/pnpm.js dlx foo-mcp => server foo-mcp by package-mcp
        corepack pnpm dlx foo-mcp => server foo-mcp by package-mcp
        yarn dlx -q foo-mcp => server foo-mcp by package-mcp
        yarn exec foo-mcp => server foo-mcp by program-mcp
        bunx foo-mcp@latest => server foo-mcp by package-mcp
        exe: /root/.bun/bin/bun bunx --bun @a/foo-mcp => server foo-mcp by npm-mcp
        bun x foo-mcp => server foo-mcp by package-mcp
        dnx Foo.Mcp.Server --yes => server Foo.Mcp.Server by package-mcp
        ",
    );
}

#[test]
fn python_and_uv() {
    check(
        "
        uvx --from git+https://github.com/oraios/serena serena start-mcp-server --context ide => server serena by known-mcp
        uvx --from git+https://github.com/a/foo-mcp.git foo => server foo by package-mcp
        uvx --from git+https://x/y/z name-mcp => server name-mcp by program-mcp
        uvx mcp-proxy http://x/sse => server mcp-proxy by package-mcp
        uvx awslabs.core-mcp-server@latest => server awslabs.core-mcp-server by package-mcp
        uvx --python 3.12 mcp-server-fetch --ignore-robots-txt => server mcp-server-fetch by package-mcp
        uvx basic-memory mcp => server basic-memory by mcp-arguments
        uvx --with fastmcp fastmcp run server.py => server fastmcp by mcp-arguments
        uvx mcp run server.py => server mcp by mcp-arguments
        uvx git+https://github.com/a/foo-mcp => server foo-mcp by package-mcp
        uv run --directory /srv/x mcp-foo => server mcp-foo by program-mcp
        uv --directory /srv/x run mcp-foo => server mcp-foo by program-mcp
        uv run --with 'mcp[cli]' mcp run /srv/server.py => server mcp by mcp-arguments
        uv run --with mcp --with httpx fastmcp run /srv/server.py => server fastmcp by mcp-arguments
        uv run python -m foo_mcp => server foo_mcp by module-mcp
        uv run -m foo.mcp_server => server foo.mcp_server by module-mcp
        uv run --project /p -- foo-mcp-server --stdio => server foo-mcp-server by program-mcp
        uv run mcp_server.py => server mcp_server by script-mcp
        uvx --from foo python -m foo_mcp => server foo_mcp by module-mcp
        pipx run mcp-server-git => server mcp-server-git by package-mcp
        pipx run --spec foo-mcp foo => server foo by package-mcp
        python -m mcp_server_time --local-timezone=UTC => server mcp_server_time by module-mcp
        python3 -u -m X.mcp_server => server X.mcp_server by module-mcp
        python3 -um foo_mcp.server => server foo_mcp.server by module-mcp
        python3.12 -X dev -W ignore -m foo_mcp => server foo_mcp by module-mcp
        python3 -Xdev -mfoo_mcp => server foo_mcp by module-mcp
        python -m mcp run server.py => server mcp by mcp-arguments
        /v/bin/python -I /v/bin/chroma-mcp => server chroma-mcp by script-mcp
        /v/bin/python /v/lib/python3.12/site-packages/mcp_server_git/__main__.py => server mcp_server_git by python-mcp
        /v/bin/python /v/bin/mcp run x.py => server mcp by mcp-arguments
        /v/bin/python /v/bin/serena start-mcp-server => server serena by known-mcp
        python3 /home/u/tools/weather_mcp.py => server weather_mcp by script-mcp
        python3 mcp_server.py => server mcp_server by script-mcp
        pypy3 mcp_server.py => server mcp_server by script-mcp
        exe: /usr/bin/python3.12 conport-mcp --mode stdio => server conport-mcp by program-mcp
        ",
    );
}

#[test]
fn scripts_and_programs() {
    check(
        "
        node --import tsx --loader y /a/src/mcp-server.ts => server mcp-server by script-mcp
        node --require /x/tsx/dist/preflight.cjs --import file:///x/tsx/dist/loader.mjs /a/mcp-server.ts => server mcp-server by script-mcp
        node --max-old-space-size=4096 --inspect build/mcp.js => server mcp by script-mcp
        nodejs dist/mcpServer.js => server mcpServer by script-mcp
        node --watch mcp-server.mjs => server mcp-server by script-mcp
        node --env-file .env mcp-server.mjs => server mcp-server by script-mcp
        tsx /a/src/mcp-server.ts => server mcp-server by script-mcp
        tsx watch --tsconfig t.json /a/src/mcp-server.ts => server mcp-server by script-mcp
        node /a/node_modules/.bin/tsx /a/src/mcp-server.ts => server mcp-server by script-mcp
        node /a/node_modules/tsx/dist/cli.mjs /a/src/mcp-server.ts => server mcp-server by script-mcp
        ts-node -P t.json mcp.ts => server mcp by script-mcp
        bun run /h/.claude/plugins/foo/mcp-server.cjs => server mcp-server by script-mcp
        bun --watch src/mcp.ts => server mcp by script-mcp
        bun run --cwd /x ./mcp-server.ts => server mcp-server by script-mcp
        deno run -A npm:foo-mcp => server foo-mcp by package-mcp
        deno run --allow-net --allow-env npm:@a/foo-mcp@1.0/bin => server foo-mcp by npm-mcp
        deno run -A jsr:@a/mcp-foo => server mcp-foo by npm-mcp
        deno -A mcp_server.ts => server mcp_server by script-mcp
        deno run -A https://x/y/mcp_server.ts => server mcp_server by script-mcp
        ruby -Ilib exe/foo-mcp => server foo-mcp by script-mcp
        php artisan mcp:start weather => server artisan by mcp-arguments
        php artisan boost:mcp => server artisan by mcp-arguments
        java -Xmx512m -jar /opt/foo-mcp-server-1.0.jar => server foo-mcp-server-1.0 by script-mcp
        java -cp a.jar:b.jar com.x.McpServer => server com.x.McpServer by module-mcp
        dotnet /a/Foo.McpServer.dll => server Foo.McpServer by script-mcp
        dotnet tool exec Foo.Mcp => server Foo.Mcp by package-mcp
        /usr/local/bin/github-mcp-server stdio => server github-mcp-server by program-mcp
        /opt/x/mcp-grafana --disable-write => server mcp-grafana by program-mcp
        gbrain serve => server gbrain by mcp-arguments
        conport-mcp => server conport-mcp by program-mcp
        dab start --mcp-stdio --config x.json => server dab by mcp-arguments
        glab mcp serve => server glab by mcp-arguments
        gopls mcp => server gopls by mcp-arguments
        dart mcp-server => server dart by mcp-arguments
        gjc mcp-serve coordinator => server gjc by mcp-arguments
        mise mcp => server mise by mcp-arguments
        proto mcp => server proto by mcp-arguments
        devbox mcp => server devbox by mcp-arguments
        azmcp server start => server azmcp by known-mcp
        /bin/bash /h/bin/my-mcp-server => server my-mcp-server by script-mcp
        bash ./run-mcp.sh => server run-mcp by script-mcp
        ",
    );
}

#[test]
fn scripts_with_a_generic_name_in_the_project_of_a_server() {
    check(
        "
        node /home/me/weather-mcp/build/index.js => server weather-mcp by project-mcp
        node /home/me/weather-mcp/dist/index.js --port 1 => server weather-mcp by project-mcp
        node --enable-source-maps /opt/weather_mcp/lib/main.mjs /data => server weather_mcp by project-mcp
        node /home/u/mcp-server-weather/dist/src/index.js => server mcp-server-weather by project-mcp
        node /home/u/mcp-weather/build/main/index.js => server mcp-weather by project-mcp
        node /home/u/mcp-weather/dist/cjs/server.cjs => server mcp-weather by project-mcp
        node /x/mono/packages/weather-mcp/dist/index.js => server weather-mcp by project-mcp
        node weather-mcp/dist/index.js => server weather-mcp by project-mcp
        node ./servers/WeatherMCP/dist//index.js => server WeatherMCP by project-mcp
        node /srv/mcp-server/build/cli.js => server mcp-server by project-mcp
        node /srv/weather-mcp/bin/cli.js --stdio => server weather-mcp by project-mcp
        node /srv/weather-mcp/bin/cli.js serve => server weather-mcp by project-mcp
        node /home/u/dbhub/dist/index.js --dsn x => server dbhub by project-mcp
        node /home/u/mcp-docs-server/dist/index.js => server mcp-docs-server by project-mcp
        node /home/u/docs-mcp/dist/index.js => server docs-mcp by project-mcp
        node /home/mcp/weather-mcp/dist/index.js => server weather-mcp by project-mcp
        tsx /home/me/weather-mcp/src/index.ts => server weather-mcp by project-mcp
        npx -y tsx /home/me/weather-mcp/src/index.ts => server weather-mcp by project-mcp
        bun run /home/me/weather-mcp/src/index.ts => server weather-mcp by project-mcp
        deno run -A /home/me/weather-mcp/src/mod.ts => server weather-mcp by project-mcp
        python3 /home/me/weather-mcp/src/main.py => server weather-mcp by project-mcp
        /home/me/weather-mcp/.venv/bin/python /home/me/weather-mcp/src/server.py => server weather-mcp by project-mcp
        python3 /home/me/weather-mcp/server.py => server weather-mcp by project-mcp
        uv run /home/me/weather-mcp/server.py => server weather-mcp by project-mcp
        python3 /home/me/weather/src/weather_mcp/__main__.py => server weather_mcp by project-mcp
        ",
    );
}

#[test]
fn containers() {
    check(
        "
        docker run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server => server github-mcp-server by image-mcp
        docker run -i --rm mcp/fetch => server fetch by image-mcp
        docker run --rm -i --init mcp/server:latest --x => server server by image-mcp
        docker run -i --rm -v /a:/b --mount type=bind,src=/a,dst=/b mcp/filesystem /b => server filesystem by image-mcp
        docker run --rm -ie A=1 -eB=2 --network host localhost:5000/x/foo-mcp:1.2 => server foo-mcp by image-mcp
        docker run -it --name n --entrypoint node img/mcp-foo@sha256:abc x.js => server mcp-foo by image-mcp
        docker container run --interactive --rm mcp/time => server time by image-mcp
        docker --context c run -i --rm -e X IMG stdio => server IMG by mcp-arguments
        podman run -i --rm docker.io/mcp/time => server time by image-mcp
        docker exec -i box mcp-server-foo => server mcp-server-foo by program-mcp
        docker exec -i -w /app box node dist/mcp-server.js => server mcp-server by script-mcp
        docker mcp gateway run => server docker by mcp-arguments
        docker run --rm mcp/fetch => launcher
        docker run -d --name x foo-mcp-server => launcher
        docker run -i --rm postgres psql mcp-server => launcher
        docker run -i --rm -e NAME=mcp-server alpine => launcher
        docker build -t mcp/foo . => launcher
        docker pull mcp/foo => launcher
        docker exec -i box bash -c mcp-server-foo => launcher
        docker exec box mcp-server-foo => launcher
        docker mcp catalog ls => launcher
        docker compose run --rm mcp-server => launcher
        ",
    );
}

#[test]
fn names_that_jobs_have_too() {
    let rules = crate::recognise::Rules::default();
    let is = |line: &str| rules.is_only_named(&super::image(line));
    for line in [
        "mcp-evals --suite all",
        "/opt/acme/mcp-backup",
        "python3 /srv/jobs/mcp-db-migrate",
        "node /srv/mcp-sync.js",
        "node /x/node_modules/.bin/mcp-evals",
        "npx -y mcp-evals",
        "uvx mcp-remote",
        "python -m mcp_backup",
        "python -m jobs_mcp",
        "/srv/bin/backup-mcp",
        "docker run -i --rm acme/mcp-backup",
    ] {
        assert!(is(line), "{line}");
    }
    for line in [
        "mcp-server-git",
        "/usr/bin/python3 /v/bin/mcp-server-time",
        "github-mcp-server stdio",
        "/opt/bin/FooMcpServer",
        "npx -y @modelcontextprotocol/server-everything",
        "npm exec @playwright/mcp@latest",
        "npx -y chrome-devtools-mcp",
        "uvx blender-mcp",
        "node /x/node_modules/firecrawl-mcp/dist/index.js",
        "node /h/.npm/_npx/1a/node_modules/.bin/playwright-mcp",
        "python -m awslabs.docs_mcp_server.server",
        "node /h/weather-mcp-server/build/index.js",
        "npx task-master-ai",
        "docker run -i --rm mcp/fetch",
        "mcp-x mcp serve",
        "claude mcp serve",
        "fastmcp run x.py",
    ] {
        assert!(!is(line), "{line}");
    }
    for line in ["vim mcp-backup", "claude", "node index.js", "sh -c mcp-backup"] {
        assert!(!is(line), "{line}");
    }
}
