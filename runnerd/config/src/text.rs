//! Texts generated from the table of keys: the commented default files and the reference page.

use std::fmt::Write;

use super::keys::{ConfigSection, KeyDefault, KeyDefinition, SectionDisplay};
use super::proposal::{self, SetupProposal};
use super::table;

const REPOSITORY_HEADER: &str = "\
# Configuration of this repository for runnerd. Every key is shown as a comment, with its default.
# A session is run with the version of this file at the commit it starts from.
# Change it with `runnerctl config set` or `runnerctl config edit`, or by hand and commit it.
";

const DAEMON_HEADER: &str = "\
# Settings of this user's runnerd. Every key is shown as a comment, with its default.
";

const REFERENCE_HEADER: &str = "\
# Configuration

This page is generated from the table of keys in the daemon. An unknown key or a value that does
not fit is an error that names file, line and column. Amounts of bytes and seconds are whole
numbers. Globs: `*` and `?` stay within one path component, `**` does not, `[a-z]` is a class; a
pattern without `/` names a file in any directory.
";

/// Returns the `config.toml` that `init` writes into a repository.
pub fn default_text() -> String {
    render_default_file(REPOSITORY_HEADER, table::REPOSITORY)
}

/// Returns the `config.toml` that `init` writes into a work tree, with suggestions for it.
pub fn default_text_with(proposal: Option<&SetupProposal>) -> String {
    let text = default_text();
    proposal.map_or_else(|| text.clone(), |proposal| proposal::append_proposal(&text, proposal))
}

/// Returns a `config.toml` for the daemon with every key and its default.
pub fn daemon_default_text() -> String {
    render_default_file(DAEMON_HEADER, table::DAEMON)
}

/// Returns the reference page in Markdown.
pub fn reference_page() -> String {
    let mut page = REFERENCE_HEADER.to_owned();
    page.push_str("\n## A repository: `.runner/state/config.toml`\n");
    for section in table::REPOSITORY {
        push_reference(&mut page, section);
    }
    page.push_str("\n## The daemon: `$XDG_CONFIG_HOME/runnerd/config.toml`\n");
    for section in table::DAEMON {
        push_reference(&mut page, section);
    }
    page
}

fn render_default_file(header: &str, sections: &[ConfigSection]) -> String {
    let mut text = header.to_owned();
    for section in sections {
        text.push('\n');
        push_line(&mut text, &format!("# {}", section.doc));
        match section.shown {
            SectionDisplay::Full => push_section(&mut text, section),
            SectionDisplay::Override(lines) | SectionDisplay::Entry(lines) => {
                push_line(&mut text, &format!("# [{}]", render_example_path(section)));
                for line in lines {
                    push_line(&mut text, &format!("# {line}"));
                }
            }
        }
    }
    text
}

fn push_section(text: &mut String, section: &ConfigSection) {
    if !section.path.is_empty() {
        push_line(text, &format!("[{}]", section.path));
    }
    for KeyDefinition { name, default, doc, .. } in section.keys {
        text.push('\n');
        push_line(text, &format!("# {doc}"));
        match default {
            // Keys that are not set follow the defaults of later versions.
            KeyDefault::Toml(toml) | KeyDefault::Example(toml) => push_line(text, &format!("# {name} = {toml}")),
            KeyDefault::Required => {}
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn render_example_path(section: &ConfigSection) -> String {
    section.path.replace('*', "\"model-name\"")
}

fn push_reference(page: &mut String, section: &ConfigSection) {
    if !section.path.is_empty() {
        let path = section.path.replace('*', "\"<model>\"");
        push_line(page, &format!("\n### `[{path}]`"));
    }
    push_line(page, &format!("\n{}", section.doc));
    if matches!(section.shown, SectionDisplay::Override(_)) {
        return;
    }
    push_line(page, "\n| key | value | default | meaning |\n|---|---|---|---|");
    for key in section.keys {
        let default = match key.default {
            KeyDefault::Toml(toml) => format!("`{toml}`"),
            KeyDefault::Example(_) => "off".to_owned(),
            KeyDefault::Required => "required".to_owned(),
        };
        let KeyDefinition { name, kind, doc, .. } = key;
        writeln!(page, "| `{name}` | {} | {default} | {doc} |", kind.expected())
            .expect("BUG: writing to a string failed");
    }
}
