//! Tools whose short options carry a secret.

use super::key;

/// Options and the kinds of their values.
type Options = &'static [(&'static str, Style)];

/// Tools and their options that carry a secret. Each option is unambiguous only after one of these names, or
/// after a verb.
const TOOLS: &[(&[&str], Options)] = &[
    (
        &[
            "sshpass",
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "mongoimport",
            "cqlsh",
            "login",
        ],
        &[("-p", Style::Either)],
    ),
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlsh",
            "mysqlimport",
            "mysqlcheck",
            "mycli",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
            "7z",
            "7za",
            "7zz",
            "rar",
            "unrar",
        ],
        &[("-p", Style::Attached)],
    ),
    (&["redis-cli", "valkey-cli", "keydb-cli"], &[("-a", Style::Separate)]),
    (&["sqlcmd", "bcp", "ipmitool", "zip", "unzip", "tsql"], &[("-P", Style::Either)]),
    (
        &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"],
        &[("-w", Style::Either)],
    ),
    (&["openssl"], &[("-pass", Style::Separate), ("-k", Style::Separate), ("-K", Style::Separate)]),
    (&["wscat"], &[("--auth", Style::UserPassword), ("-H", Style::None)]),
    (
        &["curl"],
        &[
            ("-u", Style::UserPassword),
            ("--user", Style::UserPassword),
            ("-U", Style::UserPassword),
            ("--proxy-user", Style::UserPassword),
            ("-b", Style::Cookie),
            ("--cookie", Style::Cookie),
        ],
    ),
    (&["http", "https", "httpie", "xh"], &[("-a", Style::MaybeUserPassword)]),
    (&["smbclient", "smbmap", "rpcclient"], &[("-U", Style::UserPercent)]),
    // Here `-u` and `--user` are a user and a group.
    (
        &["docker", "podman", "nerdctl", "buildah", "docker-compose", "chroot", "setpriv", "systemd-run"],
        &[("-u", Style::None), ("--user", Style::None)],
    ),
];

/// The meaning of `-u` and `--user` for any other program.
const ANY: Options = &[
    ("-u", Style::MaybeUserPassword),
    ("--user", Style::MaybeUserPassword),
    ("--userpwd", Style::UserPassword),
];

/// The kind of a short option's value, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Not a secret.
    None,
    Attached,
    Separate,
    Either,
    /// `user:password`.
    UserPassword,
    /// `user:password`, unless it looks like a host and its port or like a URL.
    MaybeUserPassword,
    /// `user%password`.
    UserPercent,
    /// `name=value; ..`, or a file.
    Cookie,
}

/// A tool, as an index into the table.
pub(super) type Tool = usize;

/// The tool that `word` is, if it is one.
pub(super) fn find(word: &str) -> Option<Tool> {
    let name = word.rsplit('/').next().unwrap_or_default();
    TOOLS.iter().position(|(names, _)| names.contains(&name))
}

/// The option of `tool` at the start of `word`, the text attached to it, and the kind of its value.
pub(super) fn option(tool: Option<Tool>, word: &str) -> Option<(&'static str, &str, Style)> {
    // `-password` is not `-p`.
    if key::takes_secret(word) {
        return None;
    }
    let own = tool.and_then(|tool| TOOLS.get(tool)).map_or(&[][..], |(_, options)| options);
    own.iter().chain(ANY).find_map(|(option, style)| {
        let attached = word.strip_prefix(option)?;
        // The value of a long option follows `=` or is the next word.
        let fits = !option.starts_with("--") || attached.is_empty() || attached.starts_with('=');
        fits.then_some((*option, attached, *style))
    })
}
