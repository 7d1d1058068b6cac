//! Extracts what a package's manifest says about checks: everything except dependencies and the description of the
//! package.
//!
//! A task that needs a new library rightly changes the manifest, so two manifests count as the same if the rest of them
//! is.

use serde_json::Value as Json;
use toml::Value as Toml;

use crate::text::digest;

/// The manifests that are known.
const NAMES: [&str; 3] = ["Cargo.toml", "package.json", "pyproject.toml"];

/// Parts that say nothing about checks, as paths of keys; `*` is any key.
const CARGO_IGNORED: &[&[&str]] = &[
    &["dependencies"],
    &["dev-dependencies"],
    &["build-dependencies"],
    &["target", "*", "dependencies"],
    &["target", "*", "dev-dependencies"],
    &["target", "*", "build-dependencies"],
    &["workspace", "dependencies"],
    &["workspace", "package"],
    &["badges"],
    &["package", "name"],
    &["package", "version"],
    &["package", "description"],
    &["package", "authors"],
    &["package", "license"],
    &["package", "license-file"],
    &["package", "readme"],
    &["package", "repository"],
    &["package", "homepage"],
    &["package", "documentation"],
    &["package", "keywords"],
    &["package", "categories"],
    &["package", "publish"],
    &["package", "include"],
    &["package", "exclude"],
    &["package", "rust-version"],
];
const NODE_IGNORED: &[&[&str]] = &[
    &["dependencies"],
    &["devDependencies"],
    &["peerDependencies"],
    &["peerDependenciesMeta"],
    &["optionalDependencies"],
    &["bundledDependencies"],
    &["bundleDependencies"],
    &["version"],
    &["description"],
    &["keywords"],
    &["author"],
    &["contributors"],
    &["license"],
    &["homepage"],
    &["repository"],
    &["bugs"],
    &["funding"],
    &["files"],
    &["private"],
    &["publishConfig"],
];
const PYTHON_IGNORED: &[&[&str]] = &[
    &["project", "name"],
    &["project", "version"],
    &["project", "description"],
    &["project", "readme"],
    &["project", "requires-python"],
    &["project", "license"],
    &["project", "license-files"],
    &["project", "authors"],
    &["project", "maintainers"],
    &["project", "keywords"],
    &["project", "classifiers"],
    &["project", "urls"],
    &["project", "dependencies"],
    &["project", "optional-dependencies"],
    &["project", "dynamic"],
    &["dependency-groups"],
    &["tool", "poetry", "dependencies"],
    &["tool", "poetry", "dev-dependencies"],
    &["tool", "poetry", "group"],
    &["tool", "poetry", "extras"],
    &["tool", "poetry", "name"],
    &["tool", "poetry", "version"],
    &["tool", "poetry", "description"],
    &["tool", "poetry", "authors"],
    &["tool", "poetry", "readme"],
    &["tool", "uv", "dev-dependencies"],
    &["tool", "pdm", "dev-dependencies"],
];

/// Whether a file is a manifest.
pub(super) fn is_manifest(path: &str) -> bool {
    NAMES.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// Returns a digest of what a manifest says about checks; `None` if it is not a manifest, or unreadable.
pub(super) fn checks_digest(path: &str, bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let relevant = match path.rsplit('/').next().unwrap_or(path) {
        "package.json" => {
            let mut document: Json = serde_json::from_str(text).ok()?;
            for keys in NODE_IGNORED {
                remove_key(&mut document, keys);
            }
            document.to_string()
        }
        name if NAMES.contains(&name) => {
            let document: Toml = Toml::Table(text.parse().ok()?);
            let mut document = serde_json::to_value(document).ok()?;
            let harmless = if name == "Cargo.toml" { CARGO_IGNORED } else { PYTHON_IGNORED };
            for keys in harmless {
                remove_key(&mut document, keys);
            }
            document.to_string()
        }
        _ => return None,
    };
    Some(digest::sha256_hex(relevant.as_bytes()))
}

/// Removes the value at a path of keys, and tables that become empty.
fn remove_key(document: &mut Json, keys: &[&str]) {
    let (Some(table), Some((first, rest))) = (document.as_object_mut(), keys.split_first()) else { return };
    let named: Vec<String> = table.keys().filter(|key| *first == "*" || key == first).cloned().collect();
    for key in named {
        let is_gone = rest.is_empty()
            || table.get_mut(&key).is_some_and(|inner| {
                remove_key(inner, rest);
                inner.as_object().is_some_and(serde_json::Map::is_empty)
            });
        if is_gone {
            table.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_same_checks(path: &str, old: &str, new: &str) -> bool {
        let [old, new] = [old, new].map(|text| checks_digest(path, text.as_bytes()).expect("it can be read"));
        old == new
    }

    #[test]
    fn dependencies_say_nothing_of_checks_and_all_else_does() {
        let cargo = "[package]\nname = \"a\"\n[lib]\ntest = true\n";
        for (new, expected) in [
            ("[package]\nname = \"a\"\nversion = \"2.0.0\"\n[lib]\ntest = true\n[dependencies]\nserde = \"1\"\n", true),
            ("[package]\nname = \"a\"\n[lib]\ntest = true\n[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n", true),
            ("[package]\nname = \"a\"\n[lib]\ntest = false\n", false),
            ("[package]\nname = \"a\"\n[lib]\ntest = true\n[features]\ndefault = []\n", false),
            ("[package]\nname = \"a\"\n[lib]\ntest = true\n[package.metadata.machete]\nignored = [\"b\"]\n", false),
            ("[package]\nname = \"a\"\nautotests = false\n[lib]\ntest = true\n", false),
            ("[package]\nname = \"a\"\n[lib]\ntest = true\n[workspace]\nexclude = [\"b\"]\n", false),
        ] {
            assert_eq!(has_same_checks("crates/a/Cargo.toml", cargo, new), expected, "{new}");
        }
        let node = r#"{"name": "a", "scripts": {"test": "jest"}}"#;
        assert!(has_same_checks(
            "package.json",
            node,
            r#"{"scripts": {"test": "jest"}, "dependencies": {"x": "1"}, "name": "a", "version": "2"}"#
        ));
        assert!(!has_same_checks("package.json", node, r#"{"name": "a", "scripts": {"test": "true"}}"#));
        assert!(!has_same_checks("package.json", node, r#"{"name": "b", "scripts": {"test": "jest"}}"#));
        assert!(!has_same_checks(
            "package.json",
            node,
            r#"{"name": "a", "scripts": {"test": "jest"}, "jest": {"bail": 1}}"#
        ));
        let python = "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n";
        assert!(has_same_checks("pyproject.toml", python, &format!("{python}[dependency-groups]\ndev = [\"x\"]\n")));
        assert!(has_same_checks(
            "pyproject.toml",
            python,
            &format!("{python}[project.optional-dependencies]\nx = []\n")
        ));
        assert!(!has_same_checks("pyproject.toml", python, &python.replace("-q", "--co")));
        let plugin = format!("{python}[project.entry-points.pytest11]\nskips = \"skips\"\n");
        assert!(!has_same_checks("pyproject.toml", python, &plugin));
    }

    #[test]
    fn what_cannot_be_read_or_is_no_manifest_has_no_digest() {
        for (path, text) in [("Cargo.toml", "["), ("package.json", "{"), ("setup.cfg", ""), ("x/Cargo.toml.orig", "")] {
            assert_eq!(checks_digest(path, text.as_bytes()), None, "{path}");
        }
        assert_eq!(checks_digest("Cargo.toml", b"\xff"), None);
    }
}
