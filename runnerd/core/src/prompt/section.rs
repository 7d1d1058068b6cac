//! A section of a prompt, and how sections are cut until they fit.
//!
//! The builders decide the content of sections; only sizes and order matter here.

use super::SectionSize;
use crate::text::clip::ClipOptions;
use crate::text::fence;
use crate::tree::outline::TreeOutline;

/// Sections in the order in which they are cut; those that are not listed are never cut.
const CUTTING_ORDER: [&str; 15] = [
    "outline",
    "questions",
    "assumptions",
    "context",
    "guardrails",
    "progress",
    "instructions",
    "history",
    "goal",
    "invalid-tree",
    "session-end",
    "broken-rule",
    "rejection",
    "failure",
    "diff",
];

/// Most bytes of an outline, even if there is room for more.
const OUTLINE_LIMIT: usize = 12 * 1024;
/// Material with less room than this is omitted, in bytes.
const MIN_ROOM: usize = 120;

/// A titled part of a prompt.
pub(super) struct PromptSection<'a> {
    /// Its name in records and, if it has material, in its fence.
    pub(super) name: &'static str,
    /// The runner's words, including the heading, ending with a newline.
    pub(super) intro: String,
    /// What follows them.
    pub(super) material: SectionMaterial<'a>,
    /// Bytes that it keeps while others can be cut instead.
    pub(super) min_bytes: usize,
}

/// What follows the runner's words in a section.
pub(super) enum SectionMaterial<'a> {
    /// Nothing: the section is never cut.
    None,
    /// Foreign text.
    Text(SectionText),
    /// The task tree.
    Outline(TreeOutline<'a>),
}

/// Foreign text, already cleaned.
pub(super) struct SectionText {
    /// The part of it that is left.
    pub(super) body: String,
    /// Bytes that were already cut from its front.
    pub(super) omitted_bytes: usize,
    /// How much of what is kept comes from the head, in eighths.
    pub(super) head_eighths: usize,
    /// Added to the mark of a cut, such as the file that holds all of it.
    pub(super) hint: String,
}

/// A section in the form it has in the prompt.
pub(super) struct RenderedSection {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) cut_bytes: usize,
}

impl PromptSection<'_> {
    /// Renders the section within `limit` bytes; the result is empty if its material does not fit.
    pub(super) fn render(&self, limit: usize) -> RenderedSection {
        let room = limit.saturating_sub(self.intro.len() + 1 + fence::fence_overhead(self.name));
        let (material, cut_bytes) = match &self.material {
            SectionMaterial::None => return self.to_rendered(self.intro.clone(), 0),
            SectionMaterial::Text(text) if room < MIN_ROOM.min(text.body.len()) => {
                return self.to_rendered(String::new(), text.omitted_bytes + text.body.len());
            }
            SectionMaterial::Text(text) => text.clip_to(room),
            SectionMaterial::Outline(outline) if room < MIN_ROOM => {
                return self.to_rendered(String::new(), outline.render(0).1);
            }
            SectionMaterial::Outline(outline) => outline.render(room.min(OUTLINE_LIMIT)),
        };
        self.to_rendered(format!("{}\n{}", self.intro, fence::wrap_fenced(self.name, &material)), cut_bytes)
    }

    fn to_rendered(&self, text: String, cut_bytes: usize) -> RenderedSection {
        RenderedSection { name: self.name, text, cut_bytes }
    }
}

impl SectionText {
    fn clip_to(&self, limit: usize) -> (String, usize) {
        let head_eighths = self.head_eighths;
        let omitted_bytes = self.omitted_bytes;
        let cut = ClipOptions { limit, head_eighths, omitted_bytes, hint: &self.hint };
        let piece = cut.apply(&self.body);
        (piece.text, piece.cut_bytes)
    }
}

/// Renders the sections so that, joined by newlines, they have at most `budget` bytes, if the parts that are never cut
/// allow it.
pub(super) fn fit_sections(sections: &[PromptSection<'_>], budget: usize) -> Vec<RenderedSection> {
    let mut rendered: Vec<RenderedSection> = sections.iter().map(|section| section.render(usize::MAX)).collect();
    let natural: Vec<usize> = rendered.iter().map(|section| section.text.len()).collect();
    let limits = section_limits(sections, &natural, budget);
    for (at, limit) in limits.into_iter().enumerate().filter(|&(at, limit)| limit < natural[at]) {
        rendered[at] = sections[at].render(limit);
    }
    rendered
}

/// Returns the limit of each section: first all are cut down to their floors, then, if that is not enough, entirely.
fn section_limits(sections: &[PromptSection<'_>], natural: &[usize], budget: usize) -> Vec<usize> {
    let mut limits = natural.to_vec();
    let mut over = (limits.iter().sum::<usize>() + sections.len()).saturating_sub(budget);
    for keeps_floor in [true, false] {
        for name in CUTTING_ORDER {
            let Some(at) = sections.iter().position(|section| section.name == name) else { continue };
            let floor = if keeps_floor { sections[at].min_bytes } else { 0 };
            let reduction = over.min(limits[at].saturating_sub(floor));
            limits[at] -= reduction;
            over -= reduction;
        }
    }
    limits
}

/// Joins the sections that are not empty, and measures them.
pub(super) fn join_rendered(rendered: &[RenderedSection]) -> (String, Vec<SectionSize>) {
    let texts: Vec<&str> =
        rendered.iter().map(|section| section.text.as_str()).filter(|text| !text.is_empty()).collect();
    let size = |section: &RenderedSection| SectionSize {
        name: section.name,
        bytes: section.text.len(),
        cut_bytes: section.cut_bytes,
    };
    (texts.join("\n"), rendered.iter().map(size).collect())
}
