//! A model's service on loopback that sends the replies of a test's script, in the protocols of real agents.
//!
//! It knows no model, no daemon and no agent: it answers requests, records them, and fails as real services fail. The
//! protocols are `OpenAI`'s Responses (`POST …/responses`), Anthropic's Messages (`POST …/messages`) and Google's
//! `generateContent`, streamed or whole.

mod events;
mod fault;
mod file;
mod generate;
mod http;
mod messages;
mod reply;
mod request;
mod responses;
mod script;
mod server;
mod wire;

pub use self::file::{ScriptFileError, parse_script};
pub use self::reply::{ModelReply, TokenUsage};
pub use self::request::{ModelProtocol, ModelRequest};
pub use self::script::ReplyScript;
pub use self::server::ModelServer;

#[cfg(test)]
mod tests;
