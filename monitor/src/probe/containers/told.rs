//! What an engine tells about its containers, as far as it is used. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use orphand_core::{model::ContainerNames, recognise::is_same_image};

/// A container that fits a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// Its id, 64 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its first process, as the engine sees it.
    pub pid: u32,
    /// Whether others may use it: it has ports, or somebody runs a further program in it.
    pub shared: bool,
    /// When it was made, in nanoseconds since 1970, if that is understood.
    pub created: Option<i64>,
}

/// An entry of `GET /containers/json`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Listed {
    #[serde(rename = "Id")]
    pub id: String,
    #[serde(rename = "Names")]
    names: Vec<String>,
    #[serde(rename = "Image")]
    image: String,
    /// In seconds since 1970.
    #[serde(rename = "Created")]
    created: u64,
}

/// `GET /containers/ID/json`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Inspected {
    id: String,
    name: String,
    /// With nanoseconds, in the form of RFC 3339.
    created: Option<String>,
    state: State,
    config: Config,
    /// Programs that somebody runs in it.
    #[serde(rename = "ExecIDs")]
    execs: Option<Vec<String>>,
    network_settings: Network,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct State {
    running: Option<bool>,
    paused: bool,
    restarting: bool,
    pid: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Config {
    image: String,
    open_stdin: bool,
    stdin_once: bool,
    tty: bool,
    labels: Option<BTreeMap<String, Value>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Network {
    /// A port that is not published has no value.
    ports: Option<BTreeMap<String, Option<Value>>>,
}

/// The label by which docker's MCP gateway names the server that it starts in a container.
const GATEWAY_NAME: &str = "docker-mcp-name";
/// The most characters of such a name.
const NAME: usize = 64;

impl Inspected {
    /// What is told of the container with this id, if it runs; with its first process.
    pub(super) fn names(self, id: &str) -> Option<(ContainerNames, u32)> {
        if self.id != id || self.state.running != Some(true) {
            return None;
        }
        let Config { image, labels, .. } = self.config;
        let label = labels.unwrap_or_default().remove(GATEWAY_NAME);
        let server = label.as_ref().and_then(Value::as_str).map(|name| name.chars().take(NAME).collect());
        let name = self.name.trim_start_matches('/').to_owned();
        Some((ContainerNames { name, image, server }, self.state.pid))
    }

    /// The container, if it runs and has a standard input that ends with its client. podman says `StdinOnce` of no
    /// container; there the host shows it, because the monitor closes the input when its client has gone.
    pub(super) fn found(self, monitored: bool) -> Option<Found> {
        let Self { id, name, created, state, config, execs, network_settings } = self;
        let fed = config.open_stdin && (config.stdin_once || monitored) && !config.tty;
        let runs = state.running == Some(true) && !state.paused && !state.restarting && state.pid > 1;
        let ports = network_settings.ports.is_some_and(|ports| ports.values().any(Option::is_some));
        let shared = ports || execs.is_some_and(|execs| !execs.is_empty());
        let name = name.trim_start_matches('/').to_owned();
        let created = created.and_then(|created| created.parse::<Timestamp>().ok());
        let created = created.and_then(|created| i64::try_from(created.as_nanosecond()).ok());
        let found = Found { id, name, image: config.image, pid: state.pid, shared, created };
        (fed && runs && is_id(&found.id)).then_some(found)
    }

    /// Whether it is the container with this id, and does not run any more.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        self.id == id && self.state.running == Some(false) && !self.state.restarting
    }
}

/// Parses a reply.
pub(super) fn parse<T: DeserializeOwned>(status: u16, body: &[u8]) -> Result<T, String> {
    if status != 200 {
        return Err(format!("the engine answered with status {status}"));
    }
    serde_json::from_slice(body).map_err(|error| format!("the engine's reply is not understood: {error}"))
}

/// Whether a text is a container's id.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl Listed {
    /// Whether it has this name and is no older than a client that was started then: a name is unique for an engine.
    /// Without a name: whether it is of this image.
    pub(super) fn fits(&self, name: Option<&str>, image: Option<&str>, from: u64) -> bool {
        match (name, image) {
            (Some(name), _) => {
                self.created >= from && self.names.iter().any(|one| one.trim_start_matches('/') == name)
            }
            (None, Some(image)) => is_same_image(&self.image, image),
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inspected() -> Value {
        json!({
            "Id": "0a".repeat(32), "Name": "/box", "ExecIDs": null, "Created": "2026-01-01T00:00:00Z",
            "State": { "Running": true, "Paused": false, "Pid": 4711 },
            "Config": { "Image": "mcp/fetch", "OpenStdin": true, "StdinOnce": true, "Tty": false },
            "NetworkSettings": { "Ports": { "80/tcp": null } },
        })
    }

    fn found(change: impl FnOnce(&mut Value)) -> Option<Found> {
        let mut told = inspected();
        change(&mut told);
        parse::<Inspected>(200, told.to_string().as_bytes()).unwrap().found(false)
    }

    #[test]
    fn what_is_told_of_a_container() {
        let plain = found(|_| {}).unwrap();
        assert_eq!((plain.name.as_str(), plain.pid, plain.shared), ("box", 4711, false));
        assert!(found(|told| told["ExecIDs"] = json!(["x"])).unwrap().shared);
        let port = json!([{ "HostIp": "0.0.0.0", "HostPort": "8080" }]);
        assert!(found(|told| told["NetworkSettings"]["Ports"]["80/tcp"] = port).unwrap().shared);
        for (pointer, value) in [
            ("/State/Running", json!(false)),
            ("/State/Paused", json!(true)),
            ("/State/Pid", json!(1)),
            ("/Config/OpenStdin", json!(false)),
            ("/Config/StdinOnce", json!(false)),
            ("/Config/Tty", json!(true)),
            ("/Id", json!("../../x")),
        ] {
            assert_eq!(found(|told| *told.pointer_mut(pointer).unwrap() = value), None, "{pointer}");
        }
        let by_podman = |change: &dyn Fn(&mut Value)| {
            let mut told = inspected();
            told["Config"]["StdinOnce"] = json!(false);
            change(&mut told);
            parse::<Inspected>(200, told.to_string().as_bytes()).unwrap().found(true)
        };
        assert_eq!(by_podman(&|_| {}), Some(plain));
        assert_eq!(by_podman(&|told| told["Config"]["OpenStdin"] = json!(false)), None);
        assert_eq!(by_podman(&|told| told["Config"]["Tty"] = json!(true)), None);
    }

    #[test]
    fn what_names_it() {
        let id = "0a".repeat(32);
        let names = |change: &dyn Fn(&mut Value)| {
            let mut told = inspected();
            change(&mut told);
            parse::<Inspected>(200, told.to_string().as_bytes()).unwrap().names(&id)
        };
        let plain = ContainerNames { name: "box".to_owned(), image: "mcp/fetch".to_owned(), server: None };
        assert_eq!(names(&|_| {}), Some((plain.clone(), 4711)));
        let label =
            |name: Value| names(&|told| told["Config"]["Labels"] = json!({ "docker-mcp-name": name }));
        let with_label = |name: String| Some((ContainerNames { server: Some(name), ..plain.clone() }, 4711));
        assert_eq!(label(json!("fetch")), with_label("fetch".to_owned()));
        assert_eq!(label(json!("x".repeat(1000))), with_label("x".repeat(64)));
        assert_eq!(label(json!(7)), Some((plain.clone(), 4711)));
        assert_eq!(names(&|told| told["Id"] = json!("0b".repeat(32))), None);
        assert_eq!(names(&|told| told["State"]["Running"] = json!(false)), None);
    }

    #[test]
    fn what_has_ended() {
        let ended = |change: &dyn Fn(&mut Value)| {
            let mut told = inspected();
            change(&mut told);
            parse::<Inspected>(200, told.to_string().as_bytes()).unwrap().has_ended(&"0a".repeat(32))
        };
        assert!(!ended(&|_| {}));
        assert!(ended(&|told| told["State"]["Running"] = json!(false)));
        assert!(!ended(&|told| told["State"] = json!({ "Running": false, "Restarting": true })));
        assert!(!ended(&|told| *told = json!({ "Id": "0b".repeat(32) })));
        // It says nothing of its state.
        assert!(!ended(&|told| *told = json!({ "Id": "0a".repeat(32) })));
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(parse::<Vec<Listed>>(500, b"[]").is_err());
        assert!(parse::<Vec<Listed>>(200, b"{}").is_err());
        assert!(parse::<Vec<Listed>>(200, b"[").is_err());
        assert_eq!(parse::<Inspected>(200, b"{}").unwrap().found(true), None);
    }

    #[test]
    fn which_of_the_list_fit() {
        let listed = Listed {
            names: vec!["/box".to_owned()],
            image: "docker.io/mcp/fetch:latest".to_owned(),
            created: 100,
            ..Listed::default()
        };
        assert!(listed.fits(None, Some("mcp/fetch"), 200));
        assert!(!listed.fits(None, Some("mcp/time"), 99));
        assert!(!listed.fits(None, None, 99));
        // By name at any time after the client.
        assert!(listed.fits(Some("box"), Some("other"), 10));
        assert!(!listed.fits(Some("box"), None, 101));
        assert!(!listed.fits(Some("bo"), None, 10));
    }

    #[test]
    fn when_it_was_made() {
        let made = |time: Value| {
            let mut told = inspected();
            told["Created"] = time;
            parse::<Inspected>(200, told.to_string().as_bytes()).unwrap().found(false).unwrap().created
        };
        assert_eq!(made(json!("1970-01-01T00:00:01.25Z")), Some(1_250_000_000));
        assert_eq!(made(json!("1970-01-01T01:00:01.25+01:00")), Some(1_250_000_000));
        assert_eq!((made(json!("yesterday")), made(Value::Null)), (None, None));
    }
}
