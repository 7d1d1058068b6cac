//! The MCP servers that a session takes from the person's own set-up of its program.
//!
//! The person's file is read, and never changed; nothing else of it counts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_config::Executor;
use serde_json::{Map, Value};

use super::agent_unavailable::AgentUnavailable;
use super::backend::AgentBackend;
use super::regular_file;

/// Size limit in bytes of the person's file.
const MAX_SETUP: u64 = 16 << 20;

/// The file in which a program keeps the person's servers.
#[derive(Debug)]
pub(super) struct ServerFile {
    /// Its path.
    pub(super) path: PathBuf,
    /// The key of the table with one server for each name.
    pub(super) key: &'static str,
    /// Parses it; `None` if it is invalid.
    pub(super) parse: fn(&str) -> Option<Value>,
}

impl ServerFile {
    /// A file of JSON.
    pub(super) fn json(path: PathBuf, key: &'static str) -> Self {
        Self { path, key, parse: |text| serde_json::from_str(text).ok() }
    }
}

/// Returns the servers that a configuration names, as the person's file describes them.
pub(super) fn find_servers(
    backend: &dyn AgentBackend,
    executor: &Executor,
    env: &[(OsString, OsString)],
) -> Result<Map<String, Value>, AgentUnavailable> {
    let mut names = executor.inherit.servers().peekable();
    if names.peek().is_none() {
        return Ok(Map::new());
    }
    let fix = "take it out of executor.inherit in .runner/state/config.toml, or add it to the program's own settings";
    let Some(file) = backend.server_file(env) else {
        return Err(AgentUnavailable::new(format!("{} has no file with MCP servers", executor.kind), fix));
    };
    let known = read_servers(&file).map_err(|what| AgentUnavailable::new(what, fix))?;
    names
        .map(|name| {
            let server = known.get(name).ok_or_else(|| {
                let what = format!("the MCP server `{name}` is not in `{}` of {}", file.key, file.path.display());
                AgentUnavailable::new(what, fix)
            })?;
            Ok((name.to_owned(), server.clone()))
        })
        .collect()
}

fn read_servers(file: &ServerFile) -> Result<Map<String, Value>, String> {
    Ok(read_setup(file)?.get(file.key).and_then(Value::as_object).cloned().unwrap_or_default())
}

/// Returns the whole content of the file, or why it cannot be used.
pub(super) fn read_setup(file: &ServerFile) -> Result<Value, String> {
    let failed = |why: String| format!("your set-up in {} cannot be read: {why}", file.path.display());
    let text = read_text(&file.path).map_err(failed)?;
    (file.parse)(&text).ok_or_else(|| failed("it is invalid, or has comments".to_owned()))
}

fn read_text(path: &Path) -> Result<String, String> {
    // It may be a link of the person's own.
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let bytes = regular_file::read_regular(&path, MAX_SETUP).map_err(|error| error.to_string())?;
    let bytes = bytes.filter(|bytes| (bytes.len() as u64) < MAX_SETUP).ok_or("it is too large")?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use runner_config::ExecutorKind;

    use super::super::backends::backend_for;
    use super::*;

    fn find(kind: ExecutorKind, home: &Path, inherit: &str) -> Result<Map<String, Value>, AgentUnavailable> {
        let text = format!("[executor]\nkind = {:?}\ninherit = {inherit}", kind.as_str());
        let executor = runner_config::parse(&text, Path::new("config.toml")).unwrap().executor.work;
        find_servers(backend_for(kind), &executor, &[("HOME".into(), home.into())])
    }

    #[test]
    fn servers_are_found_where_each_program_keeps_them() {
        let json = r#"{"mcpServers": {"one": {"command": "a"}, "two": {"command": "b"}}}"#;
        let cases = [
            (ExecutorKind::Claude, ".claude.json", json),
            (ExecutorKind::Gemini, ".gemini/settings.json", json),
            (
                ExecutorKind::Codex,
                ".codex/config.toml",
                "[mcp_servers.one]\ncommand = \"a\"\n[mcp_servers.two]\ncommand = \"b\"",
            ),
            (
                ExecutorKind::Opencode,
                ".config/opencode/opencode.json",
                r#"{"mcp": {"one": {"command": "a"}, "two": {"command": "b"}}}"#,
            ),
        ];
        for (kind, file, text) in cases {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let absent = find(kind, home.path(), r#"["mcp:one"]"#).unwrap_err();
            assert!(absent.what.contains("cannot be read"), "{kind}: {absent}");
            fs::write(home.path().join("own"), text).unwrap();
            symlink(home.path().join("own"), &file).unwrap();
            assert_eq!(find(kind, home.path(), r#"["settings", "skills"]"#).unwrap(), Map::new(), "{kind}");
            let found = find(kind, home.path(), r#"["mcp:one"]"#).unwrap();
            assert_eq!(Value::Object(found), serde_json::json!({"one": {"command": "a"}}), "{kind}");
            let unknown = find(kind, home.path(), r#"["mcp:one", "mcp:three"]"#).unwrap_err();
            assert!(unknown.what.contains("`three` is not in"), "{kind}: {unknown}");
            for invalid in ["{\"mcpServers\": [", "{\"mcp\": 1", "[mcp_servers", "\u{0}"] {
                fs::write(&file, invalid).unwrap();
                assert!(find(kind, home.path(), r#"["mcp:one"]"#).is_err(), "{kind}: {invalid}");
            }
        }
    }
}
