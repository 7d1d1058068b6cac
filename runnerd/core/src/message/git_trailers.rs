//! Reads the trailers of a message from the point of view of any program that reads them as git does.
//!
//! The rules are git's own, with its default configuration: where the message ends, where its last block begins, and
//! which of its lines are trailers. `git interpret-trailers` ends a message at a divider, and `git log` does not; a
//! trailer that either of them reads counts. Whether the claim has the runner's form is not checked here.

use super::{HUMAN, KIND, SCOPE};

/// The line from which on git ignores everything.
pub(crate) const SCISSORS: &str = "# ------------------------ >8 ------------------------";
/// Lines that git itself adds to the last block.
const GENERATED: [&[u8]; 2] = [b"Signed-off-by: ", b"(cherry picked from commit "];

/// Whether any of git's readings of a message finds the trailer of a receipt: that of `git log`, which begins with the
/// first line that is not blank, and that of `git interpret-trailers`, which completes the last line, with
/// `--no-divider` and without.
pub fn claims_receipt(message: &[u8]) -> bool {
    has_trailer(message, KIND)
}

/// Whether a message begins like one of the runner's: people read subjects, and not everything after them.
pub fn has_runner_subject(message: &[u8]) -> bool {
    let subject = lines(message).find(|line| !is_blank(line)).unwrap_or_default();
    let text = subject.strip_prefix(SCOPE.as_bytes()).unwrap_or_default();
    text.starts_with(b"run ") || text.windows(5).any(|word| word == b" run ")
}

/// Whether a line looks like a trailer that makes a commit the runner's, and is none to git: characters that are not
/// ASCII stand in it.
pub fn has_look_alike_trailer(message: &[u8]) -> bool {
    lines(message).filter(|line| !line.is_ascii()).any(|line| {
        let line: String = String::from_utf8_lossy(line).chars().map(to_halfwidth).collect();
        let name = line.split_once(':').map_or("", |(name, _)| name);
        [KIND, HUMAN].iter().any(|trailer| is_look_alike(name.trim(), trailer))
    })
}

/// Whether a name may be read as a trailer's if each character that is not ASCII stands for any one, or for none.
/// At least half of the trailer must be there as it is.
fn is_look_alike(name: &str, trailer: &str) -> bool {
    // Bit n says that the name so far may stand for the first n characters of the trailer.
    let mut matched = 1_u64;
    for c in name.chars() {
        let same = (0..).zip(trailer.chars()).filter(|(_, letter)| c.eq_ignore_ascii_case(letter));
        let same: u64 = same.map(|(at, _): (u32, _)| 1 << at).sum();
        matched = if c.is_ascii() { (matched & same) << 1 } else { matched | matched << 1 };
    }
    let ascii_count = name.chars().filter(char::is_ascii).count();
    matched >> trailer.len() & 1 == 1 && ascii_count * 2 >= trailer.len()
}

/// Returns the ASCII character of a wide form.
fn to_halfwidth(c: char) -> char {
    let code = u32::from(c).wrapping_sub(0xfee0);
    u8::try_from(code).ok().filter(u8::is_ascii_graphic).map_or(c, char::from)
}

/// The same as [`claims_receipt`], for any trailer.
pub(super) fn has_trailer(message: &[u8], trailer: &str) -> bool {
    !read_trailers(message, trailer).is_empty()
}

/// Returns the values of a trailer in the order of their lines, continuations joined. Where git's readings differ, the
/// values of each count.
pub(crate) fn read_trailers(message: &[u8], trailer: &str) -> Vec<String> {
    let text = message.split(|byte| *byte == 0).next().unwrap_or_default();
    let blank: usize = lines(text).take_while(|line| is_blank(line)).map(<[u8]>::len).sum();
    let ended = [text, if text.ends_with(b"\n") { b"" } else { b"\n" }].concat();
    let readings = [&text[blank..], &ended, before_divider(&ended)];
    let mut values: Vec<Vec<String>> = Vec::new();
    for block in readings.into_iter().map(|text| trailer_block(before_ignored(text))) {
        let read = block_values(block, trailer);
        if !values.contains(&read) {
            values.push(read);
        }
    }
    values.concat()
}

/// Whether a message ends in a block of nothing but trailers, which lines that are appended to it continue.
pub(crate) fn ends_with_trailers(message: &[u8]) -> bool {
    let block = trailer_block(before_ignored(message));
    !block.is_empty() && lines(block).all(|line| trailer_name(line).is_some())
}

/// Everything before a line of three dashes.
fn before_divider(text: &[u8]) -> &[u8] {
    let is_divider =
        |line: &[u8]| line.strip_prefix(b"---").and_then(<[u8]>::first).is_some_and(|byte| is_space(*byte));
    let before: usize = lines(text).take_while(|line| !is_divider(line)).map(<[u8]>::len).sum();
    &text[..before]
}

/// Everything before the scissors, without the comments, empty lines and conflicts at the end.
fn before_ignored(text: &[u8]) -> &[u8] {
    let mut cutoff = text.len();
    let mut at = 0;
    for line in lines(text) {
        if line.strip_suffix(b"\n") == Some(SCISSORS.as_bytes()) {
            cutoff = at;
            break;
        }
        at += line.len();
    }
    let mut ignored = None;
    let mut in_conflicts = false;
    let mut at = 0;
    for line in lines(&text[..cutoff]) {
        if line.starts_with(b"#") || line.starts_with(b"\n") {
            ignored = ignored.or(Some(at));
        } else if line == b"Conflicts:\n" {
            in_conflicts = true;
            ignored = ignored.or(Some(at));
        } else if !(in_conflicts && line.starts_with(b"\t")) && ignored.is_some() {
            (ignored, in_conflicts) = (None, false);
        }
        at += line.len();
    }
    // Git does not recognize scissors at the very first byte.
    &text[..ignored.filter(|at| *at > 0).unwrap_or(cutoff)]
}

/// Returns the last block of a text if it consists of trailers; empty if it does not, or if it is the title.
fn trailer_block(text: &[u8]) -> &[u8] {
    let all: Vec<&[u8]> = lines(text).collect();
    let title = all.iter().position(|line| !line.starts_with(b"#") && is_blank(line)).unwrap_or(all.len());
    let mut trailers = 0_usize;
    let mut others = 0_usize;
    let mut continued = 0_usize;
    let mut is_generated = false;
    let mut only_blanks = true;
    for (at, line) in all.iter().enumerate().skip(title).rev() {
        if line.starts_with(b"#") {
            others += std::mem::take(&mut continued);
        } else if is_blank(line) {
            if only_blanks {
                continue;
            }
            others += continued;
            let is_block = is_generated && trailers * 3 >= others || trailers > 0 && others == 0;
            let before: usize = all[..=at].iter().map(|line| line.len()).sum();
            return if is_block { &text[before..] } else { &[] };
        } else {
            only_blanks = false;
            if GENERATED.iter().any(|prefix| line.starts_with(prefix)) {
                is_generated = true;
                (trailers, continued) = (trailers + 1, 0);
            } else if trailer_name(line).is_some() {
                (trailers, continued) = (trailers + 1, 0);
            } else if line.first().is_some_and(|byte| is_space(*byte)) {
                continued += 1;
            } else {
                others += 1 + std::mem::take(&mut continued);
            }
        }
    }
    &[]
}

fn block_values(block: &[u8], trailer: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    let mut is_match = false;
    for line in lines(block).filter(|line| !line.starts_with(b"#")) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
        if let Some(name) = trailer_name(line) {
            is_match = name.trim_ascii_end().eq_ignore_ascii_case(trailer.as_bytes());
            values.extend(is_match.then(|| text(&line[name.len() + 1..])));
        } else if line.first().is_some_and(|byte| is_space(*byte)) {
            if let Some(value) = values.last_mut().filter(|_| is_match) {
                *value = format!("{value} {}", text(line)).trim_ascii().into();
            }
        } else {
            is_match = false;
        }
    }
    values
}

/// Returns the name of a trailer, if the line is one.
fn trailer_name(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().position(|byte| *byte == b':').filter(|at| *at > 0)?;
    let name = &line[..colon];
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = name.iter().position(is_blank).unwrap_or(colon);
    let is_token = name[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    (end > 0 && is_token && name[end..].iter().all(is_blank)).then_some(name)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().copied().all(is_space)
}

/// Git's definition: neither a form feed nor a vertical tab is space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
