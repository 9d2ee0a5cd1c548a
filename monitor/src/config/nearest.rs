//! Suggestions for unknown keys. Pure.

use super::options::{self, Kind, Section};

/// The most similar known key, if there is one, and the advice. `within` is the table with the unknown key, or the top.
pub(super) fn advice(name: &str, within: &'static Section) -> (Option<&'static str>, String) {
    let known: Vec<_> = match within.kind {
        Kind::Top => options::names(),
        _ => within.keys.iter().map(|key| key.name.as_str()).collect(),
    };
    // A frequent mistake: a top-level key below the header of a table.
    if within.kind != Kind::Top && options::top().key(name).is_some() {
        return (None, "it is a top-level key: write it above the first [table]".to_owned());
    }
    if let Some(near) = nearest(name, &known) {
        return (Some(near), format!("did you mean \"{near}\"?"));
    }
    match options::sections().find(|section| section.key(name).is_some()) {
        Some(section) => (None, format!("it is a key of {}: write it below that header", section.header())),
        None => (None, format!("known keys are {}", known.join(", "))),
    }
}

/// The advice for a name that is not one of `known`.
pub(super) fn among(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or_else(
        || format!("known names are {}", known.join(", ")),
        |near| format!("did you mean \"{near}\"?"),
    )
}

/// The most similar known key.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name: String = name.to_lowercase().replace('-', "_");
    // A long text is no misspelt key, and comparing it takes time.
    if name.chars().nth(64).is_some() {
        return None;
    }
    let distance = |key: &str| strsim::damerau_levenshtein(&name, key);
    let near = known.iter().copied().min_by_key(|key| distance(key))?;
    let begins = |key: &&str| name.len() >= 3 && (key.starts_with(&name) || name.starts_with(*key));
    if distance(near) <= 1 + near.len() / 4 { Some(near) } else { known.iter().copied().find(begins) }
}
