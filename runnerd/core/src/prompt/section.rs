//! A section of a prompt, and how sections are cut until they fit.
//!
//! What stands in the sections is told by their builders; only sizes and order matter here.

use super::SectionSize;
use crate::clip::Cut;
use crate::fence;
use crate::outline::Outline;

/// Sections in the order in which they give way; those that are not named are never cut.
const CUTTING_ORDER: [&str; 11] = [
    "outline",
    "questions",
    "assumptions",
    "context",
    "guardrails",
    "progress",
    "history",
    "goal",
    "invalid-tree",
    "failure",
    "diff",
];

/// The most bytes of an outline, also where there is room for more.
const OUTLINE_LIMIT: usize = 12 * 1024;
/// Material with less room than this is left out.
const ROOM_MIN: usize = 120;

/// A titled part of a prompt.
pub(super) struct Section<'a> {
    /// Its name in records and, where it has material, in its fence.
    pub(super) name: &'static str,
    /// The runner's words, heading included, ending with a newline.
    pub(super) words: String,
    /// What follows them.
    pub(super) material: Material<'a>,
    /// The bytes that are left to it as long as others can be cut instead.
    pub(super) floor: usize,
}

/// What follows the runner's words in a section.
pub(super) enum Material<'a> {
    /// Nothing: the section is never cut.
    None,
    /// Somebody's text.
    Text(Text),
    /// The task tree.
    Outline(Outline<'a>),
}

/// Somebody's text, clean.
pub(super) struct Text {
    /// What is left of it.
    pub(super) body: String,
    /// Bytes in front of it that were left out before.
    pub(super) before: usize,
    /// How much of what is kept comes from the head, in eighths.
    pub(super) head_eighths: usize,
    /// The file that holds all of it.
    pub(super) whole: &'static str,
}

/// A section as it stands in the prompt.
pub(super) struct Rendered {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) cut_bytes: usize,
}

impl Section<'_> {
    /// Renders the section within `limit` bytes; it is empty where its material has no room.
    pub(super) fn render(&self, limit: usize) -> Rendered {
        let room = limit.saturating_sub(self.words.len() + 1 + fence::overhead(self.name));
        let (material, cut_bytes) = match &self.material {
            Material::None => return self.rendered(self.words.clone(), 0),
            Material::Text(text) if room < ROOM_MIN.min(text.body.len()) => {
                return self.rendered(String::new(), text.before + text.body.len());
            }
            Material::Text(text) => text.within(room),
            Material::Outline(outline) if room < ROOM_MIN => return self.rendered(String::new(), outline.draw(0).1),
            Material::Outline(outline) => outline.draw(room.min(OUTLINE_LIMIT)),
        };
        self.rendered(format!("{}\n{}", self.words, fence::wrap(self.name, &material)), cut_bytes)
    }

    fn rendered(&self, text: String, cut_bytes: usize) -> Rendered {
        Rendered { name: self.name, text, cut_bytes }
    }
}

impl Text {
    fn within(&self, limit: usize) -> (String, usize) {
        let hint = format!("; all of it: `{}`", self.whole);
        let cut = Cut { limit, head_eighths: self.head_eighths, before: self.before, hint: &hint };
        let piece = cut.apply(&self.body);
        (piece.text, piece.cut_bytes)
    }
}

/// Renders the sections so that, joined by newlines, they have at most `budget` bytes, if what is never cut allows it.
pub(super) fn fit(sections: &[Section<'_>], budget: usize) -> Vec<Rendered> {
    let mut rendered: Vec<Rendered> = sections.iter().map(|section| section.render(usize::MAX)).collect();
    let natural: Vec<usize> = rendered.iter().map(|section| section.text.len()).collect();
    let limits = limits(sections, &natural, budget);
    for (at, limit) in limits.into_iter().enumerate().filter(|&(at, limit)| limit < natural[at]) {
        rendered[at] = sections[at].render(limit);
    }
    rendered
}

/// What each section may have: first all give way down to their floors, then, if that is not enough, wholly.
fn limits(sections: &[Section<'_>], natural: &[usize], budget: usize) -> Vec<usize> {
    let mut limits = natural.to_vec();
    let mut over = (limits.iter().sum::<usize>() + sections.len()).saturating_sub(budget);
    for keeps_floor in [true, false] {
        for name in CUTTING_ORDER {
            let Some(at) = sections.iter().position(|section| section.name == name) else { continue };
            let floor = if keeps_floor { sections[at].floor } else { 0 };
            let given = over.min(limits[at].saturating_sub(floor));
            limits[at] -= given;
            over -= given;
        }
    }
    limits
}

/// Joins what is there, and measures it.
pub(super) fn join(rendered: &[Rendered]) -> (String, Vec<SectionSize>) {
    let texts: Vec<&str> =
        rendered.iter().map(|section| section.text.as_str()).filter(|text| !text.is_empty()).collect();
    let size = |section: &Rendered| SectionSize {
        name: section.name,
        bytes: section.text.len(),
        cut_bytes: section.cut_bytes,
    };
    (texts.join("\n"), rendered.iter().map(size).collect())
}
