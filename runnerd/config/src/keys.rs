//! Types for describing a configuration key: its type, default and meaning; and the lookup of keys.
//!
//! The keys themselves are listed in [`super::table`].

/// A table of a configuration file and the keys that it may contain.
#[derive(Debug)]
pub(super) struct ConfigSection {
    /// The dotted header, empty for the top level; `*` stands for any single name.
    pub(super) path: &'static str,
    /// What the section is about.
    pub(super) doc: &'static str,
    /// Its keys in display order.
    pub(super) keys: &'static [KeyDefinition],
    /// How the default file shows it.
    pub(super) shown: SectionDisplay,
}

/// How a section appears in the file written by `init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionDisplay {
    /// With every key and its default, as comments below its header.
    Full,
    /// With these lines, commented out: it overrides some keys of another section.
    Override(&'static [&'static str]),
    /// With these lines, commented out: it exists once per name, by default not at all.
    Entry(&'static [&'static str]),
}

/// One key of a section.
#[derive(Debug)]
pub(super) struct KeyDefinition {
    pub(super) name: &'static str,
    pub(super) kind: ValueKind,
    pub(super) default: KeyDefault,
    pub(super) doc: &'static str,
}

impl KeyDefinition {
    pub(super) const fn new(name: &'static str, kind: ValueKind, default: KeyDefault, doc: &'static str) -> Self {
        Self { name, kind, default, doc }
    }
}

/// The value of a key that the file does not set.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyDefault {
    /// This value, as TOML.
    Toml(&'static str),
    /// No value; the TOML is an example.
    Example(&'static str),
    /// An error.
    Required,
}

/// The values that a key takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueKind {
    /// A whole number within bounds.
    Number { min: u64, max: u64 },
    /// An amount of money, zero or more.
    Dollars,
    /// `true` or `false`.
    Flag,
    /// Any text, the empty one too.
    Text,
    /// A text that is not empty.
    Name,
    /// An absolute path.
    AbsolutePath,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A list of such words.
    Choices(&'static [&'static str]),
    /// A program and its arguments; an empty list means none.
    Argv { required: bool },
    /// Arguments for a program that is configured elsewhere.
    Arguments,
    /// Parts of a person's own set-up of an agent's program.
    Inherited,
    /// Names of Markdown files in the root of the repository.
    RootPages,
    /// Names, or globs for names of this kind.
    Patterns(GlobSubject),
}

/// What globs are matched against. One that cannot match anything is an error.
#[derive(Debug, Clone, Copy)]
pub(super) enum GlobSubject {
    /// Variables of an environment.
    Variables,
    /// Files, by their names without directories.
    FileNames,
    /// Files of the repository, by names or by paths from its root.
    Paths,
    /// Branches, without `refs/heads/`.
    Branches,
    /// Files and directories of the repository, except the runner's.
    Scope,
}

impl GlobSubject {
    /// Whether a glob can match anything of this kind.
    pub(super) fn can_match(self, pattern: &str) -> bool {
        let glob = pattern.strip_prefix('!').unwrap_or(pattern);
        let is_one_word = || !glob.contains(char::is_whitespace);
        let has_names = |path: &str| !path.split('/').any(|name| ["", ".", ".."].contains(&name));
        match self {
            _ if glob.is_empty() => false,
            Self::Variables => is_one_word() && !glob.contains(['=', '/']),
            Self::FileNames => has_names(glob) && !glob.contains('/'),
            Self::Paths => has_names(glob.strip_prefix('/').unwrap_or(glob)),
            Self::Branches => is_one_word() && has_names(glob) && !glob.starts_with("refs/heads/"),
            Self::Scope => is_scope_glob(pattern),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Variables => "a list of names of variables or globs of them, without their values",
            Self::FileNames => "a list of names of files or globs of them, without directories",
            Self::Paths => "a list of names or paths within the repository, or globs of them",
            Self::Branches => "a list of names of branches or globs of them, without refs/heads/",
            Self::Scope => {
                "a list of names or paths within the repository, or globs of them, outside .runner/ and without \"!\""
            }
        }
    }
}

/// Whether a glob can be part of a scope: it names files or directories of the repository, none of them the runner's.
pub fn is_scope_glob(glob: &str) -> bool {
    let path = glob.strip_prefix('/').unwrap_or(glob);
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_name = |name: &str| !["", ".", ".."].contains(&name) && !name.contains(char::is_control);
    !glob.starts_with('!') && path.split('/').all(is_name) && path.split('/').next() != Some(".runner")
}

impl ValueKind {
    /// The upper bound for numbers without their own one; TOML has no larger ones.
    pub(super) const UNBOUNDED: u64 = i64::MAX.unsigned_abs();

    /// Describes the allowed values, as the end of a sentence that begins with "must be".
    pub(super) fn expected(self) -> String {
        match self {
            Self::Number { min, max: Self::UNBOUNDED } => format!("a whole number of at least {min}"),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Dollars => "an amount of dollars, 0 or more".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Name => "a string that is not empty".to_owned(),
            Self::AbsolutePath => "an absolute path".to_owned(),
            Self::Choice(words) => format!("one of {}", quote_words(words)),
            Self::Choices(words) => format!("a list of {}", quote_words(words)),
            Self::Argv { required: true } => "a program and its arguments as a list of strings".to_owned(),
            Self::Argv { required: false } => {
                "a program and its arguments as a list of strings, or an empty list".to_owned()
            }
            Self::Arguments => "a list of strings".to_owned(),
            Self::Inherited => "a list of \"settings\", \"skills\" and \"mcp:NAME\"".to_owned(),
            Self::RootPages => "a list of names that end in .md, without directories".to_owned(),
            Self::Patterns(named) => named.expected().to_owned(),
        }
    }

    /// Returns the allowed words, if the key takes one of a few; otherwise empty.
    pub(super) fn choices(self) -> &'static [&'static str] {
        if let Self::Choice(words) = self {
            words
        } else if let Self::Flag = self {
            &["true", "false"]
        } else {
            &[]
        }
    }

    /// Whether it is a command or its arguments.
    pub(super) fn is_command(self) -> bool {
        matches!(self, Self::Argv { .. } | Self::Arguments)
    }

    /// Whether a bare word on a command line can only be a string.
    pub(super) fn is_textual(self) -> bool {
        matches!(self, Self::Text | Self::Name | Self::AbsolutePath | Self::Choice(_))
    }
}

fn quote_words(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

/// Finds the section with this path, its names unquoted.
pub(super) fn find_section(sections: &'static [ConfigSection], path: &[&str]) -> Option<&'static ConfigSection> {
    sections.iter().find(|section| {
        let parts = section.parts();
        parts.len() == path.len() && matches_path(&parts, path)
    })
}

/// Whether a section is at this path or below it.
pub(super) fn leads_to_section(sections: &[ConfigSection], path: &[&str]) -> bool {
    sections.iter().any(|section| {
        let parts = section.parts();
        parts.len() >= path.len() && matches_path(&parts, path)
    })
}

fn matches_path(parts: &[&str], path: &[&str]) -> bool {
    parts.iter().zip(path).all(|(part, name)| *part == "*" || part == name)
}

impl ConfigSection {
    /// Returns the names in the dotted path; empty for the top level.
    pub(super) fn parts(&self) -> Vec<&'static str> {
        self.path.split('.').filter(|part| !part.is_empty()).collect()
    }

    /// Finds a key by its name.
    pub(super) fn key(&self, name: &str) -> Option<&'static KeyDefinition> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// Finds the key that was probably intended by `name` in the section at `path`.
pub(super) fn find_nearest_key(sections: &'static [ConfigSection], path: &[&str], name: &str) -> Option<String> {
    let here = find_section(sections, path).map_or(&[][..], |section| section.keys);
    let below = sections.iter().filter_map(|section| {
        let parts = section.parts();
        (parts.len() > path.len() && matches_path(&parts, path)).then(|| parts[path.len()])
    });
    let candidates = here.iter().map(|key| key.name).chain(below.filter(|part| *part != "*"));
    let elsewhere = || {
        let full_sections = sections.iter().filter(|section| section.shown == SectionDisplay::Full);
        let matching = full_sections.filter(|section| section.key(name).is_some());
        let keys: Vec<_> = matching.map(|section| dotted_key(&section.parts(), name)).collect();
        (!keys.is_empty()).then(|| keys.join("` or `"))
    };
    find_nearest_word(name, candidates).map(str::to_owned).or_else(elsewhere)
}

/// Finds the candidate that differs from `word` by at most a few letters.
pub(super) fn find_nearest_word<'w>(word: &str, candidates: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Joins names into a dotted key, quoting those that are not bare keys in TOML.
pub(super) fn dotted_key(path: &[&str], name: &str) -> String {
    let parts: Vec<_> = path.iter().chain([&name]).map(|part| quote_part(part)).collect();
    parts.join(".")
}

fn quote_part(part: &str) -> String {
    toml_edit::Key::new(part).display_repr().into_owned()
}
