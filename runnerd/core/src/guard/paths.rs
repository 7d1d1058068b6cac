//! What the paths of files say, and globs that match them.

/// Parts of a path by which a script that is no shell's is a check, and not what is checked.
const CHECK_DIRS: [&str; 13] = [
    "ci", "scripts", "script", "tools", "hack", "checks", "check", "lint", "verify", "guard", "github", "devtools",
    "bin",
];

/// Returns the last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns what stands behind a variable that is not known, where that is a folder.
pub(super) fn after_variable(path: &str) -> &str {
    path.split_once('/').filter(|(start, _)| start.contains('$')).map_or(path, |(_, rest)| rest)
}

/// Returns a path in whose folder a name is not known as a pattern.
pub(super) fn widen_pattern(path: String) -> String {
    match path.split_once('/') {
        Some((start, rest)) if rest.contains('$') => format!("{start}/{}", rest.replace('$', "*")),
        _ => path,
    }
}

/// Tells whether a path is a pattern.
pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Tells whether a path is written as those of scripts are: other text only looks like one.
pub(super) fn is_plain(path: &str) -> bool {
    path.chars().all(|c| c.is_alphanumeric() || "/._-+@~,$*?[]!".contains(c))
}

/// Tells whether a path says more than that it is one.
pub(super) fn is_specific(path: &str) -> bool {
    path.contains(|c: char| c.is_alphanumeric())
}

/// Tells whether a file of this name is made by what it is read by: dependencies of a compiler, an environment of Python
/// or of JavaScript.
pub(super) fn is_generated(path: &str) -> bool {
    let name = file_name(path);
    name.ends_with("depend")
        || ["venv/", "node_modules/"].iter().any(|folder| path.contains(folder))
        || matches!(name.rsplit('.').next(), Some("d" | "dep" | "deps" | "P" | "Po" | "Plo"))
}

/// Returns a pattern from the root of the repository.
pub(super) fn glob_in(folder: &str, pattern: &str) -> Option<String> {
    let path = normalize_path(&escape_glob(folder), pattern).filter(|path| !path.contains('$'))?;
    Some(format!("/{path}"))
}

/// Tells whether a file is a shell script.
pub(super) fn is_shell(path: &str, bytes: &[u8]) -> bool {
    let name = file_name(path);
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let is_run = first.starts_with("#!") && first.split(['/', ' ']).any(|word| word.ends_with("sh"));
    is_run
        || [".sh", ".bash", ".zsh", ".ksh", ".bats"].iter().any(|ending| name.ends_with(ending))
        || (!name.contains('.') && !first.starts_with("#!"))
}

/// Tells whether a script checks, and is not what is checked.
pub(super) fn is_check_script(path: &str) -> bool {
    path.split(['/', '.', '_', '-']).any(|part| CHECK_DIRS.contains(&part))
}

/// Returns a path from the root of the repository; none where it leads out of it.
pub(super) fn normalize_path(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~', '-']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns a glob that matches this path.
pub(super) fn escape_glob(path: &str) -> String {
    path.replace(['*', '?', '[', ']', '!'], "?")
}
