use super::*;
use crate::config::Config;

const SECRET: &str = "hunter2";

fn parsed(text: &str) -> Result<Sessions, String> {
    let config = Config::parse(&format!("[sessions]\n{text}"), "x.toml".as_ref());
    config.map(|config| config.sessions.unwrap()).map_err(|errors| errors.to_string())
}

fn completed(text: &str, variables: &[(&str, &str)]) -> Result<Sessions, String> {
    let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    parsed(text).unwrap().completed(value)
}

#[test]
fn the_table_alone_turns_it_on_with_all_defaults() {
    assert_eq!(Config::parse("", "x.toml".as_ref()).unwrap().sessions, None);
    let all = completed("", &[]).unwrap();
    assert_eq!(all.redis().to_string(), "redis://127.0.0.1:6379/0");
    let policy = all.policy();
    assert_eq!(policy.mark, SessionMark::Variable("MCP_SESSION_ID".to_owned()));
    assert_eq!((policy.idle, policy.every), (IDLE, INTERVAL));
    assert_eq!(policy.registry, "127.0.0.1:6379/0 mcp:session:{id}");
    assert_eq!(policy, parsed("").unwrap().policy(), "the same as without the defaults written out");
    assert_eq!(
        completed("flag = '--session'", &[]).unwrap().policy().mark,
        SessionMark::Flag("--session".to_owned())
    );
}

#[test]
fn variables_are_the_defaults_of_keys() {
    let variables = [
        ("REDIS_HOST", "cache.local"),
        ("REDIS_PORT", "7000"),
        ("MCP_SESSION_IDLE_TTL", "60"),
        ("MCP_PROCESS_CLEANUP_INTERVAL", "2"),
    ];
    let all = completed("", &variables).unwrap();
    assert_eq!(all.redis().place(), "cache.local:7000/0");
    assert_eq!((all.idle, all.interval()), (Some(Duration::from_secs(60)), Duration::from_secs(2)));
    let written = "redis = 'redis://h:1/2'\nidle = '9s'\ninterval = '3s'";
    let all = completed(written, &variables).unwrap();
    assert_eq!(all.redis().place(), "h:1/2");
    assert_eq!((all.idle, all.interval()), (Some(Duration::from_secs(9)), Duration::from_secs(3)));
    assert_eq!(completed("", &[("REDIS_HOST", "::1")]).unwrap().redis().place(), "[::1]:6379/0");
    for (name, bad) in [
        ("REDIS_PORT", "tcp://10.0.0.1:6379"),
        ("REDIS_PORT", "0"),
        ("REDIS_HOST", "a:b@c/d"),
        ("REDIS_HOST", ""),
        ("MCP_SESSION_IDLE_TTL", "5m"),
        ("MCP_SESSION_IDLE_TTL", "0"),
        ("MCP_PROCESS_CLEANUP_INTERVAL", "-1"),
    ] {
        let error = completed("", &[(name, bad)]).unwrap_err();
        assert!(error.contains(name) && error.contains("[sessions]") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_password_is_never_shown() {
    for url in [format!("redis://:{SECRET}@h:1/3"), format!("redis://me:{SECRET}@h:1/3?x={SECRET}")] {
        let one = completed(&format!("redis = '{url}'"), &[]).unwrap();
        assert_eq!(one.redis().login.password(), Some(SECRET));
        let config = Config { sessions: Some(one.clone()), ..Config::default() };
        let json = serde_json::to_string(&config).unwrap();
        for shown in
            [config.render(), json, format!("{config:?}"), one.redis().place(), format!("{:?}", one.policy())]
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
        "interval = '1ms'",
        "interval = '2h'",
        "redis = 6379",
        "ttl = '5m'",
    ] {
        let error = parsed(bad).unwrap_err();
        assert!(!error.contains('\n') && error.contains("x.toml:"), "{error}");
    }
}
