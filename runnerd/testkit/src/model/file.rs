//! A script as a TOML file, for people who try an agent by hand. Tests write their scripts in Rust.

use serde::Deserialize;
use serde_json::Value;

use super::reply::{ModelReply, TokenUsage};
use super::script::ReplyScript;

/// Why a text is not a valid script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFileError {
    /// The text is not valid TOML of the expected form.
    #[error(transparent)]
    InvalidToml(#[from] toml::de::Error),
    /// A reply contains no action, or more than one.
    #[error("reply {0} needs exactly one of `run`, `answer`, `text`, `cut`, `status`, `raw` and `fault`")]
    NotOneReply(usize),
    /// A keyword is unknown.
    #[error("reply {at}: `{word}` is not known")]
    UnknownWord {
        /// Number of the reply, counted from 1.
        at: usize,
        /// The unknown keyword.
        word: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    reply: Vec<ReplyEntry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReplyEntry {
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

/// Parses a script; `times = 0` repeats a reply without end.
///
/// # Errors
///
/// Fails if the text is not a valid script.
pub fn parse_script(text: &str) -> Result<ReplyScript, ScriptFileError> {
    let file: ScriptFile = toml::from_str(text)?;
    let mut script = ReplyScript::new();
    for (at, entry) in (1..).zip(file.reply) {
        let remaining = Some(entry.times.unwrap_or(1)).filter(|times| *times > 0);
        let reply = entry.to_reply(at)?;
        script = match entry.when {
            Some(words) => script.add_rule(move |request| request.body.to_string().contains(&words), reply, remaining),
            None => script.add_rule(|_| true, reply, remaining),
        };
    }
    Ok(script)
}

impl ReplyEntry {
    fn to_reply(&self, at: usize) -> Result<ModelReply, ScriptFileError> {
        let candidates = [
            self.run.as_deref().map(ModelReply::run),
            self.answer
                .as_deref()
                .map(|text| ModelReply::answer(serde_json::from_str(text).unwrap_or(Value::from(text)))),
            self.text.as_deref().map(ModelReply::text),
            self.cut.as_deref().map(ModelReply::truncated),
            self.status.map(|code| ModelReply::status(code, &self.body)),
            self.raw.as_deref().map(ModelReply::raw),
            self.fault.as_deref().map(|word| self.fault_reply(at, word)).transpose()?,
        ];
        let mut candidates = candidates.into_iter().flatten();
        let (Some(reply), None) = (candidates.next(), candidates.next()) else {
            return Err(ScriptFileError::NotOneReply(at));
        };
        let reply = self.headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value));
        let reply = match self.usage {
            Some([input, cached, output]) => reply.usage(TokenUsage { input, cached, output }),
            None => reply,
        };
        match self.end.as_deref() {
            None => Ok(reply),
            Some("dropped") => Ok(reply.dropped()),
            Some("stalled") => Ok(reply.stalled()),
            Some("unfinished") => Ok(reply.unfinished()),
            Some(word) => Err(ScriptFileError::UnknownWord { at, word: word.to_owned() }),
        }
    }

    fn fault_reply(&self, at: usize, word: &str) -> Result<ModelReply, ScriptFileError> {
        Ok(match word {
            "usage_limit" => ModelReply::usage_limit(self.resets_at),
            "rate_limit" => ModelReply::rate_limit(self.retry_after),
            "quota" => ModelReply::quota(),
            "unauthorized" => ModelReply::unauthorized(),
            "forbidden" => ModelReply::forbidden(),
            "unknown_model" => ModelReply::unknown_model(),
            "overloaded" => ModelReply::overloaded(),
            "broken" => ModelReply::broken(),
            "too_long" => ModelReply::too_long(),
            "schema_refused" => ModelReply::schema_refused(),
            "hang_up" => ModelReply::hang_up(),
            "silence" => ModelReply::silence(),
            "nothing" => ModelReply::empty(),
            _ => return Err(ScriptFileError::UnknownWord { at, word: word.to_owned() }),
        })
    }
}
