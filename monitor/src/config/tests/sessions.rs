//! What `[sessions]` says.

use super::super::*;
use orphand_core::model::SessionMark;

const SECRET: &str = "hunter2";

fn parsed(text: &str) -> Result<Sessions, String> {
    let config = Config::parse(&format!("[sessions]\n{text}"), "x.toml".as_ref());
    config.map(|config| config.sessions.unwrap()).map_err(|errors| errors.to_string())
}

#[test]
fn the_table_alone_turns_it_on_with_all_defaults() {
    assert_eq!(Config::parse("", "x.toml".as_ref()).unwrap().sessions, None);
    let all = parsed("").unwrap();
    assert_eq!(all.redis.to_string(), "redis://127.0.0.1:6379/0");
    let policy = all.policy();
    assert_eq!(policy.mark, SessionMark::Variable("MCP_SESSION_ID".to_owned()));
    assert_eq!((policy.idle, policy.every), (Duration::from_secs(300), Duration::from_secs(15)));
    assert_eq!(policy.registry, "127.0.0.1:6379/0 mcp:session:{id}");
    assert_eq!(
        parsed("flag = '--session'").unwrap().policy().mark,
        SessionMark::Flag("--session".to_owned())
    );
    for (idle, every) in [("1s", 100), ("4s", 200), ("24h", 15_000)] {
        let every = Duration::from_millis(every);
        assert_eq!(parsed(&format!("idle = '{idle}'")).unwrap().policy().every, every);
    }
    for text in ["", "[sessions]\nflag = '--session'\nidle = '9s'\n", "[sessions]\n"] {
        let config = Config::parse(text, "x.toml".as_ref()).unwrap();
        assert_eq!(Config::parse(&config.render(), "x.toml".as_ref()).unwrap(), config);
    }
}

#[test]
fn a_password_is_never_shown() {
    for url in [format!("redis://:{SECRET}@h:1/3"), format!("redis://me:{SECRET}@h:1/3?x={SECRET}")] {
        let one = parsed(&format!("redis = '{url}'")).unwrap();
        assert_eq!(one.redis.password.as_deref(), Some(SECRET));
        let config = Config { sessions: Some(one.clone()), ..Config::default() };
        let json = serde_json::to_string(&config).unwrap();
        for shown in
            [config.render(), json, format!("{config:?}"), one.redis.place(), format!("{:?}", one.policy())]
        {
            assert!(!shown.contains(SECRET), "{shown}");
        }
        assert!(config.render().contains(":***@h:1/3\""), "{}", config.render());
    }
    for bad in [
        "rediss://:hunter2@h/0",
        "redis://:hunter2@/0",
        "hunter2",
        "redis://:hunter2@h:0/0",
        "redis://:hunter2@h/x",
    ] {
        let error = parsed(&format!("redis = '{bad}'")).unwrap_err();
        assert!(!error.contains(SECRET) && error.contains("sessions.redis"), "{error}");
    }
}

#[test]
fn a_wrong_value_is_refused_in_one_line() {
    for bad in [
        "variable = 'A'\nflag = '--b'",
        "variable = ''",
        "variable = 'A=B'",
        "flag = 'session'",
        "key = 'mcp:session'",
        "key = '{id}{id}'",
        "key = \"a\\n{id}\"",
        "idle = '0s'",
        "idle = '25h'",
        "idle = 5",
        "interval = '15s'",
        "redis = 6379",
        "ttl = '5m'",
    ] {
        let error = parsed(bad).unwrap_err();
        assert!(!error.contains('\n') && error.contains("x.toml:"), "{error}");
    }
}
