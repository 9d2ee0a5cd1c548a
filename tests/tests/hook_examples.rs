//! The examples of alert hooks, each against the real thing: the journal, a session bus, curl and a web server, a mailer.

use std::{
    fs,
    io::{BufRead, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Layout, USER, output, scene, within};

const PATIENCE: Duration = Duration::from_secs(20);

/// What orphand leaves of a name of somebody's who means harm: all of it can be printed.
const HOSTILE: &str = r#"$(touch pwned)`touch pwned`"; <!channel> <b>&'\x1b[2J %s -n *a* ä"#;

/// The folder of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hooks")
}

/// An example in `folder`, where it looks for its files too.
fn example(folder: &Path, name: &str) -> Result<PathBuf> {
    let text = fs::read_to_string(examples().join(name)).with_context(|| format!("read {name}"))?;
    let path = folder.join(name);
    put(&path, &text.replace("folder=/etc/orphand/hooks", &format!("folder='{}'", folder.display())))?;
    Ok(path)
}

/// Makes a program. Another process writes it: what we had open for writing, a test beside this one could hand on to a
/// child, and nobody can run a program that is open for writing (`ETXTBSY`, execve(2)).
fn put(path: &Path, text: &str) -> Result<()> {
    let mut writer = Command::new("sh");
    let mut writer =
        writer.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped()).spawn()?;
    writer.stdin.take().context("no stdin")?.write_all(text.as_bytes())?;
    ensure!(writer.wait()?.success(), "{} was not written", path.display());
    Ok(())
}

fn event() -> Value {
    serde_json::json!({ "event": "alert", "seq": 1, "rule": "many <b>", "server": { "name": HOSTILE } })
}

fn facts() -> [(&'static str, &'static str); 6] {
    [
        ("ORPHAND_EVENT", "alert"),
        ("ORPHAND_AGENT", "claude"),
        ("ORPHAND_GENERATION", "3"),
        ("ORPHAND_ORPHANS", "2"),
        ("ORPHAND_RSS_BYTES", "197132288"),
        ("ORPHAND_SERVER", HOSTILE),
    ]
}

/// Runs it as orphand does: these variables and no others, the event on standard input.
fn play(folder: &Path, command: &mut Command, path: &str) -> Result<Output> {
    let stdin = folder.join("event");
    fs::write(&stdin, format!("{}\n", event()))?;
    command.env_clear().envs(facts()).env("PATH", path).arg("alert").current_dir(folder);
    // It ends by itself: whatever it waits for has a limit.
    command.stdin(fs::File::open(stdin)?).output().with_context(|| format!("run {command:?}"))
}

fn path() -> Result<String> {
    std::env::var("PATH").context("no PATH")
}

fn done(output: &Output) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "ended with {}: {said}", output.status);
    Ok(())
}

/// A server for one connection after the other; each is answered by `talk`, and what that returns is received.
fn serve<T: Send + 'static>(
    talk: impl Fn(BufReader<TcpStream>) -> Result<T> + Send + 'static,
) -> Result<(u16, Receiver<T>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (tell, told) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if talk(BufReader::new(stream)).is_ok_and(|said| tell.send(said).is_err()) {
                return;
            }
        }
    });
    Ok((port, told))
}

/// A request: its head and its body. The path says how it is answered.
fn http(mut stream: BufReader<TcpStream>) -> Result<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head)? > 0, "it ended in the head");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.context("no length")?.parse()?];
    stream.read_exact(&mut body)?;
    let status = if head.starts_with("POST /fail") { "500 No" } else { "200 OK" };
    write!(stream.get_mut(), "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    Ok((head, String::from_utf8(body)?))
}

/// As much SMTP as a mailer needs; the mail.
fn smtp(mut stream: BufReader<TcpStream>) -> Result<String> {
    stream.get_mut().write_all(b"220 here\r\n")?;
    let mut mail = String::new();
    loop {
        let mut line = String::new();
        ensure!(stream.read_line(&mut line)? > 0, "it went away");
        let answer = match line.get(..4) {
            Some("DATA") => {
                stream.get_mut().write_all(b"354 go on\r\n")?;
                while !mail.ends_with("\r\n.\r\n") {
                    ensure!(stream.read_line(&mut mail)? > 0, "it went away in the mail");
                }
                "250 taken\r\n"
            }
            Some("QUIT") => {
                stream.get_mut().write_all(b"221 bye\r\n")?;
                return Ok(mail);
            }
            _ => "250 yes\r\n",
        };
        stream.get_mut().write_all(answer.as_bytes())?;
    }
}

/// None has a fault that shellcheck knows.
#[test]
fn shellcheck() -> Result<()> {
    let files = fs::read_dir(examples())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    ensure!(files.len() == 5, "{files:?}");
    let said = output(Command::new("shellcheck").args(&files))?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    for file in files {
        ensure!(
            fs::metadata(&file)?.permissions().mode() & 0o111 == 0o111,
            "{} is no program",
            file.display()
        );
    }
    Ok(())
}

#[test]
fn webhook() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (port, requests) = serve(http)?;
    let script = example(folder.path(), "webhook")?;
    let url = |path: &str| {
        fs::write(folder.path().join("webhook.url"), format!("http://127.0.0.1:{port}/{path}\n"))
    };
    let run = || play(folder.path(), &mut Command::new(&script), &path()?);
    url("hook?a=1&b=$HOME")?;
    done(&run()?)?;
    let (head, body) = requests.recv_timeout(PATIENCE)?;
    ensure!(head.starts_with("POST /hook?a=1&b=$HOME ") && !head.contains("Authorization"), "{head}");
    ensure!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
    ensure!(body == format!("{}\n", event()), "not the event: {body}");
    fs::write(folder.path().join("webhook.token"), "s3cr3t-token==\n")?;
    done(&run()?)?;
    let (head, _) = requests.recv_timeout(PATIENCE)?;
    ensure!(head.contains("\r\nAuthorization: Bearer s3cr3t-token==\r\n"), "{head}");
    // What the server refuses is a failure that says so, and so is a token that would be more than one.
    url("fail")?;
    let failed = run()?;
    let said = String::from_utf8_lossy(&failed.stderr);
    ensure!(!failed.status.success() && said.contains("500"), "{said}");
    fs::write(folder.path().join("webhook.token"), "a\"\nurl = \"http://elsewhere\"\n")?;
    let failed = run()?;
    let said = String::from_utf8_lossy(&failed.stderr);
    ensure!(!failed.status.success() && said.contains("webhook.token is not one line"), "{said}");
    ensure!(!said.contains("s3cr3t"), "{said}");
    Ok(())
}

#[test]
fn slack() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (port, requests) = serve(http)?;
    let script = example(folder.path(), "slack")?;
    fs::write(folder.path().join("slack.url"), format!("http://127.0.0.1:{port}/services/T0/B0/x"))?;
    done(&play(folder.path(), &mut Command::new(script), &path()?)?)?;
    let (head, body) = requests.recv_timeout(PATIENCE)?;
    ensure!(head.starts_with("POST /services/T0/B0/x "), "{head}");
    let body: Value = serde_json::from_str(&body)?;
    let text = body.get("text").and_then(Value::as_str).context("no text")?;
    ensure!(text.starts_with("*alert* on ") && text.contains(" many &lt;b&gt; "), "{text}");
    ensure!(text.contains("&lt;!channel&gt; &lt;b&gt;&amp;'") && !text.contains("*a*"), "{text}");
    ensure!(text.ends_with(" of claude #3, 197 MB, orphans alive: 2"), "{text}");
    Ok(())
}

#[test]
fn email() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (port, mails) = serve(smtp)?;
    let script = example(folder.path(), "email")?;
    let mailer = format!(
        "#!/bin/sh\nexec msmtp --host=127.0.0.1 --port={port} --from=orphand@localhost --tls=off --auth=off \"$@\"\n"
    );
    put(&folder.path().join("sendmail"), &mailer)?;
    fs::write(folder.path().join("email.to"), "ops@example.org\n")?;
    let path = format!("{}:{}", folder.path().display(), path()?);
    done(&play(folder.path(), &mut Command::new(&script), &path)?)?;
    let mail = mails.recv_timeout(PATIENCE)?;
    let (head, body) = mail.split_once("\r\n\r\n").context("no body")?;
    ensure!(mail.is_ascii() && head.contains("To: ops@example.org"), "{head}");
    let subject = head.lines().find(|line| line.starts_with("Subject: ")).context("no subject")?;
    ensure!(subject.contains(": alert: $(touch pwned)`") && subject.ends_with(" of claude #3"), "{subject}");
    fs::write(folder.path().join("body"), body.trim_end_matches(".\r\n"))?;
    let text = output(Command::new("base64").args(["-d", "-i"]).arg(folder.path().join("body")))?;
    let text = String::from_utf8(text.stdout)?;
    ensure!(text.contains(HOSTILE) && text.contains("197132288 bytes"), "{text}");
    ensure!(text.contains("\"rule\": \"many <b>\""), "the event is not in it: {text}");
    ensure!(!folder.path().join("pwned").exists(), "a name was executed");
    fs::write(folder.path().join("email.to"), "-oQ/tmp\n")?;
    let failed = play(folder.path(), &mut Command::new(script), &path)?;
    ensure!(!failed.status.success(), "an option was taken for an address");
    Ok(())
}

/// In a system of its own: the entry has its fields; the notification reaches the desktop of the user who tells it.
#[test]
#[ignore = "needs root and a real kernel: cargo xtask test runs it"]
fn journal_and_desktop() -> Result<()> {
    scene(|s| {
        let system = s.boot("one", Layout::V2)?;
        system.user_manager(USER)?;
        let here = s.folder();
        let inside = |user: &[String], script: &Path| {
            let mut command = system.command("/usr/bin/setpriv");
            command.args(user).args(["--inh-caps=-all", "--"]).arg(script);
            play(here, &mut command, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        };
        let user = [format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".to_owned()];

        done(&inside(&user, &example(here, "journal")?)?)?;
        let ask = ["journalctl", "--no-pager", "-o", "json", "SYSLOG_IDENTIFIER=orphand-hook"];
        let entry = within("the entry in the journal", || {
            let said = system.run(&ask).ok()?.stdout;
            serde_json::from_slice::<Value>(said.strip_suffix(b"\n")?).ok()
        })?;
        let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        for (name, value) in facts() {
            ensure!(field(name) == value, "{name}: {entry}");
        }
        let message = format!("alert: {HOSTILE} of claude #3, 197 MB, orphans alive: 2");
        ensure!(field("MESSAGE") == message && field("PRIORITY") == "4", "{entry}");
        ensure!(serde_json::from_str::<Value>(field("ORPHAND_JSON"))? == event(), "{entry}");

        let recorder = here.join("notifications.py");
        fs::write(&recorder, include_str!("../actors/notifications.py"))?;
        let mut command = system.command("/usr/bin/setpriv");
        command
            .args(&user)
            .args(["env", &format!("DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{USER}/bus")]);
        command.arg("/usr/bin/python3").arg(recorder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut recorder = command.spawn()?;
        let mut lines = BufReader::new(recorder.stdout.take().context("no stdout")?).lines();
        let mut next = || lines.next().context("the recorder has ended")?.context("read the recorder");
        ensure!(next()? == "ready", "the recorder is not ready");
        let script = example(here, "desktop")?;
        done(&inside(&user, &script)?)?;
        let told: Value = serde_json::from_str(&next()?)?;
        let field = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
        ensure!(field("title") == "orphand: alert many <b>", "{told}");
        let text = field("text");
        ensure!(text.contains("&lt;b&gt;&amp;'") && !text.contains("<b>"), "{told}");
        ensure!(text.ends_with(" of claude #3, 197 MB, orphans alive: 2"), "{told}");
        ensure!(told.get("urgency").and_then(Value::as_u64) == Some(2), "{told}");
        let failed = inside(&[], &script)?;
        let said = String::from_utf8_lossy(&failed.stderr);
        ensure!(!failed.status.success() && said.contains("set hook.user"), "{said}");
        let _ = recorder.kill();
        recorder.wait()?;
        Ok(())
    })
}
