//! Who called the ports of servers, in a file of its own beside the store: what the kernel side has written down ends with the
//! daemon, and the next one must not take for unused what is called now and then.
//!
//! Invariant: what is kept of another boot says nothing about this one's processes.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::os::{if_there, replace_file};

const FILE: &str = "calls.json";

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    boot: String,
    ports: T,
}

/// What an earlier daemon of this boot has kept. Where that cannot be read it is not known who called.
pub fn read<T: DeserializeOwned + Default>(dir: &Path, boot: &str) -> T {
    let path = dir.join(FILE);
    // One record a port at most. Nobody else writes here.
    let kept = if_there(fs::read(&path))
        .and_then(|text| Ok(text.map(|text| serde_json::from_slice(&text)).transpose()?));
    match kept {
        Ok(Some(Kept { boot: of, ports })) if of == boot => ports,
        Ok(_) => T::default(),
        Err(error) => {
            tracing::warn!("who called servers before is not known: cannot read {}: {error}", path.display());
            T::default()
        }
    }
}

pub fn write<T: Serialize>(dir: &Path, boot: &str, ports: T) -> io::Result<()> {
    replace_file(&dir.join(FILE), &serde_json::to_vec(&Kept { boot: boot.to_owned(), ports })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_in_the_same_boot_only() {
        let dir = tempfile::tempdir().unwrap();
        let calls = || read::<Vec<u16>>(dir.path(), "a");
        assert!(calls().is_empty());
        write(dir.path(), "a", vec![80]).unwrap();
        assert_eq!((calls(), read::<Vec<u16>>(dir.path(), "b")), (vec![80], vec![]));
        for broken in ["", "{\"boot\":", "{\"boot\": \"a\", \"ports\": [99999]}"] {
            fs::write(dir.path().join(FILE), broken).unwrap();
            assert!(calls().is_empty(), "{broken:?}");
        }
    }
}
