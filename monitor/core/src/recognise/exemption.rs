//! Exemptions: by unit and user, and the rule that describes a program.

use super::{Carrier, Program, Role, Rule, RuleError, Rules, may_be, program, text};
use crate::model::{Image, Placement, Unit, redact};

impl Rules {
    /// The name of the rule that exempts the first of these places that one exempts.
    pub fn exempt_one_of(&self, placements: &[Placement]) -> Option<&str> {
        placements.iter().find_map(|one| self.exempts_by(one.unit.as_ref(), &one.slices, one.uid))
    }

    /// The name of the rule that exempts what runs in this unit, below these slices, as this user.
    pub fn exempts_by(&self, unit: Option<&Unit>, slices: &[String], uid: u32) -> Option<&str> {
        self.exempt.iter().find(|rule| rule.is_about(unit, slices, uid)).map(|rule| &*rule.name)
    }

    /// Whether what a program leaves is exempt, a supervisor's or a multiplexer's, by what was kept of its command line: what was
    /// masked or cut off there may have been anything.
    pub fn may_exempt(&self, image: &Image) -> bool {
        self.role(image).leaves_for_good()
            || may_be(image, |program| self.exempt.iter().any(|rule| rule.may_match(program, image)))
    }

    /// The rules that exempt the program of `image`, which works in this folder, under this name. A script that was started by a path
    /// from there can be started by its whole path, too. Empty if no rule can tell it from other programs.
    pub fn exemptions_of(image: &Image, name: &str, folder: Option<&str>) -> Vec<Rule> {
        let Some(rule) = Self::exemption_of(image, name) else { return Vec::new() };
        let whole = folder.and_then(|folder| by_whole_path(image, folder));
        let whole = whole.and_then(|image| Self::exemption_of(&image, name));
        let whole = whole.filter(|whole| whole.patterns() != rule.patterns());
        [rule].into_iter().chain(whole).collect()
    }

    /// The rule that exempts the program of `image` under this name: by its package, its module, its script or its own name, the first
    /// of these that it has. `None` if no rule can tell it from other programs.
    fn exemption_of(image: &Image, name: &str) -> Option<Rule> {
        let words = program::words(image);
        let (first, second) = Program::find(&words, image);
        let program = second.unwrap_or(first);
        // What a program is called is no pattern.
        let owned = |text: &str| text.replace('*', "?");
        let own = (program.carrier == Carrier::Itself).then_some(program.name);
        let ways = [
            program.package.map(owned),
            program.module.map(owned),
            // Not a shell that runs no script.
            script(image, &program).filter(|_| words.first() != Some(&program.path)),
            own.map(owned),
        ];
        // A blank would begin an argument.
        let one_word = |text: String| text.replace(char::is_whitespace, "?");
        let rules = ways.into_iter().flatten().map(|text| Rule {
            name: name.to_owned(),
            program: Some(one_word(text)),
            ..Rule::default()
        });
        let rules = rules.filter_map(|rule| rule.checked().ok());
        let exempts = |rule: &Rule| {
            let rules = Self { exempt: vec![rule.clone()], ..Self::default() };
            matches!(rules.role(image), Role::Exempt { .. })
        };
        rules.into_iter().find(exempts)
    }
}

/// The same program, started by the whole path of the script that was named by a path from this folder.
fn by_whole_path(image: &Image, folder: &str) -> Option<Image> {
    let words = program::words(image);
    let (first, second) = Program::find(&words, image);
    let path = second.unwrap_or(first).path;
    let at = image.argv.iter().position(|word| word == path)?;
    if path.starts_with('/') || !path.contains('/') {
        return None;
    }
    let (mut folder, mut path) = (folder.trim_end_matches('/'), path);
    // The kernel tells a folder without links: up from it leads up in its name.
    while let Some((step @ ("." | ".." | ""), rest)) = path.split_once('/') {
        if step == ".." {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
        path = rest;
    }
    let mut argv = image.argv.clone();
    *argv.get_mut(at)? = format!("{folder}/{path}");
    Some(Image { argv, ..image.clone() })
}

/// The pattern of a script: its path, with * for what may be secret in it. A recording has no more of it, either.
fn script(image: &Image, program: &Program<'_>) -> Option<String> {
    let at = image.argv.iter().position(|word| word == program.path)?;
    let shown = redact::argv(&image.argv).get(at)?.replace("***", "*");
    (!text::base(&shown).contains('*')).then_some(shown)
}

impl Rule {
    /// An exemption of what runs in this unit, as this user, or both.
    pub fn of_place(name: &str, unit: Option<String>, user: Option<String>) -> Result<Self, RuleError> {
        Self { name: name.to_owned(), unit, user, ..Self::default() }.checked()
    }

    /// Whether the rule is about what runs in this unit, below these slices, as the user with this number.
    pub(super) fn is_about(&self, unit: Option<&Unit>, slices: &[String], uid: u32) -> bool {
        let mut names = unit.iter().map(|unit| &unit.name).chain(slices);
        self.is_about_place()
            && (self.unit.is_none() || names.any(|name| self.names_unit(name)))
            && self.user.as_ref().is_none_or(|user| *user == uid.to_string())
    }

    /// Puts a user's number in place of the name. Returns a name that `number` does not know.
    pub fn resolve_user(&mut self, number: impl Fn(&str) -> Option<u32>) -> Result<(), String> {
        let Some(user) = self.user.as_mut().filter(|user| user.parse::<u32>().is_err()) else {
            return Ok(());
        };
        *user = number(user).ok_or_else(|| user.clone())?.to_string();
        Ok(())
    }

    /// What it matches, as in the configuration: `program = "@me/broker"`.
    pub fn patterns(&self) -> String {
        let mut table = toml::Table::try_from(self).unwrap_or_default();
        table.remove("name");
        table.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(argv: &[&str]) -> Image {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        Image { exe: argv[0].clone(), argv, argv_truncated: false }
    }

    fn exemption(argv: &[&str]) -> Option<String> {
        Rules::exemption_of(&image(argv), "mine").map(|rule| rule.patterns())
    }

    #[test]
    fn a_script_that_was_named_from_a_folder_is_exempt_by_its_whole_path_too() {
        for (argv, whole) in [
            (&["/usr/bin/node", "build/index.js"][..], Some("/srv/p1/build/index.js")),
            (&["/usr/bin/python3", "./mcp-server-x"], Some("/srv/p1/mcp-server-x")),
            (&["/usr/bin/python3", ".././../other/x.py"], Some("/other/x.py")),
            (&["/usr/bin/python3", "../../../x.py"], Some("/x.py")),
            // These are known in another way, or are no paths from a folder.
            (&["/usr/bin/python3", "server.py"], None),
            (&["/usr/bin/python3", "/srv/server.py"], None),
            (&["/usr/bin/node", "node_modules/@me/broker/dist/index.js"], None),
            (&["/usr/bin/npx", "-y", "@me/broker"], None),
        ] {
            let image_of_whole = image(&[argv[0], whole.unwrap_or_default()]);
            let rules = Rules::exemptions_of(&image(argv), "mine", Some("/srv/p1"));
            assert_eq!(rules.len(), 1 + usize::from(whole.is_some()), "{rules:?}");
            assert_eq!(Rules::exemptions_of(&image(argv), "mine", None), rules[..1]);
            let rules = Rules { exempt: rules, ..Rules::default() };
            let exempts = |image: &Image| matches!(rules.role(image), Role::Exempt { .. });
            assert!(exempts(&image(argv)));
            assert_eq!(exempts(&image_of_whole), whole.is_some(), "{whole:?}");
            assert!(!exempts(&image(&[argv[0], "/srv/p2/build/index.js"])));
        }
        assert!(Rules::exemptions_of(&image(&["bash"]), "mine", Some("/")).is_empty());
    }

    #[test]
    fn a_program_is_described_by_what_it_is_known_by() {
        for (argv, patterns) in [
            (
                &["/usr/bin/node", "/x/node_modules/@me/broker-mcp/dist/index.js"][..],
                r#"program = "@me/broker-mcp""#,
            ),
            (&["python3", "-m", "mcp_server_git", "--repo", "/x"], r#"program = "mcp_server_git""#),
            (
                &["/usr/bin/python3", "/srv/tools/server.py", "--token", "x"],
                r#"program = "/srv/tools/server.py""#,
            ),
            (&["python3", "/tmp/x-8fQ2zLk91x/bin/mcp-server"], r#"program = "/tmp/*/bin/mcp-server""#),
            (&["node", "build/index.js"], r#"program = "build/index.js""#),
            (&["/usr/local/bin/mcp-grafana", "-t", "stdio"], r#"program = "mcp-grafana""#),
            (&["npx", "-y", "@playwright/mcp@latest"], r#"program = "@playwright/mcp""#),
            (&["/home/eve/mcp-*"], r#"program = "mcp-?""#),
        ] {
            assert_eq!(exemption(argv).as_deref(), Some(patterns), "{argv:?}");
        }
        // A shell or an interpreter alone is not one program.
        for argv in [&["bash"][..], &["python3"], &["sh", "-c", "x | y"], &[""]] {
            assert_eq!(exemption(argv), None, "{argv:?}");
        }
    }

    #[test]
    fn what_was_masked_or_cut_off_may_have_been_anything() {
        let may = |rule: &str, words: &str, cut_off: bool| {
            let rules = format!("[[exempt]]\nname = 'x'\nprogram = '{rule}'");
            let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let image = Image::new(argv[0].clone(), argv, cut_off);
            Rules::from_source(&rules).unwrap().may_exempt(&image)
        };
        for (rule, words, cut_off, exempt) in [
            ("bot --project shop", "bot --project shop", false, true),
            ("bot --project shop", "bot --project ***", false, true),
            ("bot --project shop", "bot --project farm", false, false),
            ("bot --project shop", "bot --project", true, true),
            ("bot --project shop", "bot --project", false, false),
            ("/srv/shop/bot.py", "python3 /srv/***/bot.py", false, true),
            ("/srv/shop/bot.py", "python3 /srv/***/other.py", false, false),
            ("/srv/shop/bot.py", "python3 /srv/farm/bot.py", false, false),
            ("other", "bot --project ***", true, false),
        ] {
            assert_eq!(may(rule, words, cut_off), exempt, "{rule}: {words}");
        }
    }

    #[test]
    fn a_place_is_exempt_if_all_of_it_holds() {
        let unit = |name: &str| Unit { manager: String::new(), name: name.to_owned() };
        let none: &[String] = &[];
        let rules = |text: &str| Rules::from_source(text).unwrap();
        let exempts = |rules: &Rules, unit: Option<&Unit>, slices: &[String], uid| {
            rules.exempts_by(unit, slices, uid).is_some()
        };
        let units = rules("[[exempt]]\nname = 'x'\nunit = 'bot@*.service'");
        assert!(exempts(&units, Some(&unit("bot@1.service")), none, 7));
        assert!(!exempts(&units, Some(&unit("bit.service")), none, 7) && !exempts(&units, None, none, 7));
        let users = rules("[[exempt]]\nname = 'x'\nuser = '1000'");
        assert!(exempts(&users, None, none, 1000) && !exempts(&users, None, none, 100));
        let both = rules("[[exempt]]\nname = 'x'\nuser = '1000'\nunit = 'bot.service'");
        assert!(exempts(&both, Some(&unit("bot.service")), none, 1000));
        assert!(!exempts(&both, Some(&unit("bot.service")), none, 0) && !exempts(&both, None, none, 1000));
        assert!(!exempts(&Rules::default(), Some(&unit("bot.service")), none, 0));
        assert!(!exempts(&rules("[[exempt]]\nname = 'x'\nprogram = 'x'"), None, none, 0));
        let slices = rules("[[exempt]]\nname = 'x'\nunit = 'mcp-*.slice'");
        let below = |name: &str| ["user.slice".to_owned(), name.to_owned()];
        assert!(exempts(&slices, None, &below("mcp-team.slice"), 7));
        assert!(exempts(&slices, Some(&unit("bot.service")), &below("mcp-team.slice"), 7));
        assert!(!exempts(&slices, Some(&unit("bot.service")), &below("app.slice"), 7));
    }

    #[test]
    fn a_name_of_a_user_becomes_a_number() {
        let mut rule = Rule::of_place("x", None, Some("alice".to_owned())).unwrap();
        assert_eq!(rule.clone().resolve_user(|_| None), Err("alice".to_owned()));
        rule.resolve_user(|name| (name == "alice").then_some(1000)).unwrap();
        assert_eq!(rule.patterns(), r#"user = "1000""#);
        rule.resolve_user(|_| None).unwrap();
    }

    #[test]
    fn a_key_is_refused_where_it_means_nothing() {
        for (table, keys, why) in [
            ("program", "unit = 'x.service'\nkind = 'server'", "unit is for [[agent]] and [[exempt]] only"),
            ("agent", "unit = 'x.slice'", "is not a service"),
            ("agent", "user = 'alice'", "user is for [[exempt]] only"),
            ("program", "user = 'alice'", "user is for [[exempt]] only"),
            ("exempt", "program = 'x'\nreap = true", "are for [[agent]] only"),
            ("exempt", "program = 'x'\nuser = 'alice'", "takes no program"),
            ("exempt", "user = ''", "user is empty"),
            ("exempt", "unit = 'x.scope'", "is not a service"),
        ] {
            let error = Rules::from_source(&format!("[[{table}]]\nname = 'x'\n{keys}")).unwrap_err();
            assert!(error.to_string().contains(why), "{table}: {error}");
        }
    }
}
