//! A part of a scene: a script under a name, and how it is started.

use serde_json::{Map, Value, json};

/// What to start: the actor's script under a name that makes it an agent, a server or a bystander.
pub struct Part {
    pub(crate) script: String,
    pub(crate) alias: String,
    wrap: Option<Wrap>,
    order: Map<String, Value>,
}

type Wrap = Box<dyn Fn(&str) -> Vec<String>>;

impl Part {
    /// The script `script`, known in the scene as `alias`, with the standard streams of its creator.
    pub fn new(script: &str, alias: impl Into<String>) -> Self {
        Self { script: script.into(), alias: alias.into(), wrap: None, order: Map::new() }
    }

    /// An agent that a built-in rule recognises.
    pub fn agent(alias: impl Into<String>) -> Self {
        Self::new("claude", alias).wire("null")
    }

    /// An MCP server on two pipes that ignores the end of its input, like servers that become orphans.
    pub fn server(alias: impl Into<String>) -> Self {
        Self::new("fake-mcp-server", alias).wire("pipe")
    }

    /// Its stdin and stdout: `pipe`, `socket`, `null`, `file` or `inherit`.
    pub fn wire(self, kind: &str) -> Self {
        self.set("wire", json!(kind))
    }

    /// How it is created: `fork`, `vfork`, `posix_spawn`, `clone_parent`, `double_fork`, `thread` (exec by
    /// a thread that is not the leader), or `job` (by a thread that stays until it is told `end_job`).
    pub fn how(self, how: &str) -> Self {
        self.set("how", json!(how))
    }

    /// In a session of its own before the exec.
    pub fn setsid(self) -> Self {
        self.set("setsid", json!(true))
    }

    /// As another user.
    pub fn uid(self, uid: u32) -> Self {
        self.set("uid", json!(uid))
    }

    /// With one more environment variable.
    pub fn env(self, name: &str, value: &str) -> Self {
        self.set("env", json!({ name: value }))
    }

    /// With `argv` for its command line, made from the plain one (`PATH --as ALIAS`).
    pub fn through(mut self, argv: impl Fn(&str) -> Vec<String> + 'static) -> Self {
        self.wrap = Some(Box::new(argv));
        self
    }

    /// Below a shell that stays: `sh -c 'COMMAND; exit'`.
    pub fn below_shell(self) -> Self {
        self.through(|command| vec!["/bin/sh".into(), "-c".into(), format!("{command}; exit")])
    }

    fn set(mut self, key: &str, value: Value) -> Self {
        self.order.insert(key.into(), value);
        self
    }

    /// Its command line if the script is at `path`.
    pub(crate) fn argv(&self, path: &str) -> Vec<String> {
        let command = format!("{path} --as {}", self.alias);
        match &self.wrap {
            Some(wrap) => wrap(&command),
            None => command.split(' ').map(Into::into).collect(),
        }
    }

    /// The order that makes an actor start (or, `exec`, become) it.
    pub(crate) fn order(&self, verb: &str, path: &str) -> Value {
        let mut order = self.order.clone();
        order.insert("do".into(), json!(verb));
        order.insert("argv".into(), json!(self.argv(path)));
        Value::Object(order)
    }
}
