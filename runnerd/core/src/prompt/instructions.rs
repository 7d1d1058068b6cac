//! Instructions of a repository for everybody who works on it, such as `AGENTS.md`: the files that count, and their
//! section.
//!
//! Agents are told not to read these files by themselves, so that all of them get the same, from From.

use super::section::{PromptSection, SectionMaterial, SectionText};
use crate::text::clip::ClipOptions;
use crate::text::fence::clean;

/// Most bytes of all files together.
const LIMIT: usize = 8 * 1024;
/// Most bytes of a file that counts.
pub const MAX_INSTRUCTIONS_BYTES: usize = 1024 * 1024;

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Its name, in the root of the repository.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Returns the configured files that exist; `read` returns the bytes of a regular file.
///
/// One that says the same as an earlier one does not count: some repositories have a copy for each agent.
pub fn read_instructions<E>(
    names: &[String],
    mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, E>,
) -> Result<Vec<InstructionFile>, E> {
    let mut files: Vec<InstructionFile> = Vec::new();
    for name in names {
        let Some(bytes) = read(name)?.filter(|bytes| bytes.len() <= MAX_INSTRUCTIONS_BYTES) else { continue };
        let text = clean(&String::from_utf8_lossy(&bytes)).trim().to_owned();
        if !text.is_empty() && !files.iter().any(|file| file.text == text) {
            files.push(InstructionFile { name: name.clone(), text });
        }
    }
    Ok(files)
}

/// The files, each below its name.
pub(super) fn instructions_section(files: &[InstructionFile]) -> Option<PromptSection<'static>> {
    let mut body = String::new();
    for InstructionFile { name, text } in files {
        let head = format!("{}`{name}`:\n\n", if body.is_empty() { "" } else { "\n\n" });
        let hint = format!("; all of it: `{name}`");
        let limit = LIMIT.saturating_sub(body.len() + head.len());
        let options = ClipOptions { limit, head_eighths: 8, omitted_bytes: 0, hint: &hint };
        body.push_str(&head);
        body.push_str(options.apply(text).text.trim_end());
    }
    let text = SectionText { body, omitted_bytes: 0, head_eighths: 8, hint: String::new() };
    let intro = "## How this project is worked on\n\n\
        What the repository says to those who work on it. The rules of this prompt come first where they differ:\n";
    (!files.is_empty()).then(|| PromptSection {
        name: "instructions",
        intro: intro.to_owned(),
        material: SectionMaterial::Text(text),
        min_bytes: 600,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn read(files: &[(&str, &[u8])]) -> Vec<InstructionFile> {
        let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        let find = |name: &str| {
            Ok::<_, Infallible>(files.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes.to_vec()))
        };
        read_instructions(&names, find).unwrap_or_else(|never| match never {})
    }

    #[test]
    fn copies_and_empty_files_do_not_count() {
        let files: [(&str, &[u8]); 3] =
            [("AGENTS.md", b"Use tabs.\n"), ("CLAUDE.md", b"\nUse tabs.\n\n"), ("GEMINI.md", b" \n")];
        let read = read(&files);
        assert_eq!(read, [InstructionFile { name: "AGENTS.md".to_owned(), text: "Use tabs.".to_owned() }]);
    }

    #[test]
    fn a_file_that_is_too_large_does_not_count() {
        assert_eq!(read(&[("AGENTS.md", &vec![b'x'; MAX_INSTRUCTIONS_BYTES + 1])]), []);
    }

    #[test]
    fn all_files_together_stay_within_the_limit_and_cuts_name_the_file() {
        let long = "Mind the gap.\n".repeat(2_000);
        let section = instructions_section(&read(&[("AGENTS.md", long.as_bytes()), ("GEMINI.md", b"Use tabs.")]));
        let text = section.unwrap().render(usize::MAX).text;
        assert!(text.len() < LIMIT + 512, "{}", text.len());
        assert!(text.contains("bytes left out; all of it: `AGENTS.md`"), "{text}");
    }
}
