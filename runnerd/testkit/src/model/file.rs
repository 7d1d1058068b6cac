//! A script as a TOML file, for a person who tries an agent by hand. Tests write their scripts in Rust.

use serde::Deserialize;
use serde_json::Value;

use super::reply::{Reply, Usage};
use super::script::Script;

/// Why a text is no script.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not of the form.
    #[error(transparent)]
    Form(#[from] toml::de::Error),
    /// A reply says nothing, or more than one thing.
    #[error("reply {0} needs exactly one of `run`, `answer`, `text`, `cut`, `status`, `raw` and `fault`")]
    Word(usize),
    /// A word is not known.
    #[error("reply {at}: `{word}` is not known")]
    Unknown {
        /// Number of the reply, from 1.
        at: usize,
        /// The word.
        word: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    reply: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    run: Option<String>,
    answer: Option<String>,
    text: Option<String>,
    cut: Option<String>,
    status: Option<u16>,
    body: String,
    raw: Option<String>,
    fault: Option<String>,
    resets_at: i64,
    retry_after: Option<u32>,
    headers: std::collections::BTreeMap<String, String>,
    usage: Option<[u64; 3]>,
    end: Option<String>,
    when: Option<String>,
    times: Option<u32>,
}

/// Reads a script; `times = 0` repeats a reply without end.
///
/// # Errors
///
/// Fails if the text is no script.
pub fn read(text: &str) -> Result<Script, FileError> {
    let file: File = toml::from_str(text)?;
    let mut script = Script::new();
    for (at, entry) in (1..).zip(file.reply) {
        let left = Some(entry.times.unwrap_or(1)).filter(|times| *times > 0);
        let reply = entry.reply(at)?;
        script = match entry.when {
            Some(words) => script.rule(move |request| request.body.to_string().contains(&words), reply, left),
            None => script.rule(|_| true, reply, left),
        };
    }
    Ok(script)
}

impl Entry {
    fn reply(&self, at: usize) -> Result<Reply, FileError> {
        let said = [
            self.run.as_deref().map(Reply::run),
            self.answer.as_deref().map(|text| Reply::answer(serde_json::from_str(text).unwrap_or(Value::from(text)))),
            self.text.as_deref().map(Reply::text),
            self.cut.as_deref().map(Reply::cut),
            self.status.map(|code| Reply::status(code, &self.body)),
            self.raw.as_deref().map(Reply::raw),
            self.fault.as_deref().map(|word| self.fault(at, word)).transpose()?,
        ];
        let mut said = said.into_iter().flatten();
        let (Some(reply), None) = (said.next(), said.next()) else { return Err(FileError::Word(at)) };
        let reply = self.headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value));
        let reply = match self.usage {
            Some([input, cached, output]) => reply.usage(Usage { input, cached, output }),
            None => reply,
        };
        match self.end.as_deref() {
            None => Ok(reply),
            Some("dropped") => Ok(reply.dropped()),
            Some("stalled") => Ok(reply.stalled()),
            Some("unfinished") => Ok(reply.unfinished()),
            Some(word) => Err(FileError::Unknown { at, word: word.to_owned() }),
        }
    }

    fn fault(&self, at: usize, word: &str) -> Result<Reply, FileError> {
        Ok(match word {
            "usage_limit" => Reply::usage_limit(self.resets_at),
            "rate_limit" => Reply::rate_limit(self.retry_after),
            "quota" => Reply::quota(),
            "unauthorized" => Reply::unauthorized(),
            "forbidden" => Reply::forbidden(),
            "unknown_model" => Reply::unknown_model(),
            "overloaded" => Reply::overloaded(),
            "broken" => Reply::broken(),
            "too_long" => Reply::too_long(),
            "schema_refused" => Reply::schema_refused(),
            "hang_up" => Reply::hang_up(),
            "silence" => Reply::silence(),
            "nothing" => Reply::nothing(),
            _ => return Err(FileError::Unknown { at, word: word.to_owned() }),
        })
    }
}
